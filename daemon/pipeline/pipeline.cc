#include "daemon/pipeline/pipeline.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "daemon/pipeline/to_figure.h"

namespace perfd::daemon {
namespace {

constexpr int kMergeNice = 5;  // whoever asks something is answered before windows are added up
constexpr size_t kMergeReserve = 256;                      // besides every window: reports
constexpr absl::Duration kStopWithin = absl::Seconds(2);   // chores that have not begun, windows
constexpr absl::Duration kMergeWithin = absl::Seconds(1);  // what they left to merge
constexpr absl::Duration kTick = absl::Milliseconds(250);
constexpr int64_t kMaintenanceNs = 60 * kNsPerSecond;
constexpr int kRetentionRounds = 64;
constexpr int64_t kSickMaintenanceNs = 2 * kNsPerSecond;
constexpr int64_t kLateDelayNs = kNsPerSecond;
constexpr int64_t kForgetNodeNs = 24 * 3600 * kNsPerSecond;
constexpr int64_t kKeepRecentNs = 3600 * kNsPerSecond;
constexpr int64_t kFreshNs = 3600 * kNsPerSecond;
constexpr size_t kMaxFresh = 4096;
constexpr size_t kMaxRecent = 20;
constexpr int32_t kMaxRestored = 1000;

// For their limits. Users whom the system does not know have one together.
std::map<uint32_t, int64_t> OfUsers(const std::map<ProfileHolder, int64_t>& held) {
  std::map<uint32_t, int64_t> users;
  for (const auto& [holder, bytes] : held) {
    if (holder == kUnknownHolder) users[kNobodyKnown] = bytes;
    if (holder >= 0) users[static_cast<uint32_t>(holder)] = bytes;
  }
  return users;
}

void ReportStored(const BytesByHolder& bytes, Limits& limits) {
  std::map<ProfileHolder, int64_t> active, finished;
  for (const auto& [holder, held] : bytes) {
    active[holder] = held.active;
    finished[holder] = held.finished;
  }
  limits.Report(Limit::kActiveBytesPerUser, OfUsers(active));
  limits.Report(Limit::kFinishedBytesPerUser, OfUsers(finished));
}

}  // namespace

Pipeline::Pipeline(SqliteStore& store, const Clock& clock, PipelineOptions options)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      started_{clock_.MonotonicNs(), clock_.UnixNs()},
      results_(store, *options_.limits),
      history_(store, clock),
      hooks_(store, clock_, options_.policy, HookPorts()),
      table_(*options_.limits, options_.control),
      registry_(*options_.limits),
      retention_(options_.retention),
      ingest_(IngestPorts(), options_.ingest),
      merge_("perfd-merge", 1, options_.ingest.most_windows + kMergeReserve, kMergeNice),
      maintenance_("perfd-chores", 1, 16) {}

Pipeline::~Pipeline() {
  Stop();
}

absl::Status Pipeline::Restore() {
  ASSIGN_OR_RETURN(
      std::vector<ProfileStatus> unfinished,
      store_.Profiles({.uid = std::nullopt, .active_only = true, .limit = kMaxRestored}));
  ASSIGN_OR_RETURN(const std::vector<HookWait> waits, store_.HookWaits());
  for (ProfileStatus& status : unfinished) {
    if (const absl::Status loaded = results_.Load(status); !loaded.ok()) {
      LogError("{} cannot go on: {}", status.id, Text(loaded));
      status.notices.push_back(
          {Notice::Severity::kError, absl::StatusCode::kDataLoss, "", 0,
           absl::StrCat("the stored data could not be read: ", loaded.message())});
    }
    results_.Bound();  // all that was stored comes in at once
    LogInfo("{} goes on: {} samples are stored", status.id, status.samples);
    MutexLock lock(&mutex_);
    if (status.submit_to_first_sample_ns > 0) attached_.insert(status.id);
    RestoreOne(std::move(status), waits);
  }
  return RestoreLate();
}

void Pipeline::Run() {
  ticker_ = std::thread([this] { TickLoop(); });
}

void Pipeline::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (ticker_.joinable()) ticker_.join();
  maintenance_.Close(kStopWithin);
  ingest_.Close(kStopWithin);
  merge_.Close(kMergeWithin);
}

void Pipeline::TickLoop() {
  pthread_setname_np(pthread_self(), "perfd-tick");
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kTick)) return;
    }
    Tick();
  }
}

void Pipeline::Tick() {
  std::vector<DoctorFanout::Round> rounds;
  std::vector<ProfileStatus> wanting, wanting_heat;
  {
    MutexLock lock(&mutex_);
    const Moment now = Now();
    Execute(table_.Tick(now));
    wanting = table_.WantingLoops(now);
    wanting_heat = table_.WantingHeat(now);
    rounds = doctor_.Expire(now.monotonic_ns);
    for (auto it = late_.begin(); it != late_.end();) {
      const bool due = now.monotonic_ns >= it->second.due_ns;
      if (due && merge_.PostTo(it->second.owner, [this, id = it->first, late = it->second] {
            RebuildLate(id, late);
          })) {
        it = late_.erase(it);
      } else {
        ++it;
      }
    }
    registry_.Forget(now.unix_ns - kForgetNodeNs);
    std::erase_if(recent_,
                  [&](const RecentProfile& recent) { return now.monotonic_ns >= recent.until_ns; });
    if (now.monotonic_ns >= maintenance_due_ns_ && !maintenance_running_.exchange(true)) {
      maintenance_due_ns_ =
          now.monotonic_ns + (store_.healthy() ? kMaintenanceNs : kSickMaintenanceNs);
      if (!maintenance_.Post([this] { Maintain(); })) maintenance_running_ = false;
    }
    if (!store_.healthy())
      maintenance_due_ns_ = std::min(maintenance_due_ns_, now.monotonic_ns + kSickMaintenanceNs);
  }
  for (const DoctorFanout::Round& round : rounds) round.Answer();
  for (const ProfileStatus& status : wanting) ChooseLoops(status);
  for (const ProfileStatus& status : wanting_heat) ChooseAgain(status);
  hooks_.Tick();
  ++turns_;
}

void Pipeline::SetRetention(const RetentionPolicy& retention) {
  MutexLock lock(&mutex_);
  retention_ = retention;
}

void Pipeline::ChooseLoops(const ProfileStatus& status) {
  absl::StatusOr<std::vector<MeasureLoop>> loops = results_.HotLoops(status);
  if (!loops.ok())
    LogWarning("{}: its hot loops are not known: {}", status.id, Text(loops.status()));
  MutexLock lock(&mutex_);
  Execute(table_.HotLoops(status.id, loops.ok() ? *std::move(loops) : std::vector<MeasureLoop>(),
                          Now()));
}

void Pipeline::ChooseAgain(const ProfileStatus& status) {
  const absl::StatusOr<HeatNow> heat = results_.Heat(status, clock_.UnixNs());
  if (!heat.ok()) LogWarning("{}: its hot loops are not known: {}", status.id, Text(heat.status()));
  MutexLock lock(&mutex_);
  // Without heat nothing changes, and it is asked for again a while later.
  Execute(table_.Heat(status.id, heat.ok() ? *heat : HeatNow(), Now()));
}

// How many profiles went. `aged`: also for their age.
int Pipeline::Retain(bool aged) {
  const absl::StatusOr<BytesByHolder> bytes = ReadBytes(store_);
  if (!bytes.ok())
    LogWarning("what users have in the store is not known: {}", Text(bytes.status()));
  if (bytes.ok()) ReportStored(*bytes, *options_.limits);
  RetentionPolicy policy;
  {
    MutexLock lock(&mutex_);
    const int64_t now_ns = clock_.MonotonicNs();
    policy = retention_;
    std::erase_if(fresh_, [&](const FreshProfile& fresh) { return now_ns >= fresh.until_ns; });
    for (const FreshProfile& fresh : fresh_) policy.spared.push_back(fresh.profile_id);
    // A clock that is wrong at the start may yet be put right.
    if (now_ns - started_.monotonic_ns < kFreshNs) policy.keep_ns = policy.audit.keep_ns = 0;
  }
  if (!aged) policy.keep_ns = 0;
  if (!bytes.ok()) policy.max_bytes = 0;  // what is finished is not known apart from what is active
  policy.user_bytes = options_.limits->Bytes(Limit::kFinishedBytesPerUser);
  policy.bytes = bytes.value_or(BytesByHolder());
  // The clock may have been set since: for ages, time passes no faster than it does.
  const Moment now = Now();
  const int64_t passed_ns = now.monotonic_ns - started_.monotonic_ns;
  const absl::StatusOr<int> deleted =
      store_.Retain(policy, std::min(now.unix_ns, started_.unix_ns + passed_ns));
  if (!deleted.ok()) LogWarning("old profiles could not be deleted: {}", Text(deleted.status()));
  if (deleted.value_or(0) > 0) LogInfo("{} old profiles were deleted", *deleted);
  return deleted.value_or(0);
}

void Pipeline::Maintain() {
  if (!store_.healthy()) (void)store_.Probe();
  SweepAggregates();
  Limits& limits = *options_.limits;
  limits.Report(Limit::kMemoryPerUser, OfUsers(results_.Bound()));
  // More is deleted at once where more has to go, but others' commits have their turn in between.
  for (int round = 0; round < kRetentionRounds; ++round) {
    if (Retain(/*aged=*/round == 0) == 0 || !store_.healthy()) break;
  }
  maintenance_running_ = false;
}

void Pipeline::SweepAggregates() {
  std::set<std::string> wanted;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, late] : late_) wanted.insert(id);
    for (const std::string& id : table_.Ids()) wanted.insert(id);
  }
  results_.RetainOnly([&](const std::string& id) { return wanted.contains(id); });
}

Ingest::Ports Pipeline::IngestPorts() {
  Ingest::Ports ports;
  ports.disposition = [this](const std::string& id) { return Disposition(id); };
  ports.append = [this](const IncomingWindow& incoming,
                        std::function<void(absl::StatusOr<Appended>)> done) {
    const Window& window = incoming.window;
    return store_.Append(
        {window.profile_id, incoming.stream, window.sequence, window.node, incoming.body,
         window.audit, clock_.UnixNs()},
        [done = std::move(done)](const absl::StatusOr<AppendResult>& result) {
          if (!result.ok()) return done(result.status());
          done(Appended{result->duplicate, result->row_id, result->stream_missing});
        });
  };
  ports.skip = [this](const StreamKey& stream, uint64_t sequence,
                      std::function<void(absl::Status)> done) {
    return store_.Skip(stream, sequence, std::move(done));
  };
  ports.keep_audit = [this](const IncomingWindow& incoming,
                            std::function<void(absl::Status)> done) {
    const Window& window = incoming.window;
    return store_.StoreAudit({window.profile_id, incoming.stream, window.sequence, window.node, "",
                              window.audit, clock_.UnixNs()},
                             std::move(done));
  };
  ports.merge = [this](std::shared_ptr<const IncomingWindow> incoming, const Appended& appended,
                       std::function<void()> done) {
    // In its owner's lane: in the order of commits, and what others bring does not hold it up.
    const ProfileHolder owner = incoming->owner;
    return merge_.PostTo(owner,
                         [this, incoming = std::move(incoming), appended, done = std::move(done)] {
                           Merge(*incoming, appended);
                           done();
                         });
  };
  return ports;
}

absl::StatusOr<ProfileDisposition> Pipeline::Disposition(const std::string& profile_id) {
  {
    MutexLock lock(&mutex_);
    if (table_.Active(profile_id)) return ProfileDisposition::kActive;
  }
  const absl::StatusOr<ProfileStatus> status = store_.Profile(profile_id);
  const bool nobodys = absl::IsNotFound(status.status()) ||
                       absl::IsInvalidArgument(status.status()) ||
                       absl::IsDataLoss(status.status());
  if (nobodys) return ProfileDisposition::kUnknown;
  RETURN_IF_ERROR(status.status());
  return status->state == ProfileState::kPartial ? ProfileDisposition::kLate
                                                 : ProfileDisposition::kOver;
}

// A pause for a shadow is no stop: the rank's other threads run on.
void Pipeline::ReportStops(const std::vector<AuditEntry>& audit) {
  if (!options_.on_stop) return;
  for (const AuditEntry& entry : audit) {
    if (entry.action != "shadow" && entry.pause_ns > 0)
      options_.on_stop(static_cast<double>(entry.pause_ns) / static_cast<double>(kNsPerSecond));
  }
}

void Pipeline::Merge(const IncomingWindow& incoming, const Appended& appended) {
  const Window& window = incoming.window;
  ReportStops(window.audit);
  const absl::Status added = results_.Add(window.profile_id, window, appended.row_id);
  if (!added.ok()) LogError("window {} of {}: {}", window.sequence, window.profile_id, Text(added));
  MutexLock lock(&mutex_);
  if (!table_.Active(window.profile_id)) {
    LateProfile& late = late_[window.profile_id];
    ++late.windows;
    late.owner = incoming.owner;
    late.due_ns = clock_.MonotonicNs() + kLateDelayNs;
    return;
  }
  Execute(table_.Stored({.profile_id = window.profile_id,
                         .node = window.node,
                         .stream_id = window.stream_id,
                         .sequence = window.sequence,
                         .start_unix_ns = window.start_unix_ns,
                         .duration_ns = window.duration_ns,
                         .samples = window.accounting.kept,
                         .stream_missing = appended.stream_missing,
                         .pauses = window.leased.pauses},
                        Now()));
}

void Pipeline::Execute(const Decisions& decisions) {
  for (const Decision& decision : decisions) {
    if (const auto* start = std::get_if<StartNode>(&decision)) {
      if (const auto link = registry_.Link(start->node)) link->Start(*start);
    } else if (const auto* stop = std::get_if<StopNode>(&decision)) {
      if (const auto link = registry_.Link(stop->node)) link->Stop(*stop);
    } else if (const auto* measure = std::get_if<MeasureNode>(&decision)) {
      if (const auto link = registry_.Link(measure->node)) link->Measure(*measure);
    } else if (const auto* charge = std::get_if<ChargeNode>(&decision)) {
      if (const auto link = registry_.Link(charge->node)) link->Charge(*charge);
    } else if (const auto* save = std::get_if<SaveProfile>(&decision)) {
      Save(save->status);
    } else if (const auto* final_status = std::get_if<FinaliseProfile>(&decision)) {
      PostFinalise(final_status->status);
    }
  }
}

void Pipeline::Save(const ProfileStatus& status) {
  if (status.submit_to_first_sample_ns > 0 && attached_.insert(status.id).second &&
      options_.on_attach) {
    options_.on_attach(static_cast<double>(status.submit_to_first_sample_ns) /
                       static_cast<double>(kNsPerSecond));
  }
  const absl::Status queued = store_.Update(status, [id = status.id](const absl::Status& saved) {
    if (!saved.ok()) LogWarning("the state of {} is not saved yet: {}", id, Text(saved));
  });
  if (!queued.ok()) LogWarning("the state of {} is not saved yet: {}", status.id, Text(queued));
}

void Pipeline::PostFinalise(const ProfileStatus& status) {
  if (!merge_.PostTo(HolderOf(status.requester), [this, status] { Finalise(status); }))
    Execute(table_.Finalised(status.id, false, Now()));
}

void Pipeline::Finalise(const ProfileStatus& status) {
  const absl::StatusOr<Report> report = FinaliseOrFail(status);
  if (report.ok()) {
    LogInfo("{} is {}", status.id, ProfileStateName(report->status.state));
  } else {
    LogWarning("the report of {} is not stored yet: {}", status.id, Text(report.status()));
  }
  {
    MutexLock lock(&mutex_);
    if (report.ok()) {
      Remember(*report);
      attached_.erase(status.id);
    }
    Execute(table_.Finalised(status.id, report.ok(), Now()));
  }
  // Not before: whoever asks while it is still active would bring the aggregate back.
  if (report.ok()) results_.Forget(status.id);
  if (report.ok() && options_.on_final) options_.on_final(status.id);
}

// What is damaged stays damaged: such a profile ends without a report.
absl::StatusOr<Report> Pipeline::FinaliseOrFail(ProfileStatus status) {
  absl::StatusOr<Report> report = results_.Finalise(status);
  if (!absl::IsDataLoss(report.status())) return report;
  LogError("{} has no report: {}", status.id, Text(report.status()));
  status.state = ProfileState::kFailed;
  status.notices.push_back(
      {Notice::Severity::kError, absl::StatusCode::kDataLoss, "", 0,
       absl::StrCat("the stored data could not be read: ", report.status().message())});
  RETURN_IF_ERROR(store_.StoreStatus(status));
  report = Report{};
  report->status = std::move(status);
  return report;
}

void Pipeline::RebuildLate(const std::string& profile_id, const LateProfile& rebuilt) {
  absl::StatusOr<ProfileStatus> status = store_.Profile(profile_id);
  if (status.ok()) {
    const Notice notice{Notice::Severity::kInfo, absl::StatusCode::kOk, "", 0,
                        "windows that arrived after the end are included"};
    if (std::find(status->notices.begin(), status->notices.end(), notice) ==
        status->notices.end()) {
      status->notices.push_back(notice);
    }
    const absl::StatusOr<Report> report = results_.Finalise(*status);
    if (report.ok()) {
      results_.Forget(profile_id);
      if (options_.on_final) options_.on_final(profile_id);
      LogInfo("{} late windows are now part of {}", rebuilt.windows, profile_id);
      return;
    }
    status = report.status();
  }
  LogWarning("late windows of {} are stored but not in its report: {}", profile_id,
             Text(status.status()));
  if (absl::IsNotFound(status.status()) || absl::IsDataLoss(status.status())) return;
  MutexLock lock(&mutex_);
  LateProfile& late = late_[profile_id];
  late.windows += rebuilt.windows;
  late.owner = rebuilt.owner;
  late.due_ns = clock_.MonotonicNs() + kSickMaintenanceNs;
}

void Pipeline::Remember(const Report& report) {
  RecentProfile recent;
  recent.figure = ToFigure(report.status, report.loops, static_cast<size_t>(options_.hot_loops));
  AddVerdicts(report.findings.verdicts, static_cast<size_t>(options_.hot_loops), recent.figure);
  AddOutcome(report, recent.figure);
  recent.until_ns = clock_.MonotonicNs() + kKeepRecentNs;
  fresh_.push_back({report.status.id, clock_.MonotonicNs() + kFreshNs});
  if (fresh_.size() > kMaxFresh) fresh_.pop_front();
  recent_.push_front(std::move(recent));
  if (recent_.size() > kMaxRecent) recent_.pop_back();
}

}  // namespace perfd::daemon
