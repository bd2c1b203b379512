// agent/experiment/late_healer.h - takes out of ranks what could not be taken out when their profile ended: they were stopped,
// or a debugger held them.
//
// Shape    Leave a rank; it is healed by its journal, again and again, until nothing of ours is left in it or it has ended.
//          Claim it before anybody alters it anew.
// Units    ns between rounds over all ranks: first_ns, each time twice as long, longest_ns at most.
// Errors   what goes wrong is logged and tried again. At most kMostRanks wait; Leave says false when it takes no more: their
//          journals stay for the next profile and the next agent (docs/adr/0023-who-heals.md).
// Threads  thread-safe. Its own thread, "perfd-heal", is begun by the first Leave; the destructor waits for the heal under way.
#ifndef AGENT_EXPERIMENT_LATE_HEALER_H_
#define AGENT_EXPERIMENT_LATE_HEALER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "agent/attach/tracer.h"
#include "agent/shadow/journal.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/model/identity.h"

namespace perfd::agent {

struct LateHealerOptions {
  // OK: nothing of ours is in it any more. Called from the healer's thread.
  std::function<absl::Status(const RankInfo&)> heal;
  int64_t first_ns = kNsPerSecond;
  int64_t longest_ns = 30 * kNsPerSecond;
};

// By the rank's journal, which outlives the function, with a tracer of its own. `answers`: as InjectorOptions.
std::function<absl::Status(const RankInfo&)> HealByJournal(
    TracerOptions tracer, const Journal* journal,
    std::function<absl::Status(int32_t pid)> answers);

class LateHealer {
 public:
  static constexpr size_t kMostRanks = 4096;

  explicit LateHealer(LateHealerOptions options) : options_(std::move(options)) {}
  ~LateHealer();
  LateHealer(const LateHealer&) = delete;
  LateHealer& operator=(const LateHealer&) = delete;

  bool HealLater(const RankInfo& rank);
  // Forgets it; waits while it is being healed. True: it was to be healed.
  bool Claim(const RankInfo& rank);
  size_t waiting() const;

 private:
  void Run();
  bool AwaitRanks();                 // false: to be stopped
  bool AwaitTurn(int64_t wait_ns);   // false: to be stopped, or nobody waits any more
  bool Begin(const RankInfo& rank);  // false: it waits no more
  void HealOnce();

  const LateHealerOptions options_;
  mutable Mutex mutex_;
  std::vector<RankInfo> ranks_ ABSL_GUARDED_BY(mutex_);
  int32_t under_way_ ABSL_GUARDED_BY(mutex_) = 0;  // pid; 0: none
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // begun by the first Leave, under mutex_
};

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LATE_HEALER_H_
