// agent/shadow/recovery_request.h - recovery mode as RankInjector::Recover takes and gives it: copies run in the rank itself, one at an
//                                  entry, before the loop.
//
// Units    cycles are TSC ticks, the probe included; ns of wall time.
// Source   design section 6, "Modes".
#ifndef AGENT_SHADOW_RECOVERY_REQUEST_H_
#define AGENT_SHADOW_RECOVERY_REQUEST_H_

#include <cstdint>
#include <vector>

namespace perfd::agent {

inline constexpr int32_t kNoCopy =
    -1;  // an empty copy: what the loop takes when nothing ran before it
struct RecoveryRequest {
  int32_t loop = 0;
  std::vector<int32_t> round;  // copies, one for each entry of a thread, over and over
  int32_t runs = 0;            // at most, all threads together
  int64_t most_added_ns = 0;   // by them, all threads together
  int64_t timeout_ns = 0;
};

struct RecoveryRun {
  int32_t step = 0;      // index into RecoveryRequest::round
  int32_t thread = 0;    // from 0, in the order of thread ids
  uint32_t cluster = 0;  // one round of one thread, over instances of one length
  uint64_t cycles = 0;   // of the copy
  uint64_t original =
      0;  // of the loop itself, right afterwards, without reading the clock; 0: not known
  uint64_t iterations = 0;
};

struct RecoveryAnswer {
  std::vector<RecoveryRun> runs;
  uint64_t skipped = 0;  // entries without a run: too long, or of too many different lengths
  int64_t added_ns = 0;  // to the thread that lost most
  bool enough = false;   // it ended by its limits, not by the time
};

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RECOVERY_REQUEST_H_
