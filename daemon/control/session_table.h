// daemon/control/session_table.h - every profile that is not over, and the agents that could work on them.
//
// Shape    events in, decisions out; it sends nothing, stores nothing and reads no clock.
// Errors   Plan: kInvalidArgument, kPermissionDenied, kUnavailable (no node), kResourceExhausted.
// Threads  none of its own; thread-compatible: the pipeline's lock covers it.
#ifndef DAEMON_CONTROL_SESSION_TABLE_H_
#define DAEMON_CONTROL_SESSION_TABLE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/control/decisions.h"
#include "daemon/control/events.h"
#include "daemon/control/planned_profile.h"
#include "daemon/control/profile_session.h"
#include "daemon/control/sender_check.h"
#include "daemon/limits/limits.h"

namespace perfd::daemon {

class SessionTable {
 public:
  // `limits` outlives it.
  explicit SessionTable(Limits& limits, ControlLimits control = {})
      : limits_(limits), control_(control) {}

  Decisions AgentConnected(const AgentFacts& facts, Moment now);
  Decisions AgentGone(const std::string& node, Moment now);
  void ClockRead(const std::string& node, const ClockReading& reading);
  const AgentFacts* FindAgent(const std::string& node) const;

  // What a request begins with, or why it is refused: the store gives profiles their ids, outside the lock, and others may
  // plan meanwhile.
  absl::StatusOr<PlannedProfile> Plan(const SubmitRequest& request, Moment now) const;
  // Begins a planned profile that has its id. `job`: of a scheduler, which it follows (ProfileSession::FollowJob).
  Decisions Add(PlannedProfile planned, Moment now,
                const std::optional<FollowedJob>& job = std::nullopt);
  // Takes up a profile the store says is not over, whatever the limits are now.
  void Restore(ProfileStatus status, Moment now,
               const std::optional<FollowedJob>& job = std::nullopt);
  // One more node of the job that a profile follows.
  Decisions Join(const std::string& profile_id, const std::string& node, Moment now);
  Decisions JobEnded(const std::string& profile_id, const std::string& node, Moment now);

  Decisions Update(const std::string& node, const SessionUpdate& update, Moment now);
  Decisions Stored(const StoredWindow& window, Moment now);
  Decisions Refused(const RefusedWindow& window, Moment now);
  absl::StatusOr<Decisions> Cancel(const std::string& profile_id, const std::string& by,
                                   Moment now);
  Decisions Tick(Moment now);
  // Profiles whose hot loops are wanted now; answered with HotLoops.
  std::vector<ProfileStatus> WantingLoops(Moment now) const;
  Decisions HotLoops(const std::string& profile_id, std::vector<MeasureLoop> loops, Moment now);
  // Profiles whose hot loops are to be chosen again now; answered with Heat.
  std::vector<ProfileStatus> WantingHeat(Moment now) const;
  Decisions Heat(const std::string& profile_id, const HeatNow& heat, Moment now);
  // The profile leaves the table when `ok`.
  Decisions Finalised(const std::string& profile_id, bool ok, Moment now);

  bool Active(const std::string& profile_id) const { return sessions_.contains(profile_id); }
  // Of an active profile.
  std::optional<Standing> StandingOf(const std::string& profile_id, const std::string& node) const;
  absl::StatusOr<ProfileStatus> Status(const std::string& profile_id, Moment now) const;
  std::vector<ProfileStatus> Statuses(Moment now) const;
  std::vector<std::string> Ids() const;
  size_t size() const { return sessions_.size(); }

 private:
  // Null: none is connected that serves the user.
  const AgentFacts* AgentFor(const std::string& node, const Requester& requester) const;
  absl::StatusOr<std::vector<std::string>> ChooseNodes(const SubmitRequest& request) const;
  absl::StatusOr<std::string> NodeOfPids(const SubmitRequest& request,
                                         const std::vector<std::string>& usable) const;

  struct ActiveProfile {
    ProfileSession session;
    ProfilePlaces places;
  };

  Limits& limits_;
  const ControlLimits control_;
  std::map<std::string, AgentFacts> agents_;  // connected, by node
  std::map<std::string, ActiveProfile> sessions_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_CONTROL_SESSION_TABLE_H_
