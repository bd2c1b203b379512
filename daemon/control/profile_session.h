// daemon/control/profile_session.h - one profile from acceptance to its end: the state machine and its deadlines.
//
// Shape    every event returns what is to be done; state moves only along core/model/profile.h CanGo.
//          The final state is taken when the report is stored (Finalised), not before.
// Units    deadlines in monotonic ns.
// Threads  none of its own; thread-compatible.
#ifndef DAEMON_CONTROL_PROFILE_SESSION_H_
#define DAEMON_CONTROL_PROFILE_SESSION_H_

#include <optional>
#include <string>
#include <vector>

#include "core/analysis/hot/hot_phases.h"
#include "core/analysis/job_pauses.h"
#include "core/base/clock.h"
#include "daemon/control/decisions.h"
#include "daemon/control/events.h"
#include "daemon/control/loop_choice.h"
#include "daemon/control/node_session.h"

namespace perfd::daemon {

struct ControlLimits {
  int64_t discovery_ns = 10 * kNsPerSecond;  // a node that found no rank by then is left out
  int64_t away_ns = 60 * kNsPerSecond;       // an agent may be away so long
  int64_t overrun_ns = 60 * kNsPerSecond;    // a profile may end so long after its duration
  int64_t cancel_ns = 10 * kNsPerSecond;     // last windows are awaited so long after a cancel
  int64_t retry_ns = kNsPerSecond;           // between attempts to store the report
  int64_t save_ns = 5 * kNsPerSecond;        // progress is saved at most so often
  int64_t look_ns =
      10 *
      kNsPerSecond;  // sampled before loops are chosen; a quarter of the duration when that is less
  // After the look of a dry run: for finding, reading and preparing its loops.
  int64_t dry_run_ns = 30 * kNsPerSecond;
  size_t notices = 256;  // per profile
};

class ProfileSession {
 public:
  // A new profile (PENDING) or one from the store; nodes are those of `status`.
  ProfileSession(ProfileStatus status, const ControlLimits& limits, Moment now);

  // Asks every node that is connected. `restored`: the daemon was away; agents get their grace to come back.
  Decisions Start(Moment now);
  void Restore(Moment now);
  // The profile follows a job of a scheduler: its ranks are waited for so long, and it ends with the job. Before Start or
  // after Restore.
  void FollowJob(const FollowedJob& job, Moment now);
  // One more node of the job that is followed; `agent` null: it is not connected, and gets the grace of one that left.
  Decisions Join(const std::string& node, const AgentFacts* agent, Moment now);
  // The job has ended on this node; empty: on all of them.
  Decisions JobEnded(const std::string& node, Moment now);

  Decisions Connected(const AgentFacts& facts, Moment now);
  Decisions Disconnected(const std::string& node, Moment now);
  Decisions Update(const std::string& node, const SessionUpdate& update, Moment now);
  Decisions Stored(const StoredWindow& window, Moment now);
  Decisions Refused(const RefusedWindow& window, Moment now);
  Decisions Cancel(const std::string& by, Moment now);
  Decisions Tick(Moment now);
  // What the agent of a node said when it connected, or how its clock was read since.
  void Know(const AgentFacts& facts);
  // True when enough was sampled to say which loops are hot, and variants of them are asked for.
  bool WantsLoops(Moment now) const;
  // The hot loops of the whole job: every node measures them. None: asked again a while later.
  Decisions HotLoops(std::vector<MeasureLoop> loops, Moment now);
  // True when it is to be said again what is hot: variants are being measured, and there is time to measure others; or nothing but
  // samples is asked for, until they tell enough.
  bool WantsHeat(Moment now) const;
  // Nodes are told when another set of loops is to be measured from now on.
  Decisions Heat(const HeatNow& heat, Moment now);
  // The report is stored (or could not be: it is tried again).
  Decisions Finalised(bool ok, Moment now);

  ProfileStatus Status(Moment now) const;
  const ProfileStatus& stored_status() const { return status_; }
  bool final() const { return IsFinal(status_.state); }
  // Of a scheduler, whose site asked for it.
  bool follows_job() const { return wait_until_ns_.has_value(); }
  void AddNotice(Notice notice);

 private:
  NodeSession* FindNode(const std::string& node);
  StartNode Ask(NodeSession& node, Moment now);
  int64_t DiscoveryNs() const;
  // How long nodes sample at most: a dry run only looks.
  int64_t SpanNs() const;
  int64_t Remaining(const NodeSession& node) const;
  bool HadEnded(const NodeSession& node) const;
  MeasureNode Order(const NodeSession& node) const;
  void Share(const NodeSession& node, MeasureOrder& order) const;
  void GiveLeases(Moment now);
  bool KnowsItsNodes(Moment now) const;
  void RecordLeases(const StoredWindow& window);
  void ReportCharge(Moment now, Decisions& out);
  Decisions OrderAll() const;
  void Go(ProfileState state, Decisions& out);
  void RecordFirstSample(Moment now, int64_t started_unix_ns, Decisions& out);
  void GiveUp(NodeSession& node, absl::StatusCode code, const std::string& why, Decisions& out);
  void CheckDeadlines(Moment now, Decisions& out);
  void CheckDiscovery(NodeSession& node, Moment now, Decisions& out);
  int64_t MostLeftNs(Moment now) const;
  // Ends a profile that lasts until it knows.
  void CheckKnown(Moment now, Decisions& out);
  void Evaluate(Moment now, Decisions& out);
  void Finish(ProfileState outcome, Moment now, Decisions& out);
  ProfileState Outcome();
  bool LooksPartial() const;
  void RecordMissingWindows();
  void RecordNothingFound();
  std::string NothingFoundText() const;
  bool StillWaits(const NodeSession& node, Moment now) const;
  void CopyNodes(ProfileStatus& status) const;
  double Progress(Moment now) const;
  Decisions Save(Moment now);

  ProfileStatus status_;
  ControlLimits limits_;
  std::vector<NodeSession> nodes_;
  int64_t begin_ns_ = 0;     // monotonic: accepted
  int64_t deadline_ns_ = 0;  // monotonic: everything is over by then
  int64_t first_sample_ns_ = 0;
  int64_t saved_ns_ = 0;
  std::optional<int64_t> restored_ns_;  // monotonic: the daemon came back
  // Monotonic: ranks of the job that is followed are waited for until then; nothing: no job is followed.
  std::optional<int64_t> wait_until_ns_;
  int64_t join_wait_ns_ = 0;  // how long on a node that joins later
  std::string job_name_;      // of that job, for people
  LoopChoice choice_;
  UntilKnown known_;
  int32_t sharers_ = 1;  // nodes that were at work when the first order went out
  int32_t leases_ = 0;   // of those, how many hold a lease
  LeaseLedger ledger_;
  double charge_ = 0;      // told; 0: nothing yet
  int64_t charge_ns_ = 0;  // reckoned last
  bool paused_ = false;    // since then
  bool dirty_ = false;
  std::optional<int64_t> cancelled_ns_;
  std::optional<ProfileStatus> outcome_;  // being stored
  std::optional<int64_t> retry_ns_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_CONTROL_PROFILE_SESSION_H_
