// perfctl submit: ask for a profile.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/command_table.h"
#include "client/commands/dry_run.h"
#include "client/commands/follow.h"
#include "client/commands/spec_source.h"
#include "client/render/text_style.h"
#include "core/base/status_macros.h"
#include "core/json/status_json.h"
#include "core/spec/spec.h"
#include "core/spec/units.h"

namespace perfd::client {
namespace {

struct SubmitOptions {
  SpecFlags spec;
  bool watch = false;
  bool dry_run = false;
  std::string timeout;
  std::string on_done;
};

void ShowUnmeasured(Terminal& terminal, const ProfileSpec& spec) {
  const std::vector<std::string> notes = ListUnmeasured(spec);
  if (!notes.empty()) Remark(terminal, absl::StrCat("note: ", absl::StrJoin(notes, "; ")));
}

void ShowPromiseLeft(Terminal& terminal, const ProfileSpec& spec) {
  if (!spec.variants.recovery() || spec.variants.set.empty()) return;
  Remark(terminal,
         "note: recovery mode leaves promise P1 (no variant ever executes in the job's own memory "
         "or threads): loops that "
         "provably end, store nothing and are very short run their variants in the job's threads, "
         "on nodes whose agent was "
         "started with --allow-recovery; all others in shadows");
}

absl::StatusOr<ExitCode> Submit(Terminal& terminal, DaemonClient& daemon,
                                const SubmitOptions& options, const ProfileSpec& spec) {
  ASSIGN_OR_RETURN(const absl::Duration timeout, ParseTimeout(options.timeout));
  const auto status = Ask(daemon, spec);
  if (!status.ok()) return Fail(terminal, status.status(), SubmitExitCodeOf(status.status()));
  if (spec.until_known && !status->spec.until_known)
    Remark(terminal,
           absl::StrCat("note: this perfd cannot measure until it knows: the profile lasts ",
                        FormatDuration(status->spec.duration_ns)));
  if (!terminal.json) {
    terminal.out << Clean(status->id) << "\n" << std::flush;
  } else if (!options.watch) {
    terminal.out << JsonLine(StatusToJson(*status));
  }
  if (options.watch)
    return Follow(terminal, daemon,
                  {.id = status->id,
                   .timeout = timeout,
                   .report = true,
                   .to_err = true,
                   .on_done = options.on_done});
  if (const auto refused = AwaitRefusal(daemon, *status); refused.has_value()) {
    PrintFailure(terminal, *refused, ExitCode::kUnsafeTarget);
    return ExitCode::kUnsafeTarget;
  }
  Remark(terminal,
         absl::StrCat("Follow it with `", terminal.program, " watch ", status->id,
                      "`, see the result with `", terminal.program, " report ", status->id, "`."));
  return ExitCode::kOk;
}

ExitCode Run(Terminal& terminal, const SubmitOptions& options) {
  const auto spec = MakeSpec(options.spec, terminal.in);
  if (!spec.ok())
    return Fail(terminal, spec.status(),
                absl::IsInvalidArgument(spec.status()) ? ExitCode::kInvalidSpec : ExitCode::kUsage);
  if (!options.on_done.empty() && !options.watch)
    return Fail(terminal, absl::InvalidArgumentError("--on-done goes with --watch"),
                ExitCode::kUsage);
  if (const auto timeout = ParseTimeout(options.timeout); !timeout.ok())
    return Fail(terminal, timeout.status());
  ShowUnmeasured(terminal, *spec);
  if (!options.dry_run) ShowPromiseLeft(terminal, *spec);
  if (options.dry_run) return DryRun(terminal, *spec, *ParseTimeout(options.timeout));
  return WithDaemon(terminal,
                    [&](DaemonClient& daemon) { return Submit(terminal, daemon, options, *spec); });
}

CommandRun DefineSubmit(CLI::App& app) {
  auto options =
      std::make_shared<SubmitOptions>();  // shared by the parser and the command it returns
  SpecFlags& spec = options->spec;
  app.add_option("FILE", spec.file, "Job file in YAML; - reads standard input");
  TargetSpec& target = spec.target;
  app.add_option("--pid", target.pids, "Profile these processes")->delimiter(',');
  app.add_flag("--tree", target.tree,
               "With --pid: also all that run below these processes, now and as they start; those "
               "that only wait for their children (time, timeout, a shell, mpirun) are left out");
  app.add_option("--command", target.command, "Profile processes whose executable has this name");
  app.add_option("--slurm-job", target.slurm_job, "Profile all steps of this Slurm job");
  app.add_option("--user", target.user, "With --command: only processes of this user");
  app.add_option("--node", target.node, "Only this node, or these, e.g. n[1-4],m3");
  app.add_option("--ranks", spec.ranks, "Only these ranks, e.g. 0-7,9");
  app.add_option("--duration", spec.duration,
                 "How long to sample, e.g. 30s; auto: until every hot loop is known, or "
                 "nothing more is learnt (default auto)");
  app.add_option("--max-duration", spec.max_duration,
                 "With --duration auto: at most so long (default 10m)");
  app.add_option("--frequency", spec.frequency, "Samples per second and thread (default 199Hz)");
  app.add_option("--event", spec.event, "auto, cpu-clock or a libpfm4 event (default auto)");
  app.add_option("--callpaths", spec.callpaths, "auto, off, fp or dwarf (default auto)");
  app.add_option("--variants", spec.variants,
                 "Altered copies of the hot loops to time in shadows, e.g. LS,FP,NO_RED+NO_DIV; "
                 "none: alter nothing")
      ->delimiter(',');
  app.add_option("--mode", spec.mode,
                 "shadow, or recovery: very short loops run their variants in the job's own "
                 "threads, outside promise P1 "
                 "(default shadow)");
  app.add_option("--overhead", spec.overhead,
                 "Most wall time the profile may add, e.g. 1% (default 2%)");
  app.add_option("--name", spec.name, "Text shown in lists and reports");
  app.add_flag("--watch,-w", options->watch, "Follow the profile and print its report");
  app.add_option("--timeout", options->timeout,
                 "With --watch or --dry-run: give up following after, e.g. 5m");
  app.add_option("--on-done", options->on_done, kOnDoneHelp);
  app.add_flag("--dry-run", options->dry_run,
               "Look at the job for some seconds and say which loops would be altered, which not "
               "and why, and what it would cost; nothing is altered");
  return [options](Terminal& terminal) { return Run(terminal, *options); };
}

}  // namespace

CommandEntry SubmitCommand() {
  return {
      "submit", "Ask for a profile of running processes",
      R"(Prints the id of the new profile. The job is not restarted and its results do not change: hot loops are altered only
in short-lived copies of its processes (shadows), within the budget.
Options given beside a job file replace what the file says.

EXAMPLES
  perfctl submit job.yaml --watch
  perfctl submit --pid 4711 --watch             # until every hot loop is known
  perfctl submit --pid 4711 --duration 30s --watch
  perfctl submit --command lulesh2.0 --callpaths fp
  perfctl submit --pid 4711 --tree --watch      # 4711 is a shell, timeout, mpirun ...
  perfctl submit --pid 4711 --variants none
  perfctl submit job.yaml --dry-run

EXIT CODES
  0 accepted (with --watch: complete)   2 usage            3 no such process or job
  4 not permitted   5 invalid spec      7 beyond the budget
  6 unsafe target, or one that only waits for its children (said at once, with the child that works)
  8 partial result (with --watch)       124 timeout        1 anything else
With --dry-run: 0 some loop would be altered, 3 there is no hot loop, 6 every loop is refused, 7 the budget buys no shadow.
An interrupt (Ctrl-C) during --watch leaves the profile running; it ends a dry run.)",
      DefineSubmit};
}

}  // namespace perfd::client
