// agent/replay/replay_queue.h - the profiles of a recording: replayed one after the other, the last word of each remembered.
//
// Shape    Start, Stop; LatestUpdate. A profile that was started already is not started again: the daemon repeats itself after a
//          reconnect, and what has ended answers with its last word.
// Bounds   kMostWaiting wait for the one that is replayed; kMostLastWords are remembered.
// Threads  thread-safe; one thread of its own ("perfd-replay").
#ifndef AGENT_REPLAY_REPLAY_QUEUE_H_
#define AGENT_REPLAY_REPLAY_QUEUE_H_

#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "agent/pipeline/session_update.h"
#include "agent/replay/replay_session.h"
#include "core/base/bounded_queue.h"
#include "core/base/mutex.h"

namespace perfd::agent {

class ReplayQueue {
 public:
  static constexpr size_t kMostWaiting = 16;
  static constexpr size_t kMostLastWords = 1024;

  explicit ReplayQueue(ReplayTools tools);
  ~ReplayQueue();  // ends the one that is replayed

  void Start(SessionRequest request);
  void Stop(const std::string& profile_id);
  bool Knows(const std::string& profile_id) const;
  // Call for every news.
  void Remember(const SessionUpdate& update);
  std::vector<SessionUpdate> LatestUpdate() const;
  int running() const;

 private:
  void Run();
  void RunOne(SessionRequest request);

  const ReplayTools tools_;
  BoundedQueue<SessionRequest> waiting_{kMostWaiting};
  mutable Mutex mutex_;
  std::map<std::string, SessionUpdate> last_words_ ABSL_GUARDED_BY(mutex_);  // by profile
  std::set<std::string> cancelled_ ABSL_GUARDED_BY(mutex_);  // before their turn
  ReplaySession* session_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::thread thread_;
};

}  // namespace perfd::agent

#endif  // AGENT_REPLAY_REPLAY_QUEUE_H_
