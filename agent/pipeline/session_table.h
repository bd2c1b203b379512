// agent/pipeline/session_table.h - the sessions of this node: started, stopped, told about, cleared
//                                  away.
//
// Shape    Start runs a session on its own thread; a profile that already runs is left alone (the
//          daemon repeats itself after a reconnect). LatestUpdate keeps the last word of each session
//          for an hour.
// Threads  thread-safe.
// Bounds   at most kMaxSessions at a time; one more is refused with a notice.
#ifndef AGENT_PIPELINE_SESSION_TABLE_H_
#define AGENT_PIPELINE_SESSION_TABLE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "agent/pipeline/session.h"
#include "core/base/mutex.h"

namespace perfd::agent {

class SessionTable {
 public:
  static constexpr size_t kMaxSessions = 16;

  // `tools.claim_pids` and `tools.release_pid` are set here.
  SessionTable(SessionTools tools, SessionOutput* output);
  ~SessionTable();  // waits for all, however long that takes

  void Start(SessionRequest request);
  // Suspends every session and starts no more: their windows are handed over, but the daemon is not
  // told of an end and asks the next agent for the rest. Takes a few seconds, `patience` at most;
  // false: some do not answer, and run on.
  static constexpr absl::Duration kEndPatience = absl::Seconds(10);
  bool EndAll(absl::Duration patience = kEndPatience);
  void Stop(const std::string& profile_id);
  void Measure(MeasureOrder order);
  // Remembers a session's last word; call for every news.
  void Remember(const SessionUpdate& update);
  std::vector<SessionUpdate> LatestUpdate();
  // Joins threads of sessions that are over, forgets old news.
  void Tidy();
  int running() const;

 private:
  struct Entry {
    std::unique_ptr<Session> session;
    std::thread thread;
    bool over = false;
  };
  struct LastWord {
    SessionUpdate update;
    std::vector<Notice> notices;  // all of them, for a daemon that heard none
    int64_t at_ns = 0;
  };
  // The news with which a start is answered when it must not happen: it is over already, or there
  // is no room.
  std::optional<SessionUpdate> AnswerInstead(const std::string& profile_id);
  std::vector<int32_t> Claim(const std::string& profile_id, const std::vector<int32_t>& pids);
  void Release(const std::string& profile_id, int32_t pid);
  void OnOver(const std::string& profile_id);
  bool AllOver() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const SessionTools tools_;
  SessionOutput* const output_;
  mutable Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<int32_t, std::string> claims_ ABSL_GUARDED_BY(mutex_);  // pid -> profile
  std::map<std::string, LastWord> last_words_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_SESSION_TABLE_H_
