#include "client/commands/dry_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "client/commands/follow.h"
#include "client/render/dry_run/dry_run.h"
#include "client/render/report_totals.h"
#include "core/base/status_macros.h"
#include "core/json/status_json.h"

namespace perfd::client {
namespace {

ExitCode NothingAsked(Terminal& terminal) {
  if (terminal.json)
    terminal.out << JsonLine({{"dry_run", true}, {"loops", Json::array()}, {"patched_loops", 0}});
  else
    terminal.out << "No variants are asked for: nothing would be altered.\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Show(Terminal& terminal, DaemonClient& daemon,
                              const ProfileStatus& status) {
  if (status.state == ProfileState::kFailed) {
    PrintFailure(terminal, status, ExitCodeOf(status));
    return ExitCodeOf(status);
  }
  ASSIGN_OR_RETURN(const Report report, daemon.GetReport(status.id));
  if (terminal.json) {
    terminal.out << JsonLine(DryRunToJson(report));
  } else {
    terminal.out << RenderDryRun(report, terminal.style);
    terminal.err << RenderNotices(report.status.notices, TextStyle());
  }
  return DryRunExitCodeOf(report);
}

absl::StatusOr<ExitCode> RunDry(Terminal& terminal, DaemonClient& daemon, const ProfileSpec& spec,
                                absl::Duration timeout) {
  const auto submitted = Ask(daemon, spec);
  if (!submitted.ok())
    return Fail(terminal, submitted.status(), SubmitExitCodeOf(submitted.status()));
  if (!submitted->spec.dry_run) {
    // A perfd that does not know dry runs took it for a profile; it looks for a while before it alters anything.
    daemon.Cancel(submitted->id).IgnoreError();
    return absl::UnimplementedError(absl::StrCat("this perfd cannot do dry runs: profile ",
                                                 submitted->id, " is cancelled again"));
  }
  Remark(terminal, absl::StrCat("Dry run ", submitted->id, ": nothing is altered."));
  const auto status =
      Await(terminal, daemon, {.id = submitted->id, .timeout = timeout, .to_err = true});
  if (status.ok()) return Show(terminal, daemon, *status);
  daemon.Cancel(submitted->id).IgnoreError();  // whatever ended the wait
  if (!absl::IsCancelled(status.status())) return status.status();
  Remark(terminal, absl::StrCat("Interrupted. Dry run ", submitted->id, " is cancelled."));
  return ExitCode::kFailure;
}

}  // namespace

ExitCode DryRunExitCodeOf(const Report& report) {
  const DryRunSummary summary = SummarizeDryRun(report);
  if (summary.loops.empty()) return ExitCode::kNotFound;
  if (summary.patched_loops == 0) return ExitCode::kUnsafeTarget;
  const ProfileSpec& spec = report.status.spec;
  const bool bought =
      std::any_of(summary.loops.begin(), summary.loops.end(), [&](const DryRunLoop& loop) {
        const CostForecast forecast =
            ForecastCost(loop.predicted, spec.budget.overhead_ratio, spec.duration_ns);
        return loop.patched() && forecast.most_shadows > 0;
      });
  return bought ? ExitCodeOf(report.status) : ExitCode::kBudget;
}

ExitCode DryRun(Terminal& terminal, ProfileSpec spec, absl::Duration timeout) {
  if (spec.variants.set.empty()) return NothingAsked(terminal);
  spec.dry_run = true;
  return WithDaemon(terminal,
                    [&](DaemonClient& daemon) { return RunDry(terminal, daemon, spec, timeout); });
}

}  // namespace perfd::client
