#include "daemon/pipeline/agent_registry.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

// The same agent come back, or the node's own agent in the place of a user's. A user's agent never takes the place of
// another's: it could otherwise catch that agent's commands. Nor does it take the place of its user's other agent that
// is alive: each would come back and throw the other out, for ever.
bool MayReplace(const AgentFacts& present, const AgentFacts& next, bool silent) {
  const bool same_stream = present.stream_id == next.stream_id;
  if (next.user_mode) return present.uid == next.uid && (same_stream || silent);
  return present.user_mode || same_stream || present.uid == next.uid;
}

}  // namespace

bool AgentRegistry::TakesAName(const AgentFacts& next) const {
  const auto it = entries_.find(next.node);
  if (it == entries_.end()) return true;
  const bool is_theirs = it->second.facts.user_mode && it->second.facts.uid == next.uid;
  return next.user_mode && !is_theirs;
}

// A user's own agents hold a name as long as they are connected; those of nodes are remembered.
absl::StatusOr<NamePlaces> AgentRegistry::AcquireName(const AgentFacts& next) {
  NamePlaces places;
  if (next.user_mode) {
    ASSIGN_OR_RETURN(places.own, limits_.Acquire(Limit::kNodeNamesPerUser, next.uid));
  } else if (std::optional<Share> free = limits_.TryAcquire(Limit::kNodeNames, next.uid)) {
    places.all = *std::move(free);
    return places;
  } else if (const auto users =
                 std::find_if(entries_.begin(), entries_.end(),
                              [](const auto& item) { return item.second.facts.user_mode; });
             users != entries_.end()) {
    // Its name goes with its connection.
    users->second.link->Close(absl::ResourceExhaustedError(
        "this agent in user mode makes room for the agent of a node: try again later"));
    places.all = limits_.Hold(Limit::kNodeNames, next.uid);
    return places;
  }
  ASSIGN_OR_RETURN(places.all, limits_.Acquire(Limit::kNodeNames, next.uid));
  return places;
}

absl::StatusOr<uint64_t> AgentRegistry::Connect(const AgentFacts& facts,
                                                std::shared_ptr<AgentLink> link, Moment now) {
  std::optional<NamePlaces> places;
  if (TakesAName(facts)) {
    ASSIGN_OR_RETURN(places, AcquireName(facts));
  }
  Entry& entry = entries_[facts.node];
  if (facts.user_mode && entry.connection == 0 && !entry.facts.node.empty()) {
    auto own = std::make_shared<Entry>(std::move(entry));
    entry = Entry{};
    entry.own = std::move(own);
  }
  if (!facts.user_mode) entry.own.reset();
  if (entry.connection != 0) {
    if (!MayReplace(entry.facts, facts, now.monotonic_ns - entry.heard_ns >= kSilentNs)) {
      return absl::AlreadyExistsError(
          absl::StrCat("node ", facts.node, " already has an agent (of uid ", entry.facts.uid,
                       "): stop it, or give this one another --node"));
    }
    by_connection_.erase(entry.connection);
    entry.link->Close(absl::AbortedError("replaced by a newer connection of the same agent"));
  }
  if (places.has_value()) entry.places = *std::move(places);
  if (!facts.user_mode) entry.places.own = {};
  entry.connection = next_connection_++;
  if (entry.facts.boot_id != facts.boot_id) entry.clock = {};
  entry.clock_asked_ns = 0;
  entry.facts = facts;
  entry.link = std::move(link);
  entry.status = {.node = facts.node,
                  .connected = true,
                  .version = facts.version,
                  .user_mode = facts.user_mode,
                  .replayed = facts.abilities.replayed,
                  .uid = facts.uid,
                  .cpus = facts.cpus,
                  .kernel = facts.kernel,
                  .sampling_event = facts.sampling_event,
                  .last_seen_unix_ns = now.unix_ns,
                  .health = {}};
  entry.status.health.can_inject = facts.can_inject;
  entry.heard_ns = now.monotonic_ns;
  by_connection_[entry.connection] = facts.node;
  return entry.connection;
}

std::string AgentRegistry::Disconnect(uint64_t connection, int64_t now_unix_ns) {
  const auto it = by_connection_.find(connection);
  if (it == by_connection_.end()) return "";
  std::string node = it->second;
  by_connection_.erase(it);
  Entry& entry = entries_[node];
  if (entry.facts.user_mode) {
    if (const std::shared_ptr<Entry> own = std::move(entry.own); own != nullptr)
      entry = std::move(*own);
    else
      entries_.erase(node);
    return node;
  }
  entry.connection = 0;
  entry.link.reset();
  entry.status.connected = false;
  entry.status.last_seen_unix_ns = now_unix_ns;
  return node;
}

AgentRegistry::Entry* AgentRegistry::Find(uint64_t connection) {
  const auto it = by_connection_.find(connection);
  return it == by_connection_.end() ? nullptr : &entries_[it->second];
}

void AgentRegistry::Heard(Entry& entry, Moment now) {
  entry.heard_ns = now.monotonic_ns;
  entry.status.last_seen_unix_ns = now.unix_ns;
}

bool AgentRegistry::MayBeNameOf(const std::string& node, const std::string& stream_id) const {
  const auto it = entries_.find(node);
  return it == entries_.end() || it->second.facts.stream_id == stream_id;
}

std::shared_ptr<AgentLink> AgentRegistry::Link(const std::string& node) const {
  const auto it = entries_.find(node);
  return it == entries_.end() ? nullptr : it->second.link;
}

void AgentRegistry::Forget(int64_t older_than_unix_ns) {
  std::erase_if(entries_, [&](const auto& item) {
    return item.second.connection == 0 && item.second.status.last_seen_unix_ns < older_than_unix_ns;
  });
}

}  // namespace perfd::daemon
