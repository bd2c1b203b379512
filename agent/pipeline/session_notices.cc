#include "agent/pipeline/session_notices.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perfd::agent {

using Severity = Notice::Severity;

void SessionNotices::Add(Notice::Severity severity, absl::StatusCode code, absl::string_view text,
                         int32_t pid) {
  notices_.push_back(
      {.severity = severity, .code = code, .node = node_, .pid = pid, .text = std::string(text)});
}

void SessionNotices::Error(const absl::Status& status, int32_t pid) {
  Add(Notice::Severity::kError, status.code(), status.message(), pid);
}

void SessionNotices::Warning(const absl::Status& status, int32_t pid) {
  Add(Notice::Severity::kWarning, status.code(), status.message(), pid);
}

void SessionNotices::Info(const absl::Status& status, int32_t pid) {
  Add(Notice::Severity::kInfo, status.code(), status.message(), pid);
}

void SessionNotices::Say(Notice::Severity severity, absl::string_view text, int32_t pid) {
  Add(severity, absl::StatusCode::kOk, text, pid);
}

// The text is for clients that do not know the rest.
void SessionNotices::Say(const std::vector<LauncherNote>& launchers, bool in_tree) {
  for (const LauncherNote& note : launchers) {
    const bool refused = note.disposition == LauncherNote::Disposition::kRefused;
    Severity severity = in_tree ? Severity::kInfo : Severity::kWarning;
    if (refused) severity = Severity::kError;
    Add(severity, refused ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kOk,
        refused ? "it only waits for its children: name those that work"
                : "what only waits for its children is not measured",
        note.launcher_count == 1 ? note.launchers.front().pid : 0);
    notices_.back().launchers = note;
  }
}

std::vector<Notice> SessionNotices::Drain(std::vector<Notice> more) {
  std::vector<Notice> all = std::exchange(notices_, {});
  std::move(more.begin(), more.end(), std::back_inserter(all));
  if (all.size() > kMaxPerUpdate) {
    const size_t left = all.size() - kMaxPerUpdate;
    all.resize(kMaxPerUpdate);
    all.back().text = absl::StrCat("... and ", left + 1, " more notices of this kind");
  }
  return all;
}

}  // namespace perfd::agent
