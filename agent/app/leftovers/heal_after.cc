#include "agent/app/leftovers/heal_after.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agent/app/leftovers/leftovers.h"
#include "agent/shadow/journal.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int kGraceMs = 1000;  // for a process that has nothing to do
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(30);
constexpr absl::Duration kPatience = absl::Minutes(10);

// Whoever ends a job sends the signal to all of it: this process ends with the agent in any case.
void OutliveSignals(bool on) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, on ? SIG_IGN : SIG_DFL);
}

void AwaitClose(int socket) {
  pollfd end{.fd = socket, .events = POLLRDHUP, .revents = 0};
  while (::poll(&end, 1, -1) < 0) {
  }
}

bool SomethingLeft(const std::string& directory) {
  const auto journal = Journal::Open(directory);  // an agent that ended by itself took it away
  std::vector<std::string> damaged;
  return journal.ok() && !journal->ReadAll(&damaged).empty();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HealAfter>> HealAfter::Start(const HealOptions& options) {
  const HelperProgram program{
      .name = "healer",
      .path = "/proc/self/exe",
      .arguments = {"--journal-dir", options.journal_directory, "--tracer", options.tracer_binary,
                    "--reader", options.reader_binary, "heal", "--all", "--after-agent"},
      .own_session = true};
  ASSIGN_OR_RETURN(Helper helper, StartWithSocket(program.name, [&program](int socket) {
                     return StartHelper(program, socket);
                   }));
  return std::unique_ptr<HealAfter>(new HealAfter(std::move(helper)));
}

HealAfter::~HealAfter() {
  helper_.socket.Reset();
  AwaitHelper(helper_.pid, kGraceMs);
}

int HealAfterAgent(int socket, const HealOptions& options,
                   const std::function<absl::Status(int32_t pid)>& answers) {
  OutliveSignals(true);
  AwaitClose(socket);
  OutliveSignals(false);
  const absl::Time end = absl::Now() + kPatience;
  absl::Duration pause = kFirstPause;
  while (SomethingLeft(options.journal_directory)) {
    // The journals are held no longer than this takes: the next agent waits for them.
    const absl::Status healed =
        AdoptJournals(options.journal_directory, options.tracer_binary, answers).status();
    if (absl::IsFailedPrecondition(healed)) return 0;  // another agent's now
    if (absl::Now() > end) {
      LogWarning("ranks still have our jumps, which only pass through; run: perf-agent heal --all");
      return 1;
    }
    absl::SleepFor(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  return 0;
}

}  // namespace perfd::agent
