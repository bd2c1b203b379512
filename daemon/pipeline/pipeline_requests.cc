// What people ask of the spine.
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/store/profile_id.h"

namespace perfd::daemon {
namespace {

constexpr uint64_t kLowDiskBytes = uint64_t{1} << 30;
constexpr rlim_t kLowFileLimit = 4096;
constexpr int32_t kUsualHistory = 30;
constexpr int32_t kMostHistory = 200;

bool MaySee(const Requester& requester, const ProfileStatus& status) {
  return requester.privileged || requester.uid == status.requester.uid;
}

std::vector<ReportRow> Brief(const std::vector<ReportRow>& rows, size_t count) {
  std::vector<ReportRow> brief(rows.begin(),
                               rows.begin() + static_cast<ptrdiff_t>(std::min(count, rows.size())));
  for (ReportRow& row : brief) {
    row.ranks.clear();
    row.threads.clear();
  }
  return brief;
}

DoctorCheck DiskCheck(const std::string& directory) {
  struct statvfs info {};
  DoctorCheck check{
      .name = "free disk", .ok = false, .optional = true, .found = "unknown", .fix = ""};
  if (::statvfs(directory.c_str(), &info) != 0) return check;
  const uint64_t free = static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
  check.ok = free >= kLowDiskBytes;
  check.found = absl::StrCat(free >> 20, " MiB free in ", directory);
  if (!check.ok) check.fix = "free space there, lower --retention-days, or move --store-dir";
  return check;
}

DoctorCheck FileLimitCheck() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  DoctorCheck check{.name = "open files limit",
                    .ok = limit.rlim_cur >= kLowFileLimit,
                    .optional = true,
                    .found = absl::StrCat(limit.rlim_cur),
                    .fix = ""};
  if (!check.ok) check.fix = "LimitNOFILE=65536 in perfd.service (one descriptor per agent)";
  return check;
}

}  // namespace

absl::StatusOr<ProfileStatus> Pipeline::Submit(const SubmitRequest& request) {
  if (!store_.healthy()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the daemon's store cannot write: free space in ", store_.directory()));
  }
  absl::StatusOr<PlannedProfile> planned;
  {
    MutexLock lock(&mutex_);
    planned = table_.Plan(request, Now());
  }
  RETURN_IF_ERROR(planned.status());
  ASSIGN_OR_RETURN(const std::string id, store_.Create(planned->status));
  results_.Begin(id, HolderOf(request.requester));
  planned->status.id = id;
  MutexLock lock(&mutex_);
  LogInfo("{} submitted by {} (uid {})", id, request.requester.name, request.requester.uid);
  Execute(table_.Add(*std::move(planned), Now()));
  return table_.Status(id, Now());
}

absl::StatusOr<std::string> Pipeline::Resolve(const Requester& requester, const std::string& text) {
  if (text == "last") {
    ASSIGN_OR_RETURN(const std::vector<std::string> found, store_.Find("p-", requester.uid));
    if (found.empty()) return absl::NotFoundError("you have no profiles yet");
    return found.front();
  }
  if (ParseProfileId(text).ok()) return text;
  if (!absl::StartsWith(text, "p-") || text.size() > 24) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text.substr(0, 32), "' is not a profile: give an id such as p-000042, or 'last'"));
  }
  ASSIGN_OR_RETURN(
      const std::vector<std::string> found,
      store_.Find(text, requester.privileged ? std::nullopt : std::optional(requester.uid)));
  if (found.empty()) return absl::NotFoundError(absl::StrCat("there is no profile ", text, "..."));
  if (found.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, " is not unique: ", found[1], " and ", found[0], " match"));
  }
  return found.front();
}

absl::StatusOr<ProfileStatus> Pipeline::Visible(const Requester& requester, const std::string& id) {
  ASSIGN_OR_RETURN(const std::string resolved, Resolve(requester, id));
  absl::StatusOr<ProfileStatus> status;
  {
    MutexLock lock(&mutex_);
    status = table_.Status(resolved, Now());
  }
  if (!status.ok()) status = store_.Profile(resolved);
  if (status.ok() && !MaySee(requester, *status)) {
    return absl::PermissionDeniedError(absl::StrCat(resolved, " belongs to another user"));
  }
  return status;
}

absl::StatusOr<ProfileStatus> Pipeline::Get(const Requester& requester, const std::string& id) {
  return Visible(requester, id);
}

absl::StatusOr<std::vector<ProfileStatus>> Pipeline::List(const Requester& requester,
                                                          bool active_only, int32_t limit) {
  ProfileQuery query{.uid = std::nullopt,
                     .active_only = active_only,
                     .limit = limit == 0 ? 50 : std::clamp(limit, 1, 1000)};
  if (!requester.privileged) query.uid = requester.uid;
  ASSIGN_OR_RETURN(std::vector<ProfileStatus> profiles, store_.Profiles(query));
  MutexLock lock(&mutex_);
  for (ProfileStatus& profile : profiles) {
    absl::StatusOr<ProfileStatus> live = table_.Status(profile.id, Now());
    if (live.ok()) profile = *std::move(live);
    profile.notices.clear();
  }
  return profiles;
}

absl::StatusOr<Report> Pipeline::GetReport(const Requester& requester, const std::string& id) {
  ASSIGN_OR_RETURN(const ProfileStatus status, Visible(requester, id));
  if (IsFinal(status.state)) return store_.FinalReport(status.id);
  return results_.Build(status);
}

absl::StatusOr<WatchView> Pipeline::Watch(const Requester& requester, const std::string& id,
                                          int32_t top_loops) {
  WatchView view;
  ASSIGN_OR_RETURN(view.status, Visible(requester, id));
  const int count = std::clamp(top_loops, 0, 100);
  if (count == 0) return view;
  if (!IsFinal(view.status.state)) {
    ASSIGN_OR_RETURN(view.top_loops, results_.Top(view.status.id, count));
    return view;
  }
  const absl::StatusOr<Report> report = store_.FinalReport(view.status.id);
  if (report.ok()) view.top_loops = Brief(report->loops, static_cast<size_t>(count));
  return view;
}

absl::StatusOr<ProfileStatus> Pipeline::Cancel(const Requester& requester, const std::string& id) {
  ASSIGN_OR_RETURN(const ProfileStatus status, Visible(requester, id));
  {
    MutexLock lock(&mutex_);
    ASSIGN_OR_RETURN(const Decisions decisions, table_.Cancel(status.id, requester.name, Now()));
    Execute(decisions);
  }
  return Visible(requester, status.id);
}

absl::StatusOr<std::string> Pipeline::ReportUrl(const Requester& requester, const std::string& id) {
  ASSIGN_OR_RETURN(const ProfileStatus status, Visible(requester, id));
  if (!options_.report_url) return absl::FailedPreconditionError("this perfd serves no pages");
  return options_.report_url(status.id);
}

absl::StatusOr<ProgramHistory> Pipeline::History(const Requester& requester,
                                                 const std::string& command, int32_t limit) {
  return history_.Find(
      requester.privileged ? std::nullopt : std::optional(requester.uid), command,
      static_cast<size_t>(limit == 0 ? kUsualHistory : std::clamp(limit, 1, kMostHistory)));
}

absl::StatusOr<std::vector<AuditEntry>> Pipeline::Audit(const Requester& requester,
                                                        const std::string& id, int32_t limit) {
  AuditQuery query{.profile_id = "",
                   .uid = std::nullopt,
                   .limit = limit == 0 ? 1000 : std::clamp(limit, 1, 10'000)};
  if (!requester.privileged) query.uid = requester.uid;
  // Also of a profile that was deleted: the log outlives it.
  if (!id.empty()) {
    ASSIGN_OR_RETURN(query.profile_id, Resolve(requester, id));
  }
  return store_.Audit(query);
}

std::vector<NodeStatus> Pipeline::Nodes() {
  MutexLock lock(&mutex_);
  std::vector<NodeStatus> nodes;
  for (const auto& [name, entry] : registry_.entries()) nodes.push_back(entry.status);
  return nodes;
}

std::vector<DoctorCheck> Pipeline::OwnChecks() {
  const bool healthy = store_.healthy();
  std::vector<DoctorCheck> checks = {
      {.name = "store",
       .ok = healthy,
       .optional = false,
       .found =
           absl::StrCat(store_.directory(), healthy ? " can be written" : " cannot be written"),
       .fix = healthy ? "" : absl::StrCat("free space in ", store_.directory())},
      DiskCheck(store_.directory()),
      FileLimitCheck()};
  if (options_.extra_checks) {
    for (DoctorCheck& check : options_.extra_checks()) checks.push_back(std::move(check));
  }
  return checks;
}

absl::Status Pipeline::Doctor(const Requester& requester, const std::string& node,
                              DoctorFanout::Done done) {
  std::vector<DoctorReport> own;
  if (node.empty() || node == "perfd") own.push_back({"perfd", OwnChecks(), DoctorSource::kDaemon});
  MutexLock lock(&mutex_);
  std::vector<DoctorReport> asked;
  for (const auto& [name, entry] : registry_.entries()) {
    if (entry.connection == 0 || (!node.empty() && node != name)) continue;
    const AgentFacts& facts = entry.facts;
    if (!facts.user_mode) {
      asked.push_back({name, {}, DoctorSource::kNodeAgent});
    } else if (facts.uid == requester.uid) {
      asked.push_back({name, {}, DoctorSource::kUserAgent, facts.uid});
    } else if (!node.empty()) {
      // Its words are that user's own, and nobody else shall act on them.
      return absl::PermissionDeniedError(absl::StrCat("the agent of node ", name, " is of user ",
                                                      facts.uid, ", who alone may ask it"));
    }
  }
  if (own.empty() && asked.empty()) {
    return absl::NotFoundError(absl::StrCat("node ", node, " is not connected"));
  }
  ASSIGN_OR_RETURN(const uint64_t id,
                   doctor_.Begin(asked, std::move(own), clock_.MonotonicNs(), std::move(done)));
  for (const DoctorReport& report : asked) {
    if (const auto link = registry_.Link(report.place)) link->AskDoctor(id);
  }
  return absl::OkStatus();
}

void Pipeline::EndDoctor() {
  std::vector<DoctorFanout::Round> rounds;
  {
    MutexLock lock(&mutex_);
    rounds = doctor_.Expire(std::numeric_limits<int64_t>::max());
  }
  for (const DoctorFanout::Round& round : rounds) round.Answer();
}

}  // namespace perfd::daemon
