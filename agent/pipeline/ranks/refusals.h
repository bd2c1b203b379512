// agent/pipeline/ranks/refusals.h - what of a session's refusals its user is told: each once.
//
// Shape    Update with what every search refused -> what is to be told now; AtOnce where no later look
//          is waited for; End -> what still holds when nothing is looked for any more.
// Rules    what only one look refused is not told: scripts run many programs that end at once, and
//          are no ranks. A process that waits in the kernel (kUnavailable) may be accepted at any
//          later look: told at the End. One that has ended (kNotFound) was not refused.
// Bounds   kMaxTold by name; one sentence more says that there are others.
// Threads  thread-bound (the session's thread).
#ifndef AGENT_PIPELINE_RANKS_REFUSALS_H_
#define AGENT_PIPELINE_RANKS_REFUSALS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/discover/rank_finder.h"

namespace perfd::agent {

class Refusals {
 public:
  static constexpr size_t kMaxTold = 64;

  std::vector<RejectedProcess> AtOnce(const std::vector<RejectedProcess>& rejected);
  // pid 0: the look as a whole.
  std::vector<RejectedProcess> Update(const std::vector<RejectedProcess>& rejected);
  std::vector<RejectedProcess> End();
  bool told() const { return !told_.empty(); }

 private:
  using Key = std::pair<int32_t, std::string>;  // pid and reason
  struct Seen {
    absl::Status reason;
    bool lasting = false;  // by the look before as well
  };
  void Report(const Key& key, const absl::Status& reason, std::vector<RejectedProcess>* out);

  std::map<Key, Seen> seen_;  // by the last look
  std::set<Key> told_;
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_RANKS_REFUSALS_H_
