// agent/shadow/restore.h - takes an injection out of a rank: text, threads, mappings. For Uninstall and for healing.
//
// Shape    one stop usually does everything; while a thread is in the way, again some milliseconds later. Text whose mapping or
//          bytes are no longer what was written is left alone.
// Errors   OK: nothing of ours is in the rank, or the rank has ended. kUnavailable: text is restored, but threads kept being in
//          the way of unmapping; or the rank is suspended, which is not waited for; others: as HoldReply.
// Units    ns.
// Source   design section 6, step 9; injection findings 6.
#ifndef AGENT_SHADOW_RESTORE_H_
#define AGENT_SHADOW_RESTORE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "agent/attach/tracer.h"
#include "agent/shadow/injection.h"

namespace perfd::agent {

struct RestoreOptions {
  Tracer* tracer = nullptr;
  int64_t max_stop_ns = 20'000'000;
  int64_t patience_ns = 5'000'000'000;
  bool suspect = true;  // a tracer may have died in this rank
  std::function<absl::Status(int32_t pid)> answers = nullptr;  // as InjectorOptions
};

struct RestoreResult {
  int32_t sites = 0;  // whose text was written back
  uint64_t unmapped_bytes = 0;
  std::vector<int64_t> stops_ns;
  bool found = false;      // something of ours was in the rank
  bool ended = false;      // the rank has
  bool suspended = false;  // the rank is, and was not held
};

absl::Status RestoreRank(const Injection& injection, const RestoreOptions& options,
                         RestoreResult* result);

// A remote call of this hold may yet be made, by the thread itself. Only the tracer knows: a stop can
// take too long without having begun a call, and a call can be lost in one that ended otherwise.
inline bool CallMayBeLost(const HoldReply& reply) {
  return reply.call_lost;
}

// One hold, retried while a thread stands in the way or the process is suspended (kUnavailable), at most until `deadline_ns` of
// CLOCK_MONOTONIC. stops_ns: how long each stop was; also of a tracer that did not answer. A stop in which the process was
// suspended is not among them: it would not have run.
absl::StatusOr<HoldReply> HoldPatiently(Tracer& tracer, const HoldRequest& request,
                                        int64_t deadline_ns, std::vector<int64_t>* stops_ns);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RESTORE_H_
