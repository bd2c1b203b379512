#include "agent/replay/replay_session.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/link/link_codec.h"
#include "core/base/status_macros.h"
#include "core/base/utf8.h"
#include "core/perfdata/recording_bytes.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kWindowNs = 5 * kNsPerSecond;
constexpr absl::Duration kPause = absl::Milliseconds(5);
constexpr absl::Duration kPatience = absl::Minutes(5);  // with perfd, while it takes no window
constexpr uint64_t kMostPeriod = uint64_t{1}
                                 << 36;  // a minute of cycles; what is above is no period
constexpr size_t kMostNamed = 5;
constexpr size_t kCommBytes = 15;  // what the kernel keeps of a name (TASK_COMM_LEN)

bool IsCalled(const RecordedProcess& process, const std::string& command) {
  return !process.command.empty() && process.command == command.substr(0, kCommBytes);
}

std::string Named(const RecordingIndex& index) {
  std::string out;
  for (size_t i = 0; i < std::min(kMostNamed, index.processes.size()); ++i) {
    const RecordedProcess& process = index.processes[i];
    absl::StrAppend(&out, i == 0 ? "" : ", ", process.command.empty() ? "?" : process.command,
                    " (pid ", process.pid, ")");
  }
  if (index.processes.size() > kMostNamed)
    absl::StrAppend(&out, " and ", index.processes.size() - kMostNamed, " more");
  return out;
}

std::string Seconds(uint64_t ns) {
  return absl::StrCat((ns + kNsPerSecond - 1) / kNsPerSecond, "s");
}

SamplingSetup SetupOf(const ReplayedEvent& event) {
  SamplingSetup setup;
  setup.event = event.name;
  setup.frequency_hz = event.attr.freq != 0 ? static_cast<double>(event.attr.sample_freq) : 0;
  setup.kernel_included = event.attr.exclude_kernel == 0;
  setup.method = "recording";
  setup.provenance = Provenance::kReplayed;
  return setup;
}

}  // namespace

absl::StatusOr<std::vector<RankInfo>> RanksOfTarget(const RecordingIndex& index,
                                                    const SessionRequest& request,
                                                    const std::string& node) {
  const TargetSpec& target = request.spec.target;
  if (target.slurm_job.has_value() || target.tree)
    return absl::InvalidArgumentError(
        "a recording knows processes by pid and by command, not by job or tree: give --pid or "
        "--command");
  std::vector<RankInfo> ranks;
  for (const RecordedProcess& process : index.processes) {
    const bool named =
        target.command.has_value()
            ? IsCalled(process, *target.command)
            : std::find(target.pids.begin(), target.pids.end(), process.pid) != target.pids.end();
    if (!named) continue;
    RankInfo rank;
    rank.node = node;
    rank.pid = process.pid;
    rank.uid = request.requester.uid;
    rank.command = process.command;
    ranks.push_back(std::move(rank));
  }
  if (ranks.empty())
    return absl::NotFoundError(
        absl::StrCat("the recording has no such process; there are ", Named(index)));
  std::sort(ranks.begin(), ranks.end(),
            [](const RankInfo& a, const RankInfo& b) { return a.pid < b.pid; });
  for (size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].rank = static_cast<int32_t>(i);
    ranks[i].world_size = static_cast<int32_t>(ranks.size());
  }
  return ranks;
}

SessionUpdate FirstUpdate(const ReplayTools& tools, const SessionRequest& request) {
  absl::StatusOr<std::vector<RankInfo>> ranks = RanksOfTarget(*tools.index, request, tools.node);
  if (!ranks.ok()) return FailedUpdate(request.profile_id, tools.node, ranks.status());
  SessionUpdate update;
  update.profile_id = request.profile_id;
  update.phase = NodeProgress::Phase::kSampling;
  update.ranks = *std::move(ranks);
  return update;
}

ReplaySession::ReplaySession(SessionRequest request, ReplayTools tools)
    : request_(std::move(request)),
      tools_(std::move(tools)),
      delivery_(std::make_shared<WindowDelivery>(tools_.output, request_.profile_id, tools_.node)),
      budget_(std::make_shared<ReadBudget>(*tools_.clock)) {
  builder_.memory().SetEvents(tools_.index->MemoryEvents());
}

void ReplaySession::Notify(Notice::Severity severity, absl::StatusCode code, std::string text) {
  Notice notice;
  notice.severity = severity;
  notice.code = code;
  notice.node = tools_.node;
  notice.text = std::move(text);
  notices_.push_back(std::move(notice));
}

void ReplaySession::Announce(NodeProgress::Phase phase) {
  SessionUpdate update;
  update.profile_id = request_.profile_id;
  update.phase = phase;
  update.ranks = ranks_;
  for (const RecordedProcess& process : tools_.index->processes) {
    if (RankOf(process.pid) != nullptr)
      update.threads += static_cast<int32_t>(process.threads.size());
  }
  update.notices = std::exchange(notices_, {});
  for (Notice& notice : delivery_->DrainNotices()) update.notices.push_back(std::move(notice));
  update.first_sample = true;
  update.last_sequence = delivery_->last_sequence();
  if (end_ != End::kSuspend) tools_.output->OnUpdate(update);
}

void ReplaySession::Fail(const absl::Status& status) {
  Notify(Notice::Severity::kError, status.code(), std::string(status.message()));
  Announce(NodeProgress::Phase::kFailed);
}

void ReplaySession::Run() {
  absl::StatusOr<std::vector<RankInfo>> ranks = RanksOfTarget(*tools_.index, request_, tools_.node);
  if (!ranks.ok()) return Fail(ranks.status());
  ranks_ = *std::move(ranks);
  if (ranks_.size() > 1)
    Notify(
        Notice::Severity::kInfo, absl::StatusCode::kOk,
        "a recording does not tell ranks: its processes are numbered in the order of their pids");
  Announce(NodeProgress::Phase::kSampling);
  const absl::Status status = Replay();
  Announce(NodeProgress::Phase::kAnalyzing);
  const absl::Time end = absl::Now() + kPatience;
  while (!delivery_->AwaitAll(kPause) && end_ != End::kSuspend && absl::Now() < end) continue;
  if (!delivery_->AwaitAll(absl::ZeroDuration()))
    Notify(Notice::Severity::kError, absl::StatusCode::kDeadlineExceeded,
           "windows of the recording could not be delivered in time");
  delivery_->Flush();
  if (!status.ok()) return Fail(status);
  Announce(NodeProgress::Phase::kFinished);
}

absl::Status ReplaySession::Replay() {
  ASSIGN_OR_RETURN(auto bytes, OpenRecordingBytes(tools_.path));
  ASSIGN_OR_RETURN(const auto recording, Recording::Open(std::move(bytes)));
  while (!ended() && !cut_) {
    const auto next = recording->Next();
    if (!next.ok())
      Notify(Notice::Severity::kWarning, absl::StatusCode::kDataLoss,
             absl::StrCat(next.status().message(), "; what came before it counts"));
    if (!next.ok() || !next->has_value()) break;
    OnRecord(**next);
  }
  const RecordingCounts& counts = recording->counts();
  builder_.accounting().lost += counts.lost;
  builder_.accounting().seen += counts.malformed;
  builder_.accounting().Drop(DropReason::kMalformed, counts.malformed);
  if (window_.has_value()) CloseWindow(window_->last_ns + 1);
  SayWhatIsMissing(*recording);
  return absl::OkStatus();
}

void ReplaySession::OnRecord(const EventSet::Decoded& record) {
  if (const auto* mapping = std::get_if<MappingEvent>(&record.record)) {
    processes_.OnMapping(tools_.files->Identify(*mapping));
  } else if (const auto* task = std::get_if<TaskEvent>(&record.record)) {
    processes_.OnTask(*task);
  } else if (const auto* sample = std::get_if<Sample>(&record.record)) {
    OnSample(record.event, *sample);
  }
}

bool ReplaySession::IsPast(uint64_t time_ns) const {
  return time_ns >= tools_.index->first_ns &&
         time_ns - tools_.index->first_ns >= static_cast<uint64_t>(request_.remaining_ns);
}

void ReplaySession::OnSample(size_t event, const Sample& sample) {
  if (IsPast(sample.time_ns)) {
    cut_ = true;
    return;
  }
  if (window_.has_value() && sample.time_ns >= window_->begin_ns + kWindowNs)
    CloseWindow(window_->begin_ns + kWindowNs);
  if (!window_.has_value()) window_ = Open{.begin_ns = sample.time_ns};
  window_->last_ns = std::max(window_->last_ns, sample.time_ns);
  const bool counts = event == tools_.index->time_event;
  if (counts) ++builder_.accounting().seen;
  if (sample.period > kMostPeriod) {
    if (counts) builder_.accounting().Drop(DropReason::kMalformed);
    return;
  }
  const RankInfo* rank = RankOf(sample.pid);
  if (rank == nullptr) {
    if (counts) builder_.accounting().Drop(DropReason::kForeignProcess);
    return;
  }
  const RawLocation at = Place(sample);
  if (counts)
    builder_.Count({rank->rank, sample.pid, sample.tid}, at, std::max<uint64_t>(sample.period, 1),
                   sample.time_ns);
  if (TellsOfAccess(sample)) builder_.memory().Count(rank->rank, sample.pid, at, AccessOf(sample));
}

const RankInfo* ReplaySession::RankOf(int32_t pid) const {
  const auto it = std::lower_bound(ranks_.begin(), ranks_.end(), pid,
                                   [](const RankInfo& rank, int32_t p) { return rank.pid < p; });
  return it != ranks_.end() && it->pid == pid ? &*it : nullptr;
}

RawLocation ReplaySession::Place(const Sample& sample) {
  if (sample.kernel) return {.kind = RawLocation::Kind::kKernel};
  auto place = processes_.Find(sample.pid, sample.ip, sample.time_ns);
  if (!place.has_value()) return {.kind = RawLocation::Kind::kUnmapped};
  return {.kind = RawLocation::Kind::kModule,
          .module = builder_.Module(place->module),
          .file_offset = place->offset};
}

bool ReplaySession::AwaitRoom() {
  const absl::Time end = absl::Now() + kPatience;
  // One window at a time is with the resolver: it may be large.
  while (!tools_.has_room() || !delivery_->AwaitAll(absl::ZeroDuration())) {
    if (end_ == End::kSuspend || absl::Now() > end) return false;
    absl::SleepFor(kPause);
  }
  return true;
}

void ReplaySession::Lose(const RawWindow& window) {
  Notify(Notice::Severity::kWarning, absl::StatusCode::kDataLoss,
         absl::StrCat(window.accounting.kept,
                      " samples of the recording found no room on their way to perfd"));
}

void ReplaySession::CloseWindow(uint64_t end_ns) {
  const Open window = *window_;
  window_.reset();
  auto raw = std::make_unique<RawWindow>(builder_.Drain());
  raw->setup = SetupOf(tools_.index->events[tools_.index->time_event]);
  raw->ranks = ranks_;
  const auto before_end = static_cast<int64_t>(tools_.index->last_ns - window.begin_ns);
  raw->start_unix_ns = std::max<int64_t>(0, tools_.end_unix_ns - before_end);
  raw->duration_ns = static_cast<int64_t>(end_ns - window.begin_ns);
  // Also what is left when the profile is stopped.
  if (!AwaitRoom()) return Lose(*raw);
  delivery_->Expect();
  const auto deliver = [delivery = delivery_](Window resolved,
                                              const UnreadableModules& unreadable) {
    delivery->Deliver(std::move(resolved), unreadable);
  };
  while (!tools_.resolver->Submit(raw, budget_, deliver)) {
    if (end_ == End::kSuspend) {
      delivery_->Unexpect();
      return Lose(*raw);
    }
    absl::SleepFor(kPause);
  }
}

void ReplaySession::SayWhatIsMissing(const Recording& recording) {
  const RecordingIndex& index = *tools_.index;
  if (cut_)
    Notify(Notice::Severity::kInfo, absl::StatusCode::kOk,
           absl::StrCat("the profile has the first ",
                        Seconds(static_cast<uint64_t>(request_.remaining_ns)),
                        " of the recording: all of it is --duration ",
                        Seconds(index.last_ns - index.first_ns + 1)));
  if (recording.counts().truncated)
    Notify(Notice::Severity::kWarning, absl::StatusCode::kDataLoss,
           "the recording ends amid a record; what came before it counts");
  if (recording.counts().late > 0)
    Notify(Notice::Severity::kWarning, absl::StatusCode::kDataLoss,
           absl::StrCat(recording.counts().late,
                        " records came after younger ones: what was mapped then may be wrong"));
  if (processes_.left_out() > 0)
    Notify(Notice::Severity::kWarning, absl::StatusCode::kResourceExhausted,
           absl::StrCat(processes_.left_out(),
                        " mappings of its processes found no room: code there has no names"));
  if (const ReplayedEvent& event = index.events[index.time_event]; event.accesses > 0)
    Notify(Notice::Severity::kWarning, absl::StatusCode::kOk,
           absl::StrCat("the recording has no event of its own for time: shares of CPU time are "
                        "shares of what ",
                        event.name, " counts"));
  for (size_t i = 0; i < index.events.size(); ++i) {
    const ReplayedEvent& event = index.events[i];
    if (i != index.time_event && event.accesses == 0 && event.samples > 0)
      Notify(Notice::Severity::kInfo, absl::StatusCode::kOk,
             absl::StrCat("the ", event.samples, " samples of ", event.name,
                          " are not used: rows count those of ",
                          index.events[tools_.index->time_event].name));
  }
}

}  // namespace perfd::agent
