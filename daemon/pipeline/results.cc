#include "daemon/pipeline/results.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/wire/wire.h"
#include "daemon/aggregate/aggregate_codec.h"
#include "daemon/report/hot_loops.h"
#include "daemon/report/loop_verdicts.h"
#include "daemon/report/report_builder.h"
#include "daemon/report/top_loops.h"

namespace perfd::daemon {
namespace {

// Windows kept one by one before they are folded into the stored aggregate: bounds the time of a restart.
constexpr uint64_t kMaxLooseWindows = 20'000;
constexpr uint64_t kBoundWindows = 256;  // of a rebuild, between looks at its memory
constexpr size_t kMaxNamedJobs = 8;

absl::StatusOr<Window> DecodeWindow(const std::string& body) {
  v1::Window message;
  if (!message.ParseFromString(body)) return absl::DataLossError("a stored window is damaged");
  return wire::FromProto(message);
}

// The aggregate knows better than a status that was written before the last windows came.
void Refresh(ProfileStatus& status, const ProfileAggregate& aggregate) {
  status.samples = aggregate.totals().accounting.kept;
  for (const NodeTotals& totals : aggregate.nodes()) {
    const auto it =
        std::find_if(status.nodes.begin(), status.nodes.end(),
                     [&](const NodeProgress& node) { return node.node == totals.node; });
    if (it == status.nodes.end()) continue;
    it->windows = totals.windows;
    it->covered_ns = static_cast<int64_t>(totals.covered_ns);
  }
}

// Two launches of one program have the same rank numbers: each process keeps its own line, and the user is told.
void RecordSeveralJobs(ProfileStatus& status, const ProfileAggregate& aggregate) {
  std::set<std::string> jobs;
  std::map<int32_t, std::string> job_of_rank;
  bool repeated = false;
  for (const RankTotals& totals : aggregate.ranks()) {
    const RankInfo& rank = totals.info;
    if (rank.source == RankSource::kNone || rank.job_id.empty()) continue;
    jobs.insert(rank.job_id);
    repeated |= job_of_rank.try_emplace(rank.rank, rank.job_id).first->second != rank.job_id;
  }
  if (!repeated) return;
  const size_t count = jobs.size();
  if (count > kMaxNamedJobs) jobs.erase(std::next(jobs.begin(), kMaxNamedJobs), jobs.end());
  const Notice notice{
      Notice::Severity::kWarning, absl::StatusCode::kOk, "", 0,
      absl::StrCat("the target matches ", count, " jobs (", absl::StrJoin(jobs, ", "),
                   jobs.size() < count ? ", ..." : "",
                   ") whose rank numbers repeat: name one by its pids or its Slurm job")};
  if (std::find(status.notices.begin(), status.notices.end(), notice) == status.notices.end())
    status.notices.push_back(notice);
}

}  // namespace

void Results::Begin(const std::string& profile_id, ProfileHolder holder) {
  auto live = std::make_shared<Live>();
  {
    MutexLock lock(&live->mutex);
    live->holder = holder;
  }
  MutexLock lock(&mutex_);
  live_.try_emplace(profile_id, std::move(live));
}

std::map<ProfileHolder, int64_t> Results::Bound() {
  const int64_t most = limits_.Bytes(Limit::kMemoryPerUser);
  std::vector<std::shared_ptr<Live>> all;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, live] : live_) all.push_back(live);
  }
  std::map<ProfileHolder, int64_t> held;
  std::vector<std::pair<ProfileHolder, std::shared_ptr<Live>>> bounded;
  for (std::shared_ptr<Live>& live : all) {
    MutexLock lock(&live->mutex);
    held[live->holder] += static_cast<int64_t>(live->aggregate.Bytes());
    if (!HasRoomOfItsOwn(live->holder)) bounded.emplace_back(live->holder, live);
  }
  for (const auto& [holder, live] : bounded) {
    if (held[holder] <= most) continue;
    MutexLock lock(&live->mutex);
    live->aggregate.Freeze();
  }
  return held;
}

absl::Status Results::Load(ProfileStatus& status) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Live> live, Get(status.id));
  MutexLock lock(&live->mutex);
  Refresh(status, live->aggregate);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Results::Live>> Results::Get(const std::string& profile_id) {
  {
    MutexLock lock(&mutex_);
    const auto it = live_.find(profile_id);
    if (it != live_.end()) return it->second;
  }
  // Not under the lock: reading a large profile takes seconds. Should two threads do it, one result is dropped.
  ASSIGN_OR_RETURN(std::shared_ptr<Live> live, Rebuild(profile_id));
  MutexLock lock(&mutex_);
  return live_.try_emplace(profile_id, std::move(live)).first->second;
}

absl::StatusOr<std::shared_ptr<Results::Live>> Results::Rebuild(const std::string& profile_id) {
  const int64_t most = limits_.Bytes(Limit::kMemoryPerUser);
  auto live = std::make_shared<Live>();
  MutexLock lock(&live->mutex);
  ResultsVisitor visitor;
  visitor.holder = [&](ProfileHolder holder) {
    live->mutex.AssertHeld();
    live->holder = holder;
  };
  visitor.aggregate = [&](const std::string& body, int64_t up_to_row_id) -> absl::Status {
    live->mutex.AssertHeld();
    live->row_id = up_to_row_id;
    if (body.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(live->aggregate, ParseAggregate(body));
    return absl::OkStatus();
  };
  visitor.window = [&](int64_t row_id, const std::string& body) {
    live->mutex.AssertHeld();
    const absl::StatusOr<Window> window = DecodeWindow(body);
    if (window.ok()) {
      live->aggregate.Add(*window);
      live->heat.Add(*window);
    } else {
      LogError("window {} of {} is left out: {}", row_id, profile_id, Text(window.status()));
    }
    // A user's windows must not take more when they come all at once.
    if (++live->loose_windows % kBoundWindows == 0 && !HasRoomOfItsOwn(live->holder) &&
        static_cast<int64_t>(live->aggregate.Bytes()) > most)
      live->aggregate.Freeze();
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ReadResults(store_, profile_id, visitor));
  return live;
}

absl::Status Results::Add(const std::string& profile_id, const Window& window, int64_t row_id) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Live> live, Get(profile_id));
  MutexLock lock(&live->mutex);
  if (row_id <= live->row_id) return absl::OkStatus();  // came in with the rebuild
  live->aggregate.Add(window);
  live->heat.Add(window);
  live->row_id = row_id;
  if (++live->loose_windows < kMaxLooseWindows) return absl::OkStatus();
  RETURN_IF_ERROR(store_.Compact(profile_id, SerializeAggregate(live->aggregate), live->row_id));
  live->loose_windows = 0;
  return absl::OkStatus();
}

absl::StatusOr<Report> Results::Build(const ProfileStatus& status) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Live> live, Get(status.id));
  MutexLock lock(&live->mutex);
  return BuildReport(status, live->aggregate);
}

absl::StatusOr<std::vector<ReportRow>> Results::Top(const std::string& profile_id, int count) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Live> live, Get(profile_id));
  MutexLock lock(&live->mutex);
  return TopLoops(live->aggregate, static_cast<size_t>(std::max(0, count)));
}

absl::StatusOr<std::vector<LoopVerdict>> Results::Verdicts(const std::string& profile_id,
                                                           const std::vector<ReportRow>& rows) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Live> live, Get(profile_id));
  MutexLock lock(&live->mutex);
  return TopVerdicts(live->aggregate, rows, rows.size());
}

absl::StatusOr<std::vector<MeasureLoop>> Results::HotLoops(const ProfileStatus& status) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Live> live, Get(status.id));
  MutexLock lock(&live->mutex);
  return perfd::daemon::HotLoops(live->aggregate, status.spec.hotspots);
}

absl::StatusOr<HeatNow> Results::Heat(const ProfileStatus& status, int64_t now_unix_ns) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Live> live, Get(status.id));
  MutexLock lock(&live->mutex);
  if (status.spec.variants.set.empty())
    return HeatNow{.shares = SharesOfHot(live->aggregate, status.spec.hotspots)};
  return HeatNow{.loops = HeatOfLoops(live->aggregate, live->heat.Recent(now_unix_ns, kRecentNs))};
}

absl::StatusOr<Report> Results::Finalise(ProfileStatus status) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Live> live, Get(status.id));
  MutexLock lock(&live->mutex);
  Refresh(status, live->aggregate);
  RecordSeveralJobs(status, live->aggregate);
  Report report = BuildReport(status, live->aggregate);
  RETURN_IF_ERROR(store_.StoreFinal({.status = std::move(status),
                                     .report = report,
                                     .aggregate = SerializeAggregate(live->aggregate),
                                     .up_to_row_id = live->row_id}));
  return report;
}

void Results::Forget(const std::string& profile_id) {
  MutexLock lock(&mutex_);
  live_.erase(profile_id);
}

void Results::RetainOnly(const std::function<bool(const std::string& profile_id)>& wanted) {
  MutexLock lock(&mutex_);
  std::erase_if(live_, [&](const auto& item) { return !wanted(item.first); });
}

size_t Results::size() {
  MutexLock lock(&mutex_);
  return live_.size();
}

}  // namespace perfd::daemon
