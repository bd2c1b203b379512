// agent/anonymous/process_id.h - one program that a process runs: neither another process of its pid, nor after its next exec.
#ifndef AGENT_ANONYMOUS_PROCESS_ID_H_
#define AGENT_ANONYMOUS_PROCESS_ID_H_

#include <cstdint>
#include <utility>

#include "core/base/clock.h"

namespace perfd::agent {

struct ProcessId {
  int32_t pid = 0;
  uint64_t start_ticks = 0;
  uint32_t image = 0;  // counts its programs (exec)

  bool operator==(const ProcessId&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const ProcessId& p) {
    return H::combine(std::move(h), p.pid, p.start_ticks, p.image);
  }
};

// When a process began, ns since 1970 by `clock`: to a tick, 10 ms as a rule.
int64_t BeganAtUnixNs(const Clock& clock, uint64_t start_ticks);
// Of times so read and those of files, which are coarse, too.
inline constexpr int64_t kBeganBlurNs = 20 * kNsPerMs;

}  // namespace perfd::agent

#endif  // AGENT_ANONYMOUS_PROCESS_ID_H_
