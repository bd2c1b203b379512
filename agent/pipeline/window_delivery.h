// agent/pipeline/window_delivery.h - the last step of a window on the node: from the resolver to the spool.
//
// Shape    shared by a session and the resolver's callbacks, which may outlive each other.
// Threads  thread-safe.
// Loss     a window that the spool refuses is counted, and the count goes out with the next one that it takes, or,
//          when there is none, in a notice. Both are DATA_LOSS: the profile is PARTIAL.
#ifndef AGENT_PIPELINE_WINDOW_DELIVERY_H_
#define AGENT_PIPELINE_WINDOW_DELIVERY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "agent/pipeline/resolve_window.h"
#include "agent/pipeline/session_update.h"
#include "core/base/mutex.h"

namespace perfd::agent {

class WindowDelivery {
 public:
  WindowDelivery(SessionOutput* output, std::string profile_id, std::string node);

  void Expect();    // one more window is with the resolver
  void Unexpect();  // it was not taken after all
  void Deliver(Window window, const UnreadableModules& unreadable);
  // Waits until nothing is with the resolver; false at the timeout.
  bool AwaitAll(absl::Duration timeout);
  // The last chance for the counts of windows that found no room: a window with nothing but them.
  void Flush();
  uint64_t last_sequence() const;
  // Troubles since the last call.
  std::vector<Notice> DrainNotices();
  bool HasNotices() const;

 private:
  bool AllDelivered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return outstanding_ == 0; }
  void Hand(Window window) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordUnreadable(const UnreadableModules& unreadable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  SessionOutput* const output_;
  const std::string profile_id_;
  const std::string node_;
  mutable Mutex mutex_;
  int outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  Accounting refused_ ABSL_GUARDED_BY(mutex_);  // of windows that found no room
  SamplingSetup last_setup_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::string> noted_ ABSL_GUARDED_BY(mutex_);
  std::vector<Notice> notices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_WINDOW_DELIVERY_H_
