#include "client/commands/hook/guard.h"

#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/spec/units.h"

namespace perfd::client {
namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr size_t kMaxLine = 512;  // _POSIX_PIPE_BUF: written at once or not at all
constexpr absl::string_view kTooLate = "perfd did not answer in time; the job goes on unprofiled\n";
constexpr absl::string_view kBroken =
    "the hook was ended by a signal; the job goes on unprofiled\n";

// Standard error may be a pipe that nobody reads.
void Say(absl::string_view line) {
  pollfd ready{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void OnSignal(int number) {
  Say(number == SIGALRM ? kTooLate : kBroken);
  ::_exit(0);
}

bool TakesValue(absl::string_view option) {
  constexpr std::array<absl::string_view, 6> kValued = {"--address", "--tls-ca",     "--tls-cert",
                                                        "--tls-key", "--daemon-uid", "--timeout"};
  return std::find(kValued.begin(), kValued.end(), option) != kValued.end();
}

// The first word at or behind `at` that is no option and no value of one.
size_t NextWord(const std::vector<std::string>& arguments, size_t at) {
  while (at < arguments.size() && absl::StartsWith(arguments[at], "-"))
    at += TakesValue(arguments[at]) ? 2 : 1;
  return at;
}

}  // namespace

bool IsHookCall(const std::vector<std::string>& arguments) {
  const size_t at = NextWord(arguments, 0);
  if (at >= arguments.size() || arguments[at] != "hook") return false;
  const size_t call = NextWord(arguments, at + 1);
  if (call < arguments.size() && arguments[call] == "list") return false;
  return std::none_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return argument == "--help" || argument == "-h";
  });
}

absl::Duration HookTimeoutOf(const std::vector<std::string>& arguments) {
  std::string text;
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view value = arguments[i];
    if (arguments[i] == "--timeout" && i + 1 < arguments.size()) text = arguments[i + 1];
    if (absl::ConsumePrefix(&value, "--timeout=")) text = std::string(value);
  }
  const auto ns = ParseDuration(text);
  if (!ns.ok()) return kHookTimeout;
  return std::clamp(absl::Nanoseconds(*ns), absl::Milliseconds(10), absl::Seconds(30));
}

void ArmHookGuard(absl::Duration timeout) {
  // A stack that has overflown can still tell.
  static std::array<std::byte, kStackBytes> stack;
  stack_t alternate{};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  ::sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_ONSTACK;
  sigfillset(&action.sa_mask);
  sigset_t ours;
  sigemptyset(&ours);
  for (const int number : {SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTERM,
                           SIGINT, SIGHUP, SIGQUIT, SIGXCPU, SIGXFSZ}) {
    sigaddset(&ours, number);
    ::sigaction(number, &action, nullptr);
  }
  ::sigprocmask(SIG_UNBLOCK, &ours, nullptr);
  itimerval timer{};
  timer.it_value = absl::ToTimeval(timeout);
  ::setitimer(ITIMER_REAL, &timer, nullptr);
  // What gRPC has to say would be more than a line.
  ::setenv("GRPC_VERBOSITY", "NONE", 1);
}

void EndHookCall(absl::string_view text) {
  std::string line(text.substr(0, std::min(text.find('\n'), kMaxLine - 1)));
  if (!line.empty()) Say(line + "\n");
  ::_exit(0);
}

}  // namespace perfd::client
