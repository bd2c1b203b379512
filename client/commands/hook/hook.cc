// perfctl hook: what a batch scheduler's prolog and epilog call.
#include <pwd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/commands/command_table.h"
#include "client/commands/hook/guard.h"
#include "client/commands/hook/slurm_job.h"
#include "client/render/hook_text.h"
#include "core/base/host_name.h"
#include "core/base/status_macros.h"

namespace perfd::client {
namespace {

constexpr size_t kAccountBytes = 16384;

struct HookOptions {
  HookJob job;
  std::string user;
  std::string opt_in;
  bool opt_out = false;
  std::string timeout;
  int limit = 50;
};

struct Calls {
  CLI::App* prolog = nullptr;
  CLI::App* epilog = nullptr;
  CLI::App* begin = nullptr;
  CLI::App* end = nullptr;
  CLI::App* list = nullptr;
};

// By number or by name.
absl::Status ResolveUser(const std::string& user, HookJob* job) {
  std::vector<char> buffer(kAccountBytes);
  passwd entry{};
  passwd* found = nullptr;
  if (absl::SimpleAtoi(user, &job->uid)) {
    ::getpwuid_r(job->uid, &entry, buffer.data(), buffer.size(), &found);
  } else {
    ::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (found == nullptr)
      return absl::InvalidArgumentError(
          absl::StrCat("--user: this node knows no user '", user, "'"));
    job->uid = found->pw_uid;
  }
  if (found != nullptr) job->user = found->pw_name;
  return absl::OkStatus();
}

absl::StatusOr<HookJob> JobOfOptions(const HookOptions& options) {
  HookJob job = options.job;
  RETURN_IF_ERROR(ResolveUser(options.user, &job));
  if (options.opt_out) {
    job.preference = HookPreference::kOptOut;
  } else if (!options.opt_in.empty()) {
    job.preference = HookPreference::kOptIn;
    if (options.opt_in != "default") job.preset = options.opt_in;
  }
  return job;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Duration TimeoutOf(const HookOptions& options) {
  return HookTimeoutOf({"--timeout", options.timeout});
}

void Say(Terminal& terminal, absl::string_view text) {
  terminal.err << terminal.program << ": " << Clean(text) << "\n";
}

// A prolog that fails takes its node out of service: whatever goes wrong here is only said.
ExitCode Call(Terminal& terminal, const HookOptions& options, const absl::StatusOr<HookJob>& job,
              bool begins) {
  if (!job.ok()) {
    Say(terminal, job.status().message());
    return ExitCode::kOk;
  }
  const auto daemon = terminal.connect(VersionCheck::kAny);
  if (!daemon.ok()) {
    Say(terminal, daemon.status().message());
    return ExitCode::kOk;
  }
  HookClient& hooks = (*daemon)->hooks();
  const absl::StatusOr<HookAnswer> answer =
      begins ? hooks.Begin(*job, TimeoutOf(options)) : hooks.End(*job, TimeoutOf(options));
  if (!answer.ok()) {
    Say(terminal, answer.status().message());
  } else if (begins && answer->decision != HookDecision::kProfile) {
    Say(terminal, absl::StrCat("job ", job->job, " is not profiled: ", answer->reason));
  }
  return ExitCode::kOk;
}

ExitCode List(Terminal& terminal, const HookOptions& options) {
  return WithDaemon(terminal, [&](DaemonClient& daemon) -> absl::StatusOr<ExitCode> {
    ASSIGN_OR_RETURN(const HookOverview overview, daemon.hooks().List(options.limit));
    terminal.out << (terminal.json ? HookToJsonLine(overview)
                                   : RenderHook(overview, terminal.clock.UnixNs()));
    return ExitCode::kOk;
  });
}

ExitCode Run(Terminal& terminal, const HookOptions& options, const Calls& calls) {
  if (calls.list->parsed()) return List(terminal, options);
  if (calls.prolog->parsed() || calls.epilog->parsed())
    return Call(terminal, options, JobOfSlurm(Variable, HostName()), calls.prolog->parsed());
  return Call(terminal, options, JobOfOptions(options), calls.begin->parsed());
}

void DefineJob(CLI::App& app, HookOptions& options) {
  app.add_option("--job", options.job.job, "The scheduler's id of the job")->required();
  app.add_option("--user", options.user, "The job's user, by number or name")->required();
  app.add_option("--cluster", options.job.cluster, "With several clusters: which");
  app.add_option("--restart", options.job.restart, "How often the job was restarted")
      ->check(CLI::Range(0, INT32_MAX));
  app.add_option("--partition", options.job.partition, "Its partition or queue");
  app.add_option("--account", options.job.account, "The account that is charged");
  app.add_option("--scheduler", options.job.scheduler,
                 "The scheduler's name for messages, e.g. PBS; at most 32 characters");
  app.add_option("--nodes", options.job.nodes, "Its nodes, e.g. n[1-4,7],m3");
  app.add_option("--node", options.job.node, "The node this call comes from");
  app.add_option("--opt-in", options.opt_in,
                 "The user wants a profile with this preset of the policy, or with `default`");
  app.add_flag("--opt-out", options.opt_out, "The user wants none");
}

CommandRun DefineHook(CLI::App& app) {
  auto options = std::make_shared<HookOptions>();  // shared by the parsers and the command
  Calls calls;
  app.require_subcommand(1);
  const auto add = [&](const char* name, const char* summary) {
    CLI::App* call = app.add_subcommand(name, summary);
    call->fallthrough();
    return call;
  };
  calls.prolog = add("prolog", "From Slurm's Prolog: a job begins");
  calls.epilog = add("epilog", "From Slurm's Epilog: a job has ended");
  calls.begin = add("begin", "From any scheduler: a job begins");
  calls.end = add("end", "From any scheduler: a job has ended");
  calls.list = add("list", "What was decided about the latest jobs");
  for (CLI::App* call : {calls.prolog, calls.epilog, calls.begin, calls.end})
    call->add_option("--timeout", options->timeout, "Give up after this, e.g. 300ms (the default)");
  DefineJob(*calls.begin, *options);
  DefineJob(*calls.end, *options);
  calls.list->add_option("--limit", options->limit, "At most so many, newest first (default 50)")
      ->check(CLI::Range(1, 1000));
  return [options, calls](Terminal& terminal) { return Run(terminal, *options, calls); };
}

}  // namespace

CommandEntry HookCommand() {
  return {
      "hook", "For a scheduler's prolog and epilog: perfd decides which jobs are profiled",
      R"(Tells perfd that a job begins or has ended on this node. perfd decides by its policy (perfd --policy) whether the
job is profiled, once per job however many nodes call. Run it as root; over TCP with the certificate of the node's agent.
All calls but `list` exit 0 whatever happens, print nothing on standard output and at most one line on standard error, and
take no longer than --timeout.

EXAMPLES
  perfctl hook prolog                       in the script that slurm.conf names as Prolog
  perfctl hook epilog --timeout 200ms       in the Epilog script
  perfctl hook begin --scheduler PBS --job 4711.pbs --user alice --nodes n[1-4] --node n1
  perfctl hook end --scheduler PBS --job 4711.pbs --user alice --node n1
  perfctl hook list --json

EXIT CODES
  0 always; of `list`: 0 ok   1 daemon not reachable   2 usage)",
      DefineHook};
}

}  // namespace perfd::client
