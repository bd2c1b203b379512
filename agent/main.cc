// perf-agent: flags -> options -> agent -> loop.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "agent/app/agent_flags.h"
#include "agent/app/node_agent.h"
#include "core/base/log.h"
#include "core/base/unique_fd.h"

namespace perfd {
namespace {

constexpr int kTickMs = 500;

// The signals that end the agent, as a descriptor. Blocked in every thread.
UniqueFd BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return UniqueFd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

pid_t StartProgram(std::vector<std::string>& program) {
  const pid_t pid = fork();  // before any thread exists
  if (pid != 0) return pid;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  std::vector<char*> arguments;
  for (std::string& argument : program) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "perf-agent: cannot run %s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

int Doctor(const AgentOptions& options) {
  bool ok = true;
  for (const NodeCheck& check : NodeAgent::Check(options)) {
    std::printf("%-8s %-28s %s\n", check.ok ? "ok" : check.optional ? "optional" : "MISSING", check.name.c_str(),
                check.found.c_str());
    if (!check.ok && !check.fix.empty()) std::printf("%8s fix: %s\n", "", check.fix.c_str());
    ok &= check.ok || check.optional;
  }
  return ok ? 0 : 1;
}

// Ticks until SIGINT or SIGTERM, or until the program under `exec` ends. Returns the exit code. `agent` may be null: the
// user's program comes first, and runs on without a profile.
int Serve(NodeAgent* agent, int signals, pid_t child) {
  while (true) {
    pollfd wait{.fd = signals, .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, kTickMs);
    signalfd_siginfo info{};
    while (::read(signals, &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo == SIGCHLD) continue;
      if (child <= 0) return 0;
      // What the terminal sends has reached the program itself already.
      if (info.ssi_code == SI_USER) kill(child, static_cast<int>(info.ssi_signo));
    }
    int status = 0;
    if (child > 0 && waitpid(child, &status, WNOHANG) == child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (agent != nullptr) agent->Tick();
  }
}

int Main(int argc, char** argv) {
  AgentFlags flags;
  int exit_code = 0;
  if (!ParseAgentFlags(argc, argv, &flags, &exit_code)) return exit_code;
  InitLog("perf-agent", flags.log_level);
  if (flags.command == AgentCommand::kDoctor) return Doctor(flags.options);
  if (flags.command == AgentCommand::kHeal) return Heal(flags.options, flags.heal);
  const UniqueFd signals = BlockSignals();
  const pid_t child = flags.command == AgentCommand::kExec ? StartProgram(flags.program) : 0;
  auto agent = NodeAgent::Create(flags.options);
  if (!agent.ok()) {
    LogError("{}", std::string(agent.status().message()));
    if (child <= 0) return 1;
    LogWarning("the program runs without an agent");
    return Serve(nullptr, signals.get(), child);
  }
  exit_code = Serve(agent->get(), signals.get(), child);
  (*agent)->Shutdown(/*for_good=*/child > 0);
  return exit_code;
}

}  // namespace
}  // namespace perfd

int main(int argc, char** argv) { return perfd::Main(argc, argv); }
