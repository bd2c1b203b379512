#include "daemon/pipeline/history_query.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/analysis/jobs/history.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {

std::optional<HistoryProfile> HistoryQuery::Remembered(const ProfileStatus& status) {
  MutexLock lock(&mutex_);
  const auto it = kept_.find(status.id);
  if (it == kept_.end() || it->second.samples != status.samples) return std::nullopt;
  return it->second.profile;
}

std::optional<HistoryProfile> HistoryQuery::Read(const ProfileStatus& status) {
  const absl::StatusOr<Report> report = store_.FinalReport(status.id);
  if (!report.ok()) {
    if (!absl::IsNotFound(report.status()))
      LogWarning("{} is not in the history: {}", status.id, Text(report.status()));
    return std::nullopt;
  }
  HistoryProfile profile = ToHistory(*report);
  MutexLock lock(&mutex_);
  kept_[status.id] = {status.samples, profile};
  if (kept_.size() > kMaxKept) kept_.erase(kept_.begin());
  return profile;
}

absl::StatusOr<ProgramHistory> HistoryQuery::Find(std::optional<uint32_t> uid, std::string command,
                                                  size_t limit) {
  const int64_t now_ns = clock_.MonotonicNs();
  const bool reads = !reading_.exchange(true);
  absl::StatusOr<ProgramHistory> history =
      Collect(uid, std::move(command), limit, reads ? now_ns + kReadNs : now_ns);
  if (reads) reading_ = false;
  return history;
}

absl::StatusOr<ProgramHistory> HistoryQuery::Collect(std::optional<uint32_t> uid,
                                                     std::string command, size_t limit,
                                                     int64_t until_ns) {
  ASSIGN_OR_RETURN(const std::vector<ProfileStatus> stored,
                   store_.Profiles({.uid = uid, .active_only = false, .limit = kMaxProfiles}));
  ProgramHistory history;
  history.command = std::move(command);
  for (const ProfileStatus& status : stored) {  // newest first
    if (history.profiles.size() == limit) break;
    if (!IsFinal(status.state) || status.samples == 0) continue;
    const std::string& wanted = history.command;
    if (!wanted.empty() && status.spec.target.command.value_or(wanted) != wanted) continue;
    std::optional<HistoryProfile> profile = Remembered(status);
    if (!profile.has_value() && clock_.MonotonicNs() >= until_ns) {
      history.incomplete =
          absl::StrCat("older profiles than ", status.id, " were not read yet: ask again");
      break;
    }
    if (!profile.has_value()) profile = Read(status);
    if (!profile.has_value() || profile->command.empty()) continue;
    if (history.command.empty()) history.command = profile->command;
    if (profile->command == history.command) history.profiles.push_back(*std::move(profile));
  }
  if (history.profiles.empty() && history.incomplete.empty()) {
    return absl::NotFoundError(
        history.command.empty()
            ? "there is no profile that is over yet"
            : absl::StrCat("no profile that is over is of a program '", history.command, "'"));
  }
  std::reverse(history.profiles.begin(), history.profiles.end());
  return history;
}

}  // namespace perfd::daemon
