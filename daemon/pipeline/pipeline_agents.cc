// What agents tell the spine.
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "daemon/pipeline/pipeline.h"

namespace perfd {

absl::StatusOr<uint64_t> Pipeline::AgentConnected(AgentFacts facts,
                                                  std::shared_ptr<AgentLink> link) {
  if (!store_.healthy()) {
    return absl::UnavailableError(
        "the daemon's store cannot write (disk full?): keep the windows and try again");
  }
  ASSIGN_OR_RETURN(facts.stored_sequence, store_.StoredSequence(facts.stream_id));
  absl::MutexLock lock(&mutex_);
  const AgentFacts* present = table_.FindAgent(facts.node);
  const Moment now = Now();
  ASSIGN_OR_RETURN(const uint64_t connection, book_.Connect(facts, link, now.unix_ns));
  link->Welcome(facts.stored_sequence);
  if (present != nullptr) Execute(table_.AgentGone(facts.node, now));
  Execute(table_.AgentConnected(facts, now));
  LogInfo("agent of node {} connected: version {}, uid {}{}", facts.node, facts.version, facts.uid,
          facts.user_mode ? ", user mode" : "");
  return connection;
}

void Pipeline::AgentGone(uint64_t connection) {
  absl::MutexLock lock(&mutex_);
  const Moment now = Now();
  const std::string node = book_.Disconnect(connection, now.unix_ns);
  if (node.empty()) return;  // it had been replaced
  LogInfo("agent of node {} disconnected", node);
  Execute(table_.AgentGone(node, now));
}

void Pipeline::Heartbeat(uint64_t connection, const AgentHealth& health) {
  absl::MutexLock lock(&mutex_);
  AgentBook::Entry* entry = book_.Find(connection);
  if (entry == nullptr) return;
  entry->status.health = health;
  entry->status.last_seen_unix_ns = clock_.UnixNs();
}

void Pipeline::News(uint64_t connection, const SessionUpdate& update) {
  absl::MutexLock lock(&mutex_);
  AgentBook::Entry* entry = book_.Find(connection);
  if (entry == nullptr) return;
  const Moment now = Now();
  entry->status.last_seen_unix_ns = now.unix_ns;
  if (MaySpeakFor(entry->facts, update.profile_id))
    Execute(table_.Update(entry->facts.node, update, now));
}

bool Pipeline::MaySpeakFor(const AgentFacts& agent, const std::string& profile_id) {
  if (!agent.user_mode) return true;
  absl::StatusOr<ProfileStatus> status = table_.Status(profile_id, Now());
  if (!status.ok()) status = store_.Profile(profile_id);
  return !status.ok() ||
         status->requester.uid == agent.uid;  // unknown profiles are sorted out by ingest
}

void Pipeline::TakeWindow(uint64_t connection, IncomingWindow window,
                          std::function<void(absl::Status)> done) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    AgentBook::Entry* entry = book_.Find(connection);
    if (entry == nullptr) {
      refused = absl::AbortedError("replaced by a newer connection of the same agent");
    } else if (window.window.node != entry->facts.node ||
               window.window.stream_id != entry->facts.stream_id) {
      refused = absl::InvalidArgumentError(
          absl::StrCat("a window of node '", window.window.node, "' came from the agent of node '",
                       entry->facts.node, "' or names a stream that is not its own"));
    } else if (!MaySpeakFor(entry->facts, window.window.profile_id)) {
      refused = absl::PermissionDeniedError(
          "a user-mode agent may only speak for its own user's profiles");
    }
  }
  if (!refused.ok()) return done(refused);
  ingest_.Take(std::move(window), std::move(done));
}

void Pipeline::DoctorAnswer(uint64_t connection, uint64_t request_id,
                            std::vector<DoctorCheck> checks) {
  std::vector<DoctorRounds::Round> finished;
  {
    absl::MutexLock lock(&mutex_);
    const AgentBook::Entry* entry = book_.Find(connection);
    if (entry == nullptr) return;
    finished = doctor_.Take(request_id, entry->facts.node, std::move(checks));
  }
  for (const DoctorRounds::Round& round : finished) round.Answer();
}

void Pipeline::CountMalformed() {
  ingest_.CountMalformed();
  absl::MutexLock lock(&mutex_);
  ++malformed_;
}

}  // namespace perfd
