#include "agent/app/agent_life.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "agent/app/agent_config.h"
#include "core/base/log.h"
#include "core/base/log_file.h"
#include "core/base/status_macros.h"
#include "core/service/spine_watch.h"

namespace perfd::agent {
namespace {

constexpr int kTickMs = 500;

// True: the agent ends.
bool OnSignal(const signalfd_siginfo& info, const AgentLife& life) {
  const int number = static_cast<int>(info.ssi_signo);
  if (number == SIGCHLD) return false;
  if (number == SIGHUP && life.reload) {
    life.notify->Reloading();
    life.reload();
    life.notify->Ready("");
    return false;
  }
  if (life.child <= 0) return true;
  // What the terminal sends has reached the program itself already.
  if (info.ssi_code == SI_USER) ::kill(life.child, number);
  return false;
}

}  // namespace

UniqueFd BlockSignals(bool reloads) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, signal);
  if (reloads) sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int ServeUntilStopped(NodeAgent* agent, const AgentLife& life) {
  const absl::Duration pause = SpineWatch(life.notify->watchdog()).pause();
  absl::Time told = absl::Now();
  life.notify->Ready("");
  while (true) {
    pollfd wait{.fd = life.signals, .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, kTickMs);
    signalfd_siginfo info{};
    while (::read(life.signals, &info, sizeof(info)) == sizeof(info)) {
      if (!OnSignal(info, life)) continue;
      life.notify->Stopping();
      return 0;
    }
    int status = 0;
    if (life.child > 0 && ::waitpid(life.child, &status, WNOHANG) == life.child)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (agent != nullptr) agent->Tick();
    if (absl::Now() - told < pause) continue;
    life.notify->Alive();
    told = absl::Now();
  }
}

void EndAgent(std::unique_ptr<NodeAgent> agent, bool for_good, int exit_code) {
  std::thread([exit_code] {
    absl::SleepFor(kLongestEnd);
    LogError("a part of the agent does not end within {} s: it is left",
             absl::ToInt64Seconds(kLongestEnd));
    ::_exit(exit_code);
  }).detach();
  if (agent->Shutdown(for_good)) return;
  LogWarning("the agent ends without the sessions that do not answer");
  ::_exit(exit_code);
}

bool HasFiles(const AgentFlags& flags) {
  return !flags.config.empty() || !flags.log_file.empty();
}

// Everything is said at the end: in the log that is open then.
void Reload(const std::function<absl::StatusOr<AgentFlags>()>& read,
            const std::function<void(const AgentOptions&)>& apply, AgentFlags* running) {
  ConfigChanges changes;
  absl::StatusOr<AgentFlags> wanted = read();
  if (wanted.ok()) changes = AdoptLive(AgentConfig(*wanted), AgentConfig(*running));
  running->options.spool_limit_bytes = SpoolLimitBytes(*running);
  const absl::Status log = ApplyLog(*running);
  if (!changes.taken.empty()) apply(running->options);
  for (const std::string& change : changes.taken) LogInfo("reload: {}", change);
  for (const std::string& change : changes.refused)
    LogWarning("reload: {} needs a restart of perf-agent (profiles go on)", change);
  if (!wanted.ok())
    LogError("reload: the configuration stays as it was: {}",
             std::string(wanted.status().message()));
  if (!log.ok()) LogError("reload: the log stays as it was: {}", std::string(log.message()));
  if (wanted.ok() && log.ok() && changes.refused.empty()) LogInfo("reloaded");
}

absl::Status ApplyLog(const AgentFlags& flags) {
  LogLevel level = LogLevel::kInfo;
  RETURN_IF_ERROR(ParseLogLevel(flags.log_level, &level));
  SetLogLevel(level);
  return LogToFile(flags.log_file);
}

}  // namespace perfd::agent
