#include "daemon/control/session_table.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/hosts/host_list.h"
#include "core/spec/spec.h"

namespace perfd::daemon {
namespace {

void Append(Decisions& out, Decisions more) {
  out.insert(out.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

absl::Status Authorise(const SubmitRequest& request) {
  const std::string& user = request.spec.target.user;
  if (request.requester.privileged || user.empty() || user == request.requester.name)
    return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("user ", request.requester.name, " may not profile processes of user ", user,
                   ": ask the site to put you into perfd's --admin-group"));
}

// `usable` is sorted.
absl::StatusOr<std::vector<std::string>> NodesOfJob(const SubmitRequest& request,
                                                    const std::vector<std::string>& usable) {
  std::vector<std::string> nodes;
  for (const std::string& node : request.nodes) {
    if (std::binary_search(usable.begin(), usable.end(), node)) nodes.push_back(node);
  }
  if (nodes.empty())
    return absl::UnavailableError(
        "none of the job's nodes has a connected agent that serves its user");
  return nodes;
}

// Empty: the request names none. A name that is an agent's is no list, whatever is in it.
absl::StatusOr<std::vector<std::string>> NamedNodes(
    const TargetSpec& target, const std::map<std::string, AgentFacts>& agents) {
  if (target.node.empty() || agents.contains(target.node))
    return std::vector<std::string>(!target.node.empty(), target.node);
  auto nodes = ExpandHostList(target.node);
  if (!nodes.ok())
    return absl::InvalidArgumentError(absl::StrCat("target.node: ", nodes.status().message()));
  if (!target.pids.empty() && nodes->size() > 1)
    return absl::InvalidArgumentError("pids are those of one node: target.node names several");
  std::sort(nodes->begin(), nodes->end());
  return nodes;
}

// `nodes` and `usable` are sorted.
absl::Status CheckConnected(const std::vector<std::string>& nodes,
                            const std::vector<std::string>& usable) {
  std::vector<std::string> missing;
  std::set_difference(nodes.begin(), nodes.end(), usable.begin(), usable.end(),
                      std::back_inserter(missing));
  if (missing.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      missing.size() > 1 ? "nodes " : "node ", SomeHosts(missing),
      missing.size() > 1 ? " are" : " is", " not connected (connected: ", SomeHosts(usable), ")"));
}

// An agent that does not know trees would measure the named processes only, and say nothing.
absl::Status CheckTakesTrees(const std::vector<std::string>& nodes,
                             const std::map<std::string, AgentFacts>& agents) {
  for (const std::string& node : nodes) {
    const auto it = agents.find(node);
    if (it == agents.end() || it->second.abilities.process_trees) continue;
    return absl::UnimplementedError(absl::StrCat(
        "the agent of node ", node, " (version ", it->second.version,
        ") cannot follow process trees: update it, or name the processes that work with --pid"));
  }
  return absl::OkStatus();
}

// All of them are users' own: what they measure takes nothing of the site's nodes.
bool AreInUserMode(const std::vector<std::string>& nodes,
                   const std::map<std::string, AgentFacts>& agents) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
    const auto it = agents.find(node);
    return it != agents.end() && it->second.user_mode;
  });
}

// Profiles that the site asks for are not their user's, and have the places that are kept back. Those of agents in user mode alone have
// no place of everyone's: agents cost their user nothing to start.
absl::StatusOr<ProfilePlaces> AcquirePlaces(const SubmitRequest& request, bool in_user_mode,
                                            Limits& limits) {
  ProfilePlaces places;
  Requester who = request.requester;
  if (request.by_site) {
    who.privileged = true;
  } else {
    RETURN_IF_ERROR(limits.Check(Limit::kActiveBytesPerUser, who));
    ASSIGN_OR_RETURN(places.own, limits.Acquire(Limit::kProfilesPerUser, who));
  }
  if (!in_user_mode) {
    ASSIGN_OR_RETURN(places.all, limits.Acquire(Limit::kProfiles, who));
  }
  return places;
}

bool KeepsCallPaths(const ProfileSpec& spec) {
  return spec.hotspots.callpaths != CallPaths::kOff && spec.hotspots.callpaths != CallPaths::kAuto;
}

// What one request may ask for.
absl::Status CheckAsked(const SubmitRequest& request, Limits& limits) {
  if (request.by_site) return absl::OkStatus();
  const ProfileSpec& spec = request.spec;
  const Requester& who = request.requester;
  const double minutes =
      static_cast<double>(spec.duration_ns) / (60 * static_cast<double>(kNsPerSecond));
  RETURN_IF_ERROR(limits.CheckAsked(Limit::kProfileMinutes, who, minutes));
  RETURN_IF_ERROR(limits.CheckAsked(Limit::kFrequency, who, spec.hotspots.frequency_hz));
  if (!KeepsCallPaths(spec)) return absl::OkStatus();
  return limits.CheckAsked(Limit::kCallPathFrequency, who, spec.hotspots.frequency_hz);
}

bool AltersLoops(const ProfileSpec& spec) {
  return !spec.variants.set.empty() && !spec.dry_run;
}

// What a profile of that length may spend on altered loops: a whole second for what is begun.
int64_t AlteringSeconds(const ProfileSpec& spec, int64_t duration_ns) {
  if (!AltersLoops(spec)) return 0;
  const double ns = static_cast<double>(duration_ns) * spec.budget.overhead_ratio;
  return static_cast<int64_t>(std::ceil(ns / static_cast<double>(kNsPerSecond)));
}

absl::StatusOr<Payment> PaySeconds(const SubmitRequest& request, Limits& limits, Moment now) {
  if (request.by_site || request.requester.privileged) return Payment();
  return limits.Spend(Limit::kAlteringSecondsPerUser, request.requester.uid,
                      AlteringSeconds(request.spec, request.spec.duration_ns), now.unix_ns);
}

// Of a node that was asked, and while it measures; what the site asks for has no bound.
absl::Status OccupyPlaces(const std::string& node, const SessionUpdate& update,
                          const ProfileStatus& profile, Limits& limits, ProfilePlaces& places) {
  using Phase = NodeProgress::Phase;
  const bool at_work = update.phase == Phase::kDiscovering || update.phase == Phase::kSampling;
  if (!at_work || !places.own.held() || !StandingIn(profile, node).asked) return absl::OkStatus();
  NodeProgress now;
  now.node = node;
  now.ranks = update.ranks;
  now.threads = update.threads;
  return places.ranks.Update(now, profile.requester, limits);
}

bool Serves(const AgentFacts& agent, const Requester& requester) {
  return !agent.user_mode || agent.uid == requester.uid;
}

}  // namespace

Decisions SessionTable::AgentConnected(const AgentFacts& facts, Moment now) {
  agents_[facts.node] = facts;
  Decisions out;
  for (const std::string& id : facts.active_profiles) {
    const auto it = sessions_.find(id);
    if (it == sessions_.end() ||
        !StandingIn(it->second.session.stored_status(), facts.node).asked) {
      out.push_back(StopNode{facts.node, id, "the profile is over"});
    }
  }
  for (auto& [id, active] : sessions_) {
    if (Serves(facts, active.session.stored_status().requester))
      Append(out, active.session.Connected(facts, now));
  }
  return out;
}

void SessionTable::ClockRead(const std::string& node, const ClockReading& reading) {
  const auto it = agents_.find(node);
  if (it == agents_.end()) return;
  it->second.clock = reading;
  for (auto& [id, active] : sessions_) active.session.Know(it->second);
}

Decisions SessionTable::AgentGone(const std::string& node, Moment now) {
  agents_.erase(node);
  Decisions out;
  for (auto& [id, active] : sessions_) Append(out, active.session.Disconnected(node, now));
  return out;
}

const AgentFacts* SessionTable::FindAgent(const std::string& node) const {
  const auto it = agents_.find(node);
  return it == agents_.end() ? nullptr : &it->second;
}

const AgentFacts* SessionTable::AgentFor(const std::string& node,
                                         const Requester& requester) const {
  const AgentFacts* agent = FindAgent(node);
  return agent != nullptr && Serves(*agent, requester) ? agent : nullptr;
}

absl::StatusOr<PlannedProfile> SessionTable::Plan(const SubmitRequest& request, Moment now) const {
  RETURN_IF_ERROR(ValidateProfileSpec(request.spec));
  RETURN_IF_ERROR(Authorise(request));
  RETURN_IF_ERROR(CheckAsked(request, limits_));
  PlannedProfile planned;
  ASSIGN_OR_RETURN(const std::vector<std::string> nodes, ChooseNodes(request));
  ASSIGN_OR_RETURN(planned.places, AcquirePlaces(request, AreInUserMode(nodes, agents_), limits_));
  if (request.spec.target.tree) RETURN_IF_ERROR(CheckTakesTrees(nodes, agents_));
  ProfileStatus& status = planned.status;
  status.name = request.spec.name;
  status.requester = request.requester;
  status.spec = request.spec;
  status.submitted_unix_ns = now.unix_ns;
  for (const std::string& node : nodes) {
    NodeProgress progress;
    progress.node = node;
    status.nodes.push_back(progress);
  }
  ASSIGN_OR_RETURN(planned.places.seconds, PaySeconds(request, limits_, now));
  return planned;
}

absl::StatusOr<std::vector<std::string>> SessionTable::ChooseNodes(
    const SubmitRequest& request) const {
  const TargetSpec& target = request.spec.target;
  if (request.await_nodes && !request.nodes.empty()) return request.nodes;
  if (agents_.empty()) {
    return absl::UnavailableError("no node is connected: start perf-agent on the nodes of the job");
  }
  ASSIGN_OR_RETURN(std::vector<std::string> named, NamedNodes(target, agents_));
  std::vector<std::string> usable;
  for (const auto& [node, agent] : agents_) {
    const bool asked =
        !agent.abilities.replayed || std::binary_search(named.begin(), named.end(), node);
    if (asked && Serves(agent, request.requester)) usable.push_back(node);
  }
  if (usable.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "the connected agents belong to other users, or show recordings (--node names one "
        "of these): start perf-agent as root, or with --user-mode as ",
        request.requester.name));
  }
  if (!request.nodes.empty()) return NodesOfJob(request, usable);
  if (!named.empty()) {
    RETURN_IF_ERROR(CheckConnected(named, usable));
    return named;
  }
  if (target.pids.empty()) return usable;
  ASSIGN_OR_RETURN(std::string node, NodeOfPids(request, usable));
  return std::vector<std::string>{std::move(node)};
}

absl::StatusOr<std::string> SessionTable::NodeOfPids(const SubmitRequest& request,
                                                     const std::vector<std::string>& usable) const {
  if (std::find(usable.begin(), usable.end(), request.client_node) != usable.end())
    return request.client_node;
  if (usable.size() == 1) return usable.front();
  return absl::InvalidArgumentError(absl::StrCat(
      "pids need a node: ", request.client_node.empty() ? "your host" : request.client_node,
      " has no agent and several nodes are connected (", SomeHosts(usable), "): set target.node"));
}

Decisions SessionTable::Add(PlannedProfile planned, Moment now,
                            const std::optional<FollowedJob>& job) {
  std::string id = planned.status.id;
  auto [it, added] = sessions_.try_emplace(
      id, ActiveProfile{{std::move(planned.status), control_, now}, std::move(planned.places)});
  if (!added) return {};
  if (job.has_value()) it->second.session.FollowJob(*job, now);
  for (const auto& [node, facts] : agents_) it->second.session.Know(facts);
  // A node may have left between Plan and Add, or have only an agent of another user; its grace begins now.
  const Requester requester = it->second.session.stored_status().requester;
  Decisions out = it->second.session.Start(now);
  for (const NodeProgress& node : it->second.session.stored_status().nodes) {
    if (AgentFor(node.node, requester) == nullptr)
      Append(out, it->second.session.Disconnected(node.node, now));
  }
  std::erase_if(out, [&](const Decision& decision) {
    const auto* start = std::get_if<StartNode>(&decision);
    return start != nullptr && AgentFor(start->node, requester) == nullptr;
  });
  return out;
}

void SessionTable::Restore(ProfileStatus status, Moment now,
                           const std::optional<FollowedJob>& job) {
  std::string id = status.id;
  const uint32_t uid = status.requester.uid;
  ProfilePlaces places;
  places.all = limits_.Hold(Limit::kProfiles, uid);
  if (!job.has_value()) {
    places.own = limits_.Hold(Limit::kProfilesPerUser, uid);
    places.ranks.Restore(status, limits_);
  }
  auto [it, added] = sessions_.try_emplace(
      id, ActiveProfile{{std::move(status), control_, now}, std::move(places)});
  if (!added) return;
  it->second.session.Restore(now);
  if (job.has_value()) it->second.session.FollowJob(*job, now);
}

Decisions SessionTable::Join(const std::string& profile_id, const std::string& node, Moment now) {
  const auto it = sessions_.find(profile_id);
  if (it == sessions_.end()) return {};
  return it->second.session.Join(node, AgentFor(node, it->second.session.stored_status().requester),
                                 now);
}

Decisions SessionTable::JobEnded(const std::string& profile_id, const std::string& node,
                                 Moment now) {
  const auto it = sessions_.find(profile_id);
  return it == sessions_.end() ? Decisions{} : it->second.session.JobEnded(node, now);
}

Decisions SessionTable::Update(const std::string& node, const SessionUpdate& update, Moment now) {
  const auto it = sessions_.find(update.profile_id);
  if (it != sessions_.end()) {
    ActiveProfile& active = it->second;
    Decisions out = active.session.Update(node, update, now);
    const bool goes_on = std::none_of(out.begin(), out.end(), [](const Decision& decision) {
      return std::holds_alternative<StopNode>(decision);
    });
    if (!goes_on) return out;
    const absl::Status fits =
        OccupyPlaces(node, update, active.session.stored_status(), limits_, active.places);
    if (!fits.ok())
      Append(out, active.session.Cancel(absl::StrCat("perfd: ", fits.message()), now));
    return out;
  }
  if (update.phase == NodeProgress::Phase::kFinished ||
      update.phase == NodeProgress::Phase::kFailed)
    return {};
  return {StopNode{node, update.profile_id, "the profile is over"}};
}

Decisions SessionTable::Stored(const StoredWindow& window, Moment now) {
  const auto it = sessions_.find(window.profile_id);
  return it == sessions_.end() ? Decisions{} : it->second.session.Stored(window, now);
}

Decisions SessionTable::Refused(const RefusedWindow& window, Moment now) {
  const auto it = sessions_.find(window.profile_id);
  return it == sessions_.end() ? Decisions{} : it->second.session.Refused(window, now);
}

std::optional<Standing> SessionTable::StandingOf(const std::string& profile_id,
                                                 const std::string& node) const {
  const auto it = sessions_.find(profile_id);
  if (it == sessions_.end()) return std::nullopt;
  return StandingIn(it->second.session.stored_status(), node);
}

absl::StatusOr<Decisions> SessionTable::Cancel(const std::string& profile_id, const std::string& by,
                                               Moment now) {
  const auto it = sessions_.find(profile_id);
  if (it == sessions_.end()) {
    return absl::FailedPreconditionError(absl::StrCat(profile_id, " is already over"));
  }
  return it->second.session.Cancel(by, now);
}

std::vector<ProfileStatus> SessionTable::WantingLoops(Moment now) const {
  std::vector<ProfileStatus> wanting;
  for (const auto& [id, active] : sessions_) {
    if (active.session.WantsLoops(now)) wanting.push_back(active.session.stored_status());
  }
  return wanting;
}

Decisions SessionTable::HotLoops(const std::string& profile_id, std::vector<MeasureLoop> loops,
                                 Moment now) {
  const auto it = sessions_.find(profile_id);
  return it == sessions_.end() ? Decisions{} : it->second.session.HotLoops(std::move(loops), now);
}

std::vector<ProfileStatus> SessionTable::WantingHeat(Moment now) const {
  std::vector<ProfileStatus> wanting;
  for (const auto& [id, active] : sessions_) {
    if (active.session.WantsHeat(now)) wanting.push_back(active.session.stored_status());
  }
  return wanting;
}

Decisions SessionTable::Heat(const std::string& profile_id, const HeatNow& heat, Moment now) {
  const auto it = sessions_.find(profile_id);
  return it == sessions_.end() ? Decisions{} : it->second.session.Heat(heat, now);
}

Decisions SessionTable::Tick(Moment now) {
  Decisions out;
  for (auto& [id, active] : sessions_) Append(out, active.session.Tick(now));
  return out;
}

Decisions SessionTable::Finalised(const std::string& profile_id, bool ok, Moment now) {
  const auto it = sessions_.find(profile_id);
  if (it == sessions_.end()) return {};
  Decisions out = it->second.session.Finalised(ok, now);
  auto& [session, places] = it->second;
  if (!session.final()) return out;
  // By perfd's own clock: when it began is the agent's word.
  const ProfileStatus& status = session.stored_status();
  const int64_t took_ns = std::max<int64_t>(0, status.finished_unix_ns - status.submitted_unix_ns);
  places.seconds.Use(AlteringSeconds(status.spec, took_ns));
  sessions_.erase(it);
  return out;
}

absl::StatusOr<ProfileStatus> SessionTable::Status(const std::string& profile_id,
                                                   Moment now) const {
  const auto it = sessions_.find(profile_id);
  if (it == sessions_.end()) return absl::NotFoundError(absl::StrCat(profile_id, " is not active"));
  return it->second.session.Status(now);
}

std::vector<std::string> SessionTable::Ids() const {
  std::vector<std::string> ids;
  for (const auto& [id, active] : sessions_) ids.push_back(id);
  return ids;
}

std::vector<ProfileStatus> SessionTable::Statuses(Moment now) const {
  std::vector<ProfileStatus> statuses;
  for (const auto& [id, active] : sessions_) statuses.push_back(active.session.Status(now));
  return statuses;
}

}  // namespace perfd::daemon
