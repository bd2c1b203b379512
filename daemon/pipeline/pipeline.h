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
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/model/history.h"
#include "core/model/node.h"
#include "core/model/report.h"
#include "daemon/control/session_table.h"
#include "daemon/ingest/ingest.h"
#include "daemon/ingest/worker.h"
#include "daemon/limits/peer_log.h"
#include "daemon/metrics/figures.h"
#include "daemon/pipeline/agent_registry.h"
#include "daemon/pipeline/doctor_fanout.h"
#include "daemon/pipeline/history_query.h"
#include "daemon/pipeline/job_admission.h"
#include "daemon/pipeline/pipeline_options.h"
#include "daemon/pipeline/pipeline_records.h"
#include "daemon/pipeline/results.h"
#include "daemon/store/sqlite_store.h"

namespace perfd::daemon {

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
  // Merges and stores what is queued, for some seconds at most; what is left is merged from the store at the next start.
  // Streams must have ended. Without Stop the destructor does.
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
  // The address of the report's page.
  absl::StatusOr<std::string> ReportUrl(const Requester& requester, const std::string& id);
  // The loops of one program over the profiles that the requester may see.
  absl::StatusOr<ProgramHistory> History(const Requester& requester, const std::string& command,
                                         int32_t limit);
  // Injections, newest first; `id` empty: of every profile the requester may see.
  absl::StatusOr<std::vector<AuditEntry>> Audit(const Requester& requester, const std::string& id,
                                                int32_t limit);
  std::vector<NodeStatus> Nodes();
  // `node` empty: every node. Agents of other users are not asked. `done` runs on another thread, within about 5 s.
  absl::Status Doctor(const Requester& requester, const std::string& node, DoctorFanout::Done done);
  // Answers everyone who waits for a Doctor, with what came so far.
  void EndDoctor();
  // Schedulers: their prologs and epilogs.
  JobAdmission& hooks() { return hooks_; }

  // Agents. AgentConnected welcomes the agent through its link and returns the number of the connection.
  absl::StatusOr<uint64_t> AgentConnected(AgentFacts facts, const std::shared_ptr<AgentLink>& link);
  void AgentGone(uint64_t connection);
  void Heartbeat(uint64_t connection, const AgentHealth& health);
  // The answer to AskClock, asked at job time `sent_ns`: the node's CLOCK_MONOTONIC then.
  void ClockAnswer(uint64_t connection, int64_t sent_ns, int64_t here_ns);
  void OnSessionUpdate(uint64_t connection, const SessionUpdate& update);
  // done(OK): acknowledge. A window that can never be taken is acknowledged too: counted, logged, and told its profile.
  void AcceptWindow(uint64_t connection, IncomingWindow window,
                    std::function<void(absl::Status)> done);
  // A window that could not even be read; `from`: as IncomingWindow::sender.
  void RefuseWindow(uint64_t connection, ProfileHolder from, const std::string& profile_id,
                    uint64_t sequence, const absl::Status& why,
                    std::function<void(absl::Status)> done);
  // True: too many windows are under way, of all or of that user's agents; do not read on until `wake` is called (once, from any
  // thread).
  bool AwaitRoom(ProfileHolder sender, std::function<void()> wake) {
    return ingest_.AwaitRoom(sender, std::move(wake));
  }
  void DoctorAnswer(uint64_t connection, uint64_t request_id, std::vector<DoctorCheck> checks);
  void CountMalformed();
  // For lines that agents cause.
  PeerLog& peer_log() { return peer_log_; }

  DaemonFigures Figures();
  bool Healthy() const { return store_.healthy(); }
  // Grows with every turn of the clockwork: who watches it knows that it lives.
  uint64_t turns() const { return turns_; }
  void SetRetention(const RetentionPolicy& retention);
  size_t aggregates() { return results_.size(); }  // in memory

 private:
  Moment Now() const;
  void AskClock(AgentRegistry::Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Ingest::Ports IngestPorts();
  JobAdmission::Ports HookPorts();
  absl::Status RestoreLate();
  void RestoreOne(ProfileStatus status, const std::vector<HookWait>& waits)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Sender> FindSender(uint64_t connection);
  // None: perfd does not know such a profile.
  absl::StatusOr<std::optional<Standing>> StandingOf(const std::string& profile_id,
                                                     const std::string& node);
  absl::Status Check(const Sender& sender, const Window& window,
                     const std::optional<Standing>& standing);
  void PostRefused(ProfileHolder owner, const RefusedWindow& window);
  absl::StatusOr<ProfileDisposition> Disposition(const std::string& profile_id);
  void Merge(const IncomingWindow& incoming, const Appended& appended);
  void ReportStops(const std::vector<AuditEntry>& audit);
  void Execute(const Decisions& decisions) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Save(const ProfileStatus& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PostFinalise(const ProfileStatus& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finalise(const ProfileStatus& status);
  absl::StatusOr<Report> FinaliseOrFail(ProfileStatus status);
  void RebuildLate(const std::string& profile_id, const LateProfile& rebuilt);
  void SweepAggregates();
  int Retain(bool aged);
  void Remember(const Report& report) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ChooseLoops(const ProfileStatus& status);
  void ChooseAgain(const ProfileStatus& status);
  void TickLoop();
  void Maintain();
  absl::StatusOr<std::string> Resolve(const Requester& requester, const std::string& text);
  absl::StatusOr<ProfileStatus> Visible(const Requester& requester, const std::string& id);
  std::vector<DoctorCheck> OwnChecks();
  std::vector<ProfileFigure> HotProfiles();

  SqliteStore& store_;
  const Clock& clock_;
  const PipelineOptions options_;
  const Moment started_;
  std::atomic<uint64_t> turns_{0};
  Results results_;
  HistoryQuery history_;
  JobAdmission hooks_;

  Mutex mutex_;
  SessionTable table_ ABSL_GUARDED_BY(mutex_);
  AgentRegistry registry_ ABSL_GUARDED_BY(mutex_);
  DoctorFanout doctor_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> attached_
      ABSL_GUARDED_BY(mutex_);  // active profiles whose first sample was noted
  std::map<std::string, LateProfile> late_ ABSL_GUARDED_BY(mutex_);
  std::deque<RecentProfile> recent_ ABSL_GUARDED_BY(mutex_);
  std::deque<FreshProfile> fresh_ ABSL_GUARDED_BY(mutex_);  // ended within the last hour of uptime
  PeerLog peer_log_;
  uint64_t malformed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t maintenance_due_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  RetentionPolicy retention_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> maintenance_running_{false};

  // Last: their threads use everything above.
  Ingest ingest_;
  Worker merge_;
  Worker maintenance_;
  std::thread ticker_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_PIPELINE_PIPELINE_H_
