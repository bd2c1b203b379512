// Runs perfctl's command line in memory against a FakeDaemon.
#ifndef TESTS_UNIT_CLIENT_COMMAND_RUNNER_H_
#define TESTS_UNIT_CLIENT_COMMAND_RUNNER_H_

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "client/commands/command_line.h"
#include "tests/unit/client/fake_daemon_client.h"

namespace perfd::client {

class FixedClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return 0; }
  int64_t UnixNs() const override { return 1'700'000'100'000'000'000; }
};

struct CommandRunner {
  FakeDaemon daemon;
  std::string input;
  bool tty = false;
  bool interrupted = false;
  std::string program = kProgramName;
  absl::Status connect_error;
  std::string out;
  std::string err;
  std::string address;  // that the command connected to; empty: it did not

  // The exit code as a shell sees it.
  int Run(const std::vector<std::string>& arguments) {
    std::istringstream in(input);
    std::ostringstream out_stream;
    std::ostringstream err_stream;
    FixedClock clock;
    Terminal terminal{.in = in,
                      .out = out_stream,
                      .err = err_stream,
                      .clock = clock,
                      .style = {},
                      .out_is_tty = tty,
                      .err_is_tty = tty,
                      .connect = {},
                      .catch_interrupts = [] {},
                      .interrupted = [this] { return interrupted; },
                      .program = program};
    const Connector connector = [this](
                                    const DialOptions& options,
                                    VersionCheck) -> absl::StatusOr<std::unique_ptr<DaemonClient>> {
      address = options.address;
      if (!connect_error.ok()) return connect_error;
      return std::make_unique<FakeDaemonClient>(daemon);
    };
    const ExitCode code = RunCommandLine(arguments, "", connector, terminal);
    out = out_stream.str();
    err = err_stream.str();
    return static_cast<int>(code);
  }
};

}  // namespace perfd::client

#endif  // TESTS_UNIT_CLIENT_COMMAND_RUNNER_H_
