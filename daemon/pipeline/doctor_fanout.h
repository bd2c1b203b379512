// daemon/pipeline/doctor_fanout.h - questions to several agents at once, answered together or at the deadline.
//
// Threads  thread-compatible: the pipeline's lock covers it. Finished rounds are returned; the caller answers them
//          without that lock.
#ifndef DAEMON_PIPELINE_DOCTOR_FANOUT_H_
#define DAEMON_PIPELINE_DOCTOR_FANOUT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/model/node.h"

namespace perfd::daemon {

class DoctorFanout {
 public:
  using Done = std::function<void(std::vector<DoctorReport>)>;
  struct Round {
    std::map<std::string, DoctorReport> answers;  // by node; no checks: none yet
    std::vector<DoctorReport> own;
    int64_t deadline_ns = 0;
    size_t open = 0;
    Done done;

    void Answer() const;
  };

  static constexpr size_t kMaxRounds = 64;
  static constexpr int64_t kWaitNs = 5 * kNsPerSecond;

  // The id to ask with; kResourceExhausted when too many are open. `asked`: who is, without checks.
  absl::StatusOr<uint64_t> Begin(const std::vector<DoctorReport>& asked,
                                 std::vector<DoctorReport> own, int64_t now_ns, Done done);
  // Rounds that are complete with this answer.
  std::vector<Round> Record(uint64_t id, const std::string& node, std::vector<DoctorCheck> checks);
  // Rounds that have waited long enough, or have nobody to wait for.
  std::vector<Round> Expire(int64_t now_ns);

 private:
  std::map<uint64_t, Round> rounds_;
  uint64_t next_id_ = 1;
};

}  // namespace perfd::daemon

#endif  // DAEMON_PIPELINE_DOCTOR_FANOUT_H_
