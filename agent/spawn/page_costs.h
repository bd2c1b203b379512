// agent/spawn/page_costs.h - what forks cost this machine, now, page by page; measured in a small process of its own.
//
// Shape    AskPageCosts runs PROGRAM kPageCostsMode, which answers by TellPageCosts and ends. A process with threads and much memory,
//          like the agent, cannot fork for that; and no other write to a protected page costs what one after a fork does: under a
//          hypervisor that shadows page tables 14 us, where a copy of a file's page costs 55.
// Units    ns of CPU time per page of 4 KiB.
// Errors   none where there is no answer within a second, or one that cannot be.
// Threads  thread-safe.
// Source   docs/benchmarks/constants.md#kusualfaultns.
#ifndef AGENT_SPAWN_PAGE_COSTS_H_
#define AGENT_SPAWN_PAGE_COSTS_H_

#include <optional>
#include <string>

namespace perfd::agent {

inline constexpr char kPageCostsMode[] = "--page-costs";  // the first and only word

struct PageCosts {
  double rewrite_ns = 0;  // written to again, once the copy of the process is gone
  double copy_ns = 0;     // copied in the copy, many at once
};

std::optional<PageCosts> AskPageCosts(const std::string& program);
// In the helper. False: it could not measure, or nobody listens.
bool TellPageCosts(int socket);

}  // namespace perfd::agent

#endif  // AGENT_SPAWN_PAGE_COSTS_H_
