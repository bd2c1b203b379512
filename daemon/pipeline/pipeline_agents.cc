// What agents tell the spine.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/store/window_table.h"

namespace perfd::daemon {
namespace {

constexpr size_t kMaxShownName = 128;

Sender SenderOf(const AgentFacts& facts) {
  return {facts.node, facts.stream_id, facts.user_mode, facts.uid,
          facts.certificate_expiry_seconds.has_value()};
}

StreamKey KeyOf(const Sender& sender, const Limits& limits) {
  return {sender.stream_id, OwnerName(sender), MayTakeOver(sender),
          limits.Value(Limit::kGapsPerStream)};
}

// In whose lane windows are merged. Of a profile that perfd does not know none is.
ProfileHolder OwnerOf(const std::optional<Standing>& standing) {
  return standing.has_value() ? HolderOf(standing->owner) : kSite;
}

// What a window of a user's own agent takes of that user's minute, until it is known what became of it.
struct PaidWindow {
  std::shared_ptr<Limits> limits;  // shared with the pipeline, which may end first
  std::vector<Payment> payments;
};

// kUnavailable: the next minute has room for it, the agent keeps it.
absl::StatusOr<std::shared_ptr<PaidWindow>> PayWindow(const std::shared_ptr<Limits>& limits,
                                                      const Requester& owner,
                                                      const IncomingWindow& incoming,
                                                      int64_t now_ns) {
  RETURN_IF_ERROR(limits->Check(Limit::kActiveBytesPerUser, owner));
  auto paid = std::make_shared<PaidWindow>(PaidWindow{limits, {}});
  const std::pair<Limit, size_t> wanted[] = {{Limit::kWindowBytesPerUser, incoming.body.size()},
                                             {Limit::kAuditPerUser, incoming.window.audit.size()}};
  for (const auto& [limit, size] : wanted) {
    const auto amount = static_cast<int64_t>(size);
    absl::StatusOr<Payment> payment = limits->Spend(limit, owner.uid, amount, now_ns);
    if (payment.ok()) {
      paid->payments.push_back(*std::move(payment));
      continue;
    }
    const bool fits = amount <= limits->Bytes(limit);
    return fits ? absl::UnavailableError(payment.status().message()) : payment.status();
  }
  return paid;
}

// Only the store knows a stream's gaps.
std::function<void(absl::Status)> CountingGaps(std::shared_ptr<Limits> limits, uint32_t uid,
                                               std::function<void(absl::Status)> done) {
  return [limits = std::move(limits), uid, done = std::move(done)](const absl::Status& status) {
    if (absl::IsOutOfRange(status)) limits->RecordRefusal(Limit::kGapsPerStream, uid);
    done(status);
  };
}

void LogRefusal(const Sender& sender, const RefusedWindow& window, const absl::Status& why,
                PeerLog& log) {
  const std::string whose =
      absl::StrCat("windows of ", sender.uid, sender.user_mode ? "" : sender.node);
  if (const auto more = log.Next(whose, SystemClock().MonotonicNs()); more.has_value())
    LogWarning("window {} of node {} (uid {}) is refused: {}{}", window.sequence, sender.node,
               sender.uid, Text(why), LeftOutText(*more));
}

// A user has several names, and others when they please.
std::string WhoseAgent(absl::string_view what, const AgentFacts& facts) {
  return facts.user_mode ? absl::StrCat(what, " of ", facts.uid)
                         : absl::StrCat(what, " at ", facts.node);
}

}  // namespace

absl::StatusOr<uint64_t> Pipeline::AgentConnected(AgentFacts facts,
                                                  const std::shared_ptr<AgentLink>& link) {
  if (!store_.healthy()) {
    return absl::UnavailableError(
        "the daemon's store cannot write (disk full?): keep the windows and try again");
  }
  ASSIGN_OR_RETURN(const StreamState stream, store_.Stream(facts.stream_id));
  RETURN_IF_ERROR(CheckStream(SenderOf(facts), stream.owner));
  facts.stored_sequence = stream.last;
  facts.stream_missing = stream.missing;
  MutexLock lock(&mutex_);
  const AgentFacts* present = table_.FindAgent(facts.node);
  const Moment now = Now();
  ASSIGN_OR_RETURN(const uint64_t connection, registry_.Connect(facts, link, now));
  link->Welcome(facts.stored_sequence);
  if (AgentRegistry::Entry* entry = registry_.Find(connection); entry != nullptr) {
    facts.clock = entry->clock.Best(now.job_ns);
    AskClock(*entry);
  }
  if (present != nullptr) Execute(table_.AgentGone(facts.node, now));
  Execute(table_.AgentConnected(facts, now));
  if (const auto more = peer_log_.Next(WhoseAgent("coming", facts), SystemClock().MonotonicNs());
      more.has_value())
    LogInfo("agent of node {} connected: version {}, uid {}{}{}", facts.node, facts.version,
            facts.uid, facts.user_mode ? ", user mode" : "", LeftOutText(*more));
  return connection;
}

void Pipeline::AgentGone(uint64_t connection) {
  MutexLock lock(&mutex_);
  const Moment now = Now();
  const AgentRegistry::Entry* entry = registry_.Find(connection);
  const std::string whose = entry == nullptr ? "" : WhoseAgent("going", entry->facts);
  const std::string node = registry_.Disconnect(connection, now.unix_ns);
  if (node.empty()) return;  // it had been replaced
  if (const auto more = peer_log_.Next(whose, SystemClock().MonotonicNs()); more.has_value())
    LogInfo("agent of node {} disconnected{}", node, LeftOutText(*more));
  Execute(table_.AgentGone(node, now));
}

void Pipeline::Heartbeat(uint64_t connection, const AgentHealth& health) {
  MutexLock lock(&mutex_);
  AgentRegistry::Entry* entry = registry_.Find(connection);
  if (entry == nullptr) return;
  entry->status.health = health;
  AgentRegistry::Heard(*entry, Now());
  AskClock(*entry);
}

Moment Pipeline::Now() const {
  const int64_t monotonic_ns = clock_.MonotonicNs();
  return {monotonic_ns, clock_.UnixNs(), started_.unix_ns + monotonic_ns - started_.monotonic_ns};
}

void Pipeline::AskClock(AgentRegistry::Entry& entry) {
  if (!entry.facts.abilities.pause_leases || entry.link == nullptr) return;
  const int64_t job_ns = Now().job_ns;
  entry.clock_asked_ns = job_ns;
  entry.link->AskClock(job_ns, entry.clock.Best(job_ns));
}

// A century after the machine has started: sums of it do not overflow.
constexpr int64_t kMostClockNs = 100ll * 366 * 86'400 * kNsPerSecond;

void Pipeline::ClockAnswer(uint64_t connection, int64_t sent_ns, int64_t here_ns) {
  MutexLock lock(&mutex_);
  AgentRegistry::Entry* entry = registry_.Find(connection);
  if (entry == nullptr || sent_ns <= 0 || sent_ns != entry->clock_asked_ns) return;
  if (here_ns < 0 || here_ns > kMostClockNs) return;  // asked again with the next heartbeat
  entry->clock_asked_ns = 0;
  const Moment now = Now();
  AgentRegistry::Heard(*entry, now);
  entry->clock.Learn(sent_ns, now.job_ns, here_ns);
  const std::optional<ClockReading> best = entry->clock.Best(now.job_ns);
  if (best.has_value()) table_.ClockRead(entry->facts.node, *best);
  // Some in a row, as one of them may have been held up; then one with every heartbeat.
  if (entry->clock.readings() < ClockExchange::kReadings / 2) AskClock(*entry);
}

void Pipeline::OnSessionUpdate(uint64_t connection, const SessionUpdate& update) {
  const std::optional<Sender> sender = FindSender(connection);
  if (!sender.has_value()) return;
  const auto standing = StandingOf(update.profile_id, sender->node);
  if (!standing.ok() || !MaySpeakFor(*sender, *standing)) return;
  MutexLock lock(&mutex_);
  AgentRegistry::Entry* entry = registry_.Find(connection);
  if (entry == nullptr) return;
  AgentRegistry::Heard(*entry, Now());
  Execute(table_.Update(sender->node, update, Now()));
}

std::optional<Sender> Pipeline::FindSender(uint64_t connection) {
  MutexLock lock(&mutex_);
  const AgentRegistry::Entry* entry = registry_.Find(connection);
  if (entry == nullptr) return std::nullopt;
  return SenderOf(entry->facts);
}

absl::StatusOr<std::optional<Standing>> Pipeline::StandingOf(const std::string& profile_id,
                                                             const std::string& node) {
  {
    MutexLock lock(&mutex_);
    if (auto standing = table_.StandingOf(profile_id, node); standing.has_value()) return standing;
  }
  // Not under the lock: the store may take its time.
  const absl::StatusOr<ProfileStatus> status = store_.Profile(profile_id);
  if (status.ok()) return StandingIn(*status, node);
  if (absl::IsNotFound(status.status()) || absl::IsInvalidArgument(status.status()))
    return std::nullopt;
  return status.status();
}

absl::Status Pipeline::Check(const Sender& sender, const Window& window,
                             const std::optional<Standing>& standing) {
  if (window.stream_id != sender.stream_id) {
    return absl::FailedPreconditionError(absl::StrCat("it is of stream '",
                                                      window.stream_id.substr(0, kMaxShownName),
                                                      "', not of the agent's own"));
  }
  if (window.sequence > kMaxSequence) return absl::InvalidArgumentError("its sequence is too high");
  if (sender.certified && window.node != sender.node) {
    return absl::FailedPreconditionError(
        absl::StrCat("it is of node '", window.node.substr(0, kMaxShownName),
                     "', but the agent's certificate is for '", sender.node, "'"));
  }
  RETURN_IF_ERROR(CheckSender(sender, window, standing));
  if (window.node == sender.node) return absl::OkStatus();
  MutexLock lock(&mutex_);
  if (registry_.MayBeNameOf(window.node, sender.stream_id)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "it is of node '", window.node.substr(0, kMaxShownName), "', which has an agent of its own"));
}

void Pipeline::AcceptWindow(uint64_t connection, IncomingWindow window,
                            std::function<void(absl::Status)> done) {
  const std::optional<Sender> sender = FindSender(connection);
  if (!sender.has_value()) {
    return done(absl::AbortedError("replaced by a newer connection of the same agent"));
  }
  const auto standing = StandingOf(window.window.profile_id, window.window.node);
  if (!standing.ok()) return done(standing.status());
  absl::Status refused = Check(*sender, window.window, *standing);
  if (refused.ok() && sender->user_mode) {
    const Requester owner =
        standing->has_value() ? (*standing)->owner : Requester{sender->uid, "", false};
    auto paid = PayWindow(options_.limits, owner, window, clock_.UnixNs());
    if (absl::IsUnavailable(paid.status())) return done(paid.status());
    refused = paid.status();
    // What is not taken after all comes again, and pays again.
    if (paid.ok()) {
      done = [paid = *std::move(paid), done = std::move(done)](const absl::Status& status) {
        if (status.ok())
          for (Payment& payment : paid->payments) payment.Use(payment.amount());
        done(status);
      };
    }
  }
  if (refused.ok()) {
    NameOrigin(*sender, *standing, window.window);
    window.stream = KeyOf(*sender, *options_.limits);
    window.owner = OwnerOf(*standing);
    return ingest_.Accept(std::move(window),
                          CountingGaps(options_.limits, sender->uid, std::move(done)));
  }
  RefuseWindow(connection, window.sender, window.window.profile_id, window.window.sequence, refused,
               std::move(done));
}

void Pipeline::RefuseWindow(uint64_t connection, ProfileHolder from, const std::string& profile_id,
                            uint64_t sequence, const absl::Status& why,
                            std::function<void(absl::Status)> done) {
  const std::optional<Sender> sender = FindSender(connection);
  if (!sender.has_value()) {
    return done(absl::AbortedError("replaced by a newer connection of the same agent"));
  }
  RefusedWindow window{profile_id, sender->node, sender->stream_id, sequence, {}};
  WindowDrop reason = WindowDrop::kInvalid;
  if (absl::IsFailedPrecondition(why)) reason = WindowDrop::kForeign;
  const auto standing = StandingOf(profile_id, sender->node);
  if (standing.ok() && MaySpeakFor(*sender, *standing)) {
    // What a node that was not asked sends is nothing that the result lacks.
    const bool asked = standing->has_value() && (*standing)->asked;
    window.notice = {
        Notice::Severity::kWarning,
        asked ? absl::StatusCode::kDataLoss : absl::StatusCode::kPermissionDenied, sender->node, 0,
        absl::StrCat("perfd refused windows of node ", sender->node, ": ", why.message())};
  } else {
    // A stranger cannot spoil a result, but its owner may know.
    reason = WindowDrop::kNotPermitted;
    window.notice = {Notice::Severity::kInfo, absl::StatusCode::kPermissionDenied, "", 0,
                     absl::StrCat("perfd refused windows of a user-mode agent of uid ", sender->uid,
                                  ": it may only speak for its own user's profiles")};
  }
  LogRefusal(*sender, window, why, peer_log_);
  const ProfileHolder owner = OwnerOf(standing.ok() ? *standing : std::nullopt);
  auto told = [this, owner, window = std::move(window),
               done = std::move(done)](absl::Status status) {
    if (status.ok()) PostRefused(owner, window);
    done(std::move(status));
  };
  ingest_.Refuse(reason, from, KeyOf(*sender, *options_.limits), sequence,
                 CountingGaps(options_.limits, sender->uid, std::move(told)));
}

// By way of the merge queue: the windows before it must have been counted when it may be the last one.
void Pipeline::PostRefused(ProfileHolder owner, const RefusedWindow& window) {
  const auto tell = [this, window] {
    MutexLock lock(&mutex_);
    Execute(table_.Refused(window, Now()));
  };
  if (!merge_.PostTo(owner, tell)) tell();
}

void Pipeline::DoctorAnswer(uint64_t connection, uint64_t request_id,
                            std::vector<DoctorCheck> checks) {
  std::vector<DoctorFanout::Round> finished;
  {
    MutexLock lock(&mutex_);
    const AgentRegistry::Entry* entry = registry_.Find(connection);
    if (entry == nullptr) return;
    finished = doctor_.Record(request_id, entry->facts.node, std::move(checks));
  }
  for (const DoctorFanout::Round& round : finished) round.Answer();
}

// Windows that came after the end of their profile, where the last stop came before their report was made anew.
absl::Status Pipeline::RestoreLate() {
  ASSIGN_OR_RETURN(const auto counts, store_.WindowCounts());
  for (const auto& [id, windows] : counts) {
    const absl::StatusOr<ProfileStatus> status = store_.Profile(id);
    if (!status.ok() || status->state != ProfileState::kPartial) continue;
    MutexLock lock(&mutex_);
    late_[id] = {windows, clock_.MonotonicNs(), HolderOf(status->requester)};
  }
  return absl::OkStatus();
}

void Pipeline::CountMalformed() {
  ingest_.CountMalformed();
  MutexLock lock(&mutex_);
  ++malformed_;
}

}  // namespace perfd::daemon
