// perf-agent: flags -> options -> agent -> loop.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "agent/app/agent_flags.h"
#include "agent/app/agent_life.h"
#include "agent/app/guarded_proc.h"
#include "agent/app/leftovers/heal.h"
#include "agent/app/leftovers/heal_after.h"
#include "agent/app/node_agent.h"
#include "agent/app/reader_source.h"
#include "agent/replay/replay_agent.h"
#include "core/base/lock_checks.h"
#include "core/base/log.h"
#include "core/service/service_notify.h"

namespace perfd::agent {
namespace {

pid_t StartProgram(std::vector<std::string>& program) {
  const pid_t pid = fork();  // before any thread exists
  if (pid != 0) return pid;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  std::vector<char*> arguments;
  arguments.reserve(program.size() + 1);
  for (std::string& argument : program) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "perf-agent: cannot run %s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

int Doctor(const AgentOptions& options) {
  bool ok = true;
  for (const NodeCheck& check : NodeAgent::Check(options)) {
    std::printf("%-8s %-28s %s\n",
                check.ok         ? "ok"
                : check.optional ? "optional"
                                 : "MISSING",
                check.name.c_str(), OneLine(check.found).c_str());
    if (!check.ok && !check.fix.empty())
      std::printf("%8s fix: %s\n", "", OneLine(check.fix).c_str());
    ok &= check.ok || check.optional;
  }
  return ok ? 0 : 1;
}

int HealRanks(const AgentFlags& flags) {
  const HealOptions options = NodeAgent::HealingOf(flags.options);
  if (!flags.heal.after_agent) return Heal(options, flags.heal);
  const SystemClock clock;
  return HealAfterAgent(kHelperSocket, options, Answers(GuardedProc(options.reader_binary, clock)));
}

int Serve(AgentFlags flags, int argc, char** argv) {
  const bool exec = flags.command == AgentCommand::kExec;
  // The variables of a service manager are then the program's.
  const ServiceNotify notify = exec ? ServiceNotify() : ServiceNotify::FromEnvironment();
  const bool reloads = !exec && HasFiles(flags);
  const UniqueFd signals = BlockSignals(reloads);
  const pid_t child = exec ? StartProgram(flags.program) : 0;
  AgentLife life{.signals = signals.get(), .child = child, .notify = &notify};
  auto agent = NodeAgent::Create(flags.options);
  if (!agent.ok()) {
    LogError("{}", std::string(agent.status().message()));
    if (child <= 0) return 1;
    LogWarning("the program runs without an agent");
    return ServeUntilStopped(nullptr, life);
  }
  if (reloads) {
    life.reload = [&] {
      Reload([=] { return ParseAgentFlagsAgain(argc, argv); },
             [&](const AgentOptions& options) { (*agent)->Apply(options); }, &flags);
    };
  }
  const int exit_code = ServeUntilStopped(agent->get(), life);
  EndAgent(*std::move(agent), /*for_good=*/child > 0, exit_code);
  return exit_code;
}

// Recordings as nodes, until somebody ends it.
int Replay(const AgentFlags& flags) {
  const ServiceNotify notify = ServiceNotify::FromEnvironment();
  const UniqueFd signals = BlockSignals(/*reloads=*/false);
  const AgentOptions& options = flags.options;
  const std::string reader =
      options.reader_binary.empty() ? BesideThisProgram(kReaderName) : options.reader_binary;
  std::vector<std::unique_ptr<ReplayAgent>> agents;
  for (size_t i = 0; i < flags.replay.files.size(); ++i) {
    const std::string& node = flags.replay.nodes[i];
    const std::string spool = SpoolOfNode(flags, node);
    if (spool.empty()) {
      LogError("{}", kNoFolder);
      return 1;
    }
    auto agent = ReplayAgent::Create({.dial = options.dial,
                                      .path = flags.replay.files[i],
                                      .node = node,
                                      .spool_directory = spool,
                                      .spool_limit_bytes = options.spool_limit_bytes,
                                      .open = ReaderOpener({.reader_binary = reader})});
    if (!agent.ok()) {
      LogError("{}: {}", flags.replay.files[i], Text(agent.status()));
      return 1;
    }
    agents.push_back(*std::move(agent));
  }
  return ServeUntilStopped(nullptr, {.signals = signals.get(), .notify = &notify});
}

int Main(int argc, char** argv) {
  SkipLockOrderChecks();
  AgentFlags flags;
  int exit_code = 0;
  if (!ParseAgentFlags(argc, argv, &flags, &exit_code)) return exit_code;
  InitLog("perf-agent", LogLevel::kInfo);
  if (const absl::Status status = ApplyLog(flags); !status.ok()) {
    LogError("{}", std::string(status.message()));
    return 1;
  }
  if (flags.command == AgentCommand::kDoctor) return Doctor(flags.options);
  if (flags.command == AgentCommand::kHeal) return HealRanks(flags);
  if (flags.command == AgentCommand::kReplay) return Replay(flags);
  return Serve(std::move(flags), argc, argv);
}

}  // namespace
}  // namespace perfd::agent

int main(int argc, char** argv) {
  return perfd::agent::Main(argc, argv);
}
