#include "client/commands/follow.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/notify/on_done.h"
#include "client/render/live_view.h"
#include "client/render/notices/notice_text.h"
#include "client/render/report_text.h"
#include "client/render/report_totals.h"
#include "client/render/memory/report_memory.h"
#include "core/base/status_macros.h"
#include "core/json/report_json.h"
#include "core/json/status_json.h"
#include "core/spec/units.h"

namespace perfd::client {
namespace {

constexpr double kLogStep = 0.1;  // of the progress, between two lines of the plain log

constexpr absl::Duration kMostWait = absl::Seconds(3);
constexpr absl::Duration kMostCancel = absl::Seconds(15);
constexpr absl::Duration kPause = absl::Milliseconds(50);

bool KnowsItsProcesses(const ProfileStatus& status) {
  using Phase = NodeProgress::Phase;
  return IsFinal(status.state) ||
         std::none_of(status.nodes.begin(), status.nodes.end(), [](const NodeProgress& node) {
           return node.phase == Phase::kAsked || node.phase == Phase::kDiscovering;
         });
}

// Shows events in the way the terminal allows.
class ProgressView {
 public:
  ProgressView(Terminal& terminal, bool to_err, bool silent)
      : terminal_(terminal),
        silent_(silent),
        stream_(to_err ? terminal.err : terminal.out),
        live_(to_err ? terminal.err_is_tty : terminal.out_is_tty) {}

  void Show(const WatchEvent& event) {
    last_ = event.status;
    if (silent_) return;
    if (terminal_.json) {
      terminal_.out << JsonLine(WatchEventToJson(event.status, event.top_loops)) << std::flush;
    } else if (live_) {
      const auto lines = RenderLive(event.status, event.top_loops, terminal_.style);
      stream_ << Redraw(lines_, lines) << std::flush;
      lines_ = lines.size();
    } else {
      Log(event);
    }
  }

  const std::optional<ProfileStatus>& last() const { return last_; }

 private:
  void Log(const WatchEvent& event) {
    const bool fresh = !logged_state_.has_value() || *logged_state_ != event.status.state ||
                       event.status.course.progress_ratio >= logged_progress_ + kLogStep ||
                       event.status.course.loops.known != logged_known_;
    if (!fresh) return;
    logged_state_ = event.status.state;
    logged_progress_ = event.status.course.progress_ratio;
    logged_known_ = event.status.course.loops.known;
    stream_ << RenderLogLine(event.status, event.top_loops) << std::flush;
  }

  Terminal& terminal_;
  const bool silent_;
  std::ostream& stream_;
  const bool live_;
  size_t lines_ = 0;
  std::optional<ProfileStatus> last_;
  std::optional<ProfileState> logged_state_;
  double logged_progress_ = 0;
  int32_t logged_known_ = 0;
};

absl::Status PrintReport(Terminal& terminal, DaemonClient& daemon, const std::string& id) {
  ASSIGN_OR_RETURN(const Report report, daemon.GetReport(id));
  if (terminal.json) {
    terminal.out << JsonLine({{"report", ReportToJson(report)}});
    return absl::OkStatus();
  }
  ReportTextOptions options;
  options.style = terminal.style;
  terminal.out << "\n" << RenderReport(report, options);
  const std::string memory = RenderMemoryPlaces(report, kMemoryPlaces, terminal.style);
  if (!memory.empty()) terminal.out << "\n" << memory;
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> Finish(Terminal& terminal, DaemonClient& daemon,
                                const FollowOptions& options, const ProfileStatus& status) {
  const ExitCode exit_code = ExitCodeOf(status);
  if (status.state == ProfileState::kFailed) {
    PrintFailure(terminal, status, exit_code);
    return exit_code;
  }
  if (options.report) {
    RETURN_IF_ERROR(PrintReport(terminal, daemon, status.id));
  } else if (!terminal.json) {
    terminal.err << RenderNotices(status.notices, TextStyle());
  }
  return exit_code;
}

// `last`: what the daemon said before the wait ended, however it ended.
absl::Status Watch(Terminal& terminal, DaemonClient& daemon, const FollowOptions& options,
                   bool silent, std::optional<ProfileStatus>& last) {
  terminal.catch_interrupts();
  ProgressView view(terminal, options.to_err, silent);
  const absl::Status status =
      daemon.Watch({options.id, options.top, options.timeout, terminal.interrupted},
                   [&view](const WatchEvent& event) { view.Show(event); });
  last = view.last();
  if (status.ok() && !last.has_value()) return absl::InternalError("the daemon sent no status");
  return status;
}

}  // namespace

absl::StatusOr<ProfileStatus> Ask(DaemonClient& daemon, const ProfileSpec& spec) {
  ASSIGN_OR_RETURN(ProfileStatus status, daemon.Submit(spec));
  if (spec.target.tree && !status.spec.target.tree) {
    daemon.Cancel(status.id).IgnoreError();
    return absl::UnimplementedError(absl::StrCat(
        "this perfd does not know process trees and would only have measured the processes that "
        "are named: profile ",
        status.id, " is cancelled again"));
  }
  if (!spec.until_known || status.spec.until_known) return status;
  // An older perfd, which would measure for the longest time.
  RETURN_IF_ERROR(daemon.Cancel(status.id).status());
  // Its agents let go of the processes first.
  const absl::Time end = absl::Now() + kMostCancel;
  while (absl::Now() < end) {
    const auto first = daemon.GetProfile(status.id);
    if (!first.ok() || IsFinal(first->state)) break;
    absl::SleepFor(kPause);
  }
  ProfileSpec fixed = spec;
  fixed.until_known = false;
  fixed.duration_ns = std::min(spec.duration_ns, kFixedDurationNs);
  return daemon.Submit(fixed);
}

std::optional<ProfileStatus> AwaitRefusal(DaemonClient& daemon, const ProfileStatus& submitted) {
  if (submitted.spec.target.pids.empty()) return std::nullopt;
  const absl::Time end = absl::Now() + kMostWait;
  while (absl::Now() < end) {
    const auto status = daemon.GetProfile(submitted.id);
    if (!status.ok()) return std::nullopt;  // the profile is accepted, whatever ails now
    if (RefusesLaunchers(*status)) return *status;
    if (KnowsItsProcesses(*status)) return std::nullopt;
    absl::SleepFor(kPause);
  }
  return std::nullopt;
}

void PrintFailure(Terminal& terminal, const ProfileStatus& status, ExitCode exit_code) {
  std::string text = absl::StrCat("profile ", status.id, " failed");
  for (const Notice& notice : status.notices) {
    if (notice.severity != Notice::Severity::kError) continue;
    absl::StrAppend(&text, "\n", notice.node.empty() ? "" : notice.node + ": ", NoticeText(notice));
  }
  Fail(terminal, absl::InternalError(text), exit_code);
}

absl::StatusOr<ProfileStatus> Await(Terminal& terminal, DaemonClient& daemon,
                                    const FollowOptions& options) {
  std::optional<ProfileStatus> last;
  RETURN_IF_ERROR(Watch(terminal, daemon, options, terminal.json && options.to_err, last));
  return *std::move(last);
}

absl::StatusOr<ExitCode> Follow(Terminal& terminal, DaemonClient& daemon,
                                const FollowOptions& options) {
  std::optional<ProfileStatus> last;
  const absl::Status status = Watch(terminal, daemon, options, false, last);
  const std::string id = last.has_value() ? last->id : options.id;
  if (absl::IsCancelled(status)) {
    Remark(terminal,
           absl::StrCat("Interrupted. Profile ", id, " goes on: `", terminal.program, " watch ", id,
                        "` follows it, `", terminal.program, " cancel ", id, "` ends it."));
    return ExitCode::kFailure;  // to a script this is not a complete profile
  }
  RETURN_IF_ERROR(status);
  const absl::StatusOr<ExitCode> finished = Finish(terminal, daemon, options, *last);
  if (!options.on_done.empty()) {
    terminal.out << std::flush;
    if (const absl::Status run = RunOnDone(options.on_done, *last); !run.ok())
      Remark(terminal, absl::StrCat("--on-done: ", run.message()));
  }
  return finished;
}

absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text) {
  if (text.empty()) return absl::InfiniteDuration();
  ASSIGN_OR_RETURN(const int64_t ns, ParseDuration(text));
  return absl::Nanoseconds(ns);
}

}  // namespace perfd::client
