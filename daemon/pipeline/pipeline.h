// daemon/pipeline/pipeline.h - the daemon's spine: the one place that knows the order of its parts.
//
// Shape    agents: window -> ingest -> store -> aggregate -> control -> report -> store.
//          people: request -> control -> commands to agents; questions -> control, store, aggregate.
// Errors   kNotFound, kPermissionDenied (another user's profile), kUnavailable, kResourceExhausted, ...
// Threads  thread-safe. Own threads: perfd-merge (in the order of commits), perfd-tick, perfd-chores.
//          Commands to agents are queued under the lock, so that they keep their order.
#ifndef DAEMON_PIPELINE_PIPELINE_H_
#define DAEMON_PIPELINE_PIPELINE_H_

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/clock.h"
#include "core/model/node.h"
#include "core/model/report.h"
#include "daemon/control/session_table.h"
#include "daemon/ingest/ingest.h"
#include "daemon/ingest/worker.h"
#include "daemon/metrics/figures.h"
#include "daemon/pipeline/agent_book.h"
#include "daemon/pipeline/doctor_rounds.h"
#include "daemon/pipeline/results.h"
#include "daemon/store/sqlite_store.h"

namespace perfd {

struct PipelineOptions {
  RetentionPolicy retention;
  ControlLimits limits;
  int hot_loops = 12;                                      // per profile in the figures
  std::function<void(double seconds)> on_attach;           // submit to first sample; may be empty
  std::function<std::vector<DoctorCheck>()> extra_checks;  // of the service; may be empty
};

struct WatchView {
  ProfileStatus status;
  std::vector<ReportRow> top_loops;
};

class Pipeline {
 public:
  Pipeline(SqliteStore& store, const Clock& clock, PipelineOptions options);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Takes up the profiles that were not over. Before anything else.
  absl::Status Restore();
  // Starts the clockwork; without it Tick is called by hand (tests).
  void Run();
  // Merges and stores what is queued. Streams must have ended.
  void Stop();
  void Tick();

  // People.
  absl::StatusOr<ProfileStatus> Submit(const SubmitRequest& request);
  absl::StatusOr<ProfileStatus> Get(const Requester& requester, const std::string& id);
  absl::StatusOr<std::vector<ProfileStatus>> List(const Requester& requester, bool active_only,
                                                  int32_t limit);
  absl::StatusOr<Report> GetReport(const Requester& requester, const std::string& id);
  absl::StatusOr<WatchView> Watch(const Requester& requester, const std::string& id,
                                  int32_t top_loops);
  absl::StatusOr<ProfileStatus> Cancel(const Requester& requester, const std::string& id);
  std::vector<NodeStatus> Nodes();
  // `node` empty: every node. `done` runs on another thread, within about 5 s.
  absl::Status Doctor(const std::string& node, DoctorRounds::Done done);

  // Agents. AgentConnected welcomes the agent through its link and returns the number of the connection.
  absl::StatusOr<uint64_t> AgentConnected(AgentFacts facts, std::shared_ptr<AgentLink> link);
  void AgentGone(uint64_t connection);
  void Heartbeat(uint64_t connection, const AgentHealth& health);
  void News(uint64_t connection, const SessionUpdate& update);
  // done(OK): acknowledge.
  void TakeWindow(uint64_t connection, IncomingWindow window,
                  std::function<void(absl::Status)> done);
  void DoctorAnswer(uint64_t connection, uint64_t request_id, std::vector<DoctorCheck> checks);
  void CountMalformed();

  DaemonFigures Figures();
  bool Healthy() const { return store_.healthy(); }

 private:
  struct LateProfile {
    uint64_t windows = 0;
    int64_t due_ns = 0;
  };
  struct RecentProfile {
    ProfileFigure figure;
    int64_t until_ns = 0;
  };

  Moment Now() const { return {clock_.MonotonicNs(), clock_.UnixNs()}; }
  Ingest::Ports IngestPorts();
  bool MaySpeakFor(const AgentFacts& agent, const std::string& profile_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ProfileFate Fate(const std::string& profile_id);
  void Merge(const IncomingWindow& incoming, const Appended& appended);
  void Execute(const Decisions& decisions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Save(const ProfileStatus& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PostFinalise(const ProfileStatus& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finalise(const ProfileStatus& status);
  void RebuildLate(const std::string& profile_id, uint64_t windows);
  void Remember(const Report& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TickLoop();
  void Chores();
  absl::StatusOr<std::string> Resolve(const Requester& requester, const std::string& text);
  absl::StatusOr<ProfileStatus> Visible(const Requester& requester, const std::string& id);
  std::vector<DoctorCheck> OwnChecks();
  std::vector<ProfileFigure> HotProfiles();

  SqliteStore& store_;
  const Clock& clock_;
  const PipelineOptions options_;
  Results results_;

  absl::Mutex mutex_;
  SessionTable table_ ABSL_GUARDED_BY(mutex_);
  AgentBook book_ ABSL_GUARDED_BY(mutex_);
  DoctorRounds doctor_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> attached_
      ABSL_GUARDED_BY(mutex_);  // active profiles whose first sample was noted
  std::map<std::string, LateProfile> late_ ABSL_GUARDED_BY(mutex_);
  std::deque<RecentProfile> recent_ ABSL_GUARDED_BY(mutex_);
  uint64_t malformed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t chores_due_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> chores_running_{false};

  // Last: their threads use everything above.
  Ingest ingest_;
  Worker merge_;
  Worker chores_;
  std::thread ticker_;
};

}  // namespace perfd

#endif  // DAEMON_PIPELINE_PIPELINE_H_
