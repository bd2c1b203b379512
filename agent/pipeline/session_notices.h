// agent/pipeline/session_notices.h - the troubles of one session that its next news will tell.
//
// Bounds   kMaxPerUpdate go out at a time; the last of them says how many more there were.
// Threads  thread-bound (the session's thread).
#ifndef AGENT_PIPELINE_SESSION_NOTICES_H_
#define AGENT_PIPELINE_SESSION_NOTICES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/model/profile.h"

namespace perfd::agent {

class SessionNotices {
 public:
  static constexpr size_t kMaxPerUpdate = 100;

  explicit SessionNotices(std::string node) : node_(std::move(node)) {}

  // pid 0: of none in particular.
  void Error(const absl::Status& status, int32_t pid);
  void Warning(const absl::Status& status, int32_t pid);
  void Info(const absl::Status& status, int32_t pid);
  // For what is no failure.
  void Say(Notice::Severity severity, absl::string_view text, int32_t pid);
  // About launchers: errors where they are refused, a warning for one that was named, else a note.
  void Say(const std::vector<LauncherNote>& launchers, bool in_tree);
  bool empty() const { return notices_.empty(); }
  // All since the last call, and `more` behind them.
  std::vector<Notice> Drain(std::vector<Notice> more);

 private:
  void Add(Notice::Severity severity, absl::StatusCode code, absl::string_view text, int32_t pid);

  const std::string node_;
  std::vector<Notice> notices_;
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_SESSION_NOTICES_H_
