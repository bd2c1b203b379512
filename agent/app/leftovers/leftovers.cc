#include "agent/app/leftovers/leftovers.h"

#include <signal.h>

#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "agent/shadow/rank_injector.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kPatienceNs = 30 * kNsPerSecond;

// The signals that end an agent wait until it serves.
bool IsToEnd() {
  sigset_t waiting;
  return sigpending(&waiting) == 0 &&
         (sigismember(&waiting, SIGTERM) == 1 || sigismember(&waiting, SIGINT) == 1);
}

void Log(const HealReport& report) {
  if (report.status.ok())
    LogInfo("pid {}: an earlier agent was here: {}", report.pid, report.done);
  else
    LogWarning("pid {}: what an earlier agent left is still there: {}", report.pid,
               Text(report.status));
}

// perf-agent heal holds them for a while, too.
absl::StatusOr<UniqueFd> LockPatiently(const Journal& journal) {
  auto lock = journal.Lock();
  for (int i = 0; i < 50 && absl::IsFailedPrecondition(lock.status()) && !IsToEnd(); ++i) {
    absl::SleepFor(absl::Milliseconds(200));
    lock = journal.Lock();
  }
  return lock;
}

using Answers = std::function<absl::Status(int32_t pid)>;

void HealLeftovers(const Journal& journal, const std::string& tracer_binary, Answers answers) {
  std::vector<std::string> damaged;
  if (journal.ReadAll(&damaged).empty() && damaged.empty()) return;
  if (!damaged.empty())
    LogWarning("{} journals of earlier agents are not believed and stay where they are",
               damaged.size());
  auto tracer = Tracer::Start({.program = tracer_binary, .arguments = {}});
  if (!tracer.ok()) {
    LogWarning("what an earlier agent left in its ranks stays there: {}", Text(tracer.status()));
    return;
  }
  InjectorOptions injector;
  injector.tracer = tracer->get();
  injector.journal = &journal;
  const int64_t end_ns = SystemClock().MonotonicNs() + kPatienceNs;
  injector.cancelled = [end_ns] { return SystemClock().MonotonicNs() > end_ns || IsToEnd(); };
  injector.answers = std::move(answers);
  injector.audit = [](AuditEntry entry) {
    LogInfo("audit: {} pid {}: {}", entry.action, entry.pid, entry.outcome);
  };
  for (const HealReport& report : HealAll(injector)) Log(report);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HeldJournals>> AdoptJournals(
    const std::string& directory, const std::string& tracer_binary,
    std::function<absl::Status(int32_t pid)> answers) {
  ASSIGN_OR_RETURN(Journal journal, Journal::Make(directory));
  ASSIGN_OR_RETURN(UniqueFd lock, LockPatiently(journal));
  HealLeftovers(journal, tracer_binary, std::move(answers));
  return std::make_unique<HeldJournals>(
      HeldJournals{.heal_after = nullptr, .journal = std::move(journal), .lock = std::move(lock)});
}

}  // namespace perfd::agent
