// perfctl: flags -> terminal -> command.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "client/commands/command_line.h"
#include "client/commands/hook/guard.h"
#include "client/rpc/grpc_daemon_client.h"

namespace {

// A signal handler can reach nothing but this.
volatile std::sig_atomic_t g_interrupted = 0;

void CatchInterrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { g_interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second interrupt ends the process
  sigaction(SIGINT, &action, nullptr);
}

absl::StatusOr<std::unique_ptr<perfd::client::DaemonClient>> Connect(
    const perfd::DialOptions& options, perfd::client::VersionCheck check) {
  auto client = check == perfd::client::VersionCheck::kAny
                    ? perfd::client::GrpcDaemonClient::ConnectAny(options)
                    : perfd::client::GrpcDaemonClient::Connect(options);
  if (!client.ok()) return client.status();
  return *std::move(client);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const bool hook = perfd::client::IsHookCall(arguments);
  if (hook) perfd::client::ArmHookGuard(perfd::client::HookTimeoutOf(arguments));
  std::ostringstream hook_out;    // a prolog's standard output may mean something to its scheduler
  std::ostringstream hook_err;    // only its first line is said
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, not the end
  const char* address = std::getenv("PERFD_ADDRESS");
  const perfd::SystemClock clock;
  const perfd::client::StyleInputs inputs = perfd::client::DetectStyleInputs(STDOUT_FILENO);
  perfd::client::Terminal terminal{.in = std::cin,
                                   .out = hook ? hook_out : std::cout,
                                   .err = hook ? hook_err : std::cerr,
                                   .clock = clock,
                                   .style = perfd::client::ChooseStyle(inputs),
                                   .out_is_tty = inputs.is_tty,
                                   .err_is_tty = isatty(STDERR_FILENO) == 1,
                                   .connect = {},
                                   .catch_interrupts = CatchInterrupts,
                                   .interrupted = [] { return g_interrupted != 0; },
                                   .program = perfd::client::ProgramName(argc > 0 ? argv[0] : "")};
  const perfd::client::ExitCode code = perfd::client::RunCommandLine(
      arguments, address == nullptr ? "" : address, Connect, terminal);
  if (hook) perfd::client::EndHookCall(hook_err.str());
  std::cout.flush();
  if (!std::cout.good() && code == perfd::client::ExitCode::kOk) return 1;
  return static_cast<int>(code);
}
