// perfctl watch: follow one profile.
#include <CLI/CLI.hpp>
#include <memory>

#include "client/commands/command_table.h"
#include "client/commands/follow.h"

namespace perfd::client {
namespace {

struct WatchOptions {
  FollowOptions follow;
  std::string timeout;
};

ExitCode Run(Terminal& terminal, const WatchOptions& options) {
  FollowOptions follow = options.follow;
  const auto timeout = ParseTimeout(options.timeout);
  if (!timeout.ok()) return Fail(terminal, timeout.status());
  follow.timeout = *timeout;
  return WithDaemon(terminal,
                    [&](DaemonClient& daemon) { return Follow(terminal, daemon, follow); });
}

CommandRun DefineWatch(CLI::App& app) {
  auto options = std::make_shared<WatchOptions>();  // shared by the parser and the command
  app.add_option("ID", options->follow.id, kIdHelp)->required();
  app.add_option("--timeout", options->timeout, "Give up following after, e.g. 5m");
  app.add_option("--top", options->follow.top, "Loops shown (default 10)")
      ->check(CLI::Range(0, 100));
  app.add_option("--on-done", options->follow.on_done, kOnDoneHelp);
  app.add_flag("--report", options->follow.report, "Print the report at the end");
  return [options](Terminal& terminal) { return Run(terminal, *options); };
}

}  // namespace

CommandEntry WatchCommand() {
  return {"watch", "Follow a profile until it is over",
          R"(A live view on a terminal, log lines otherwise, JSON Lines with --json. A daemon that
restarts is waited for, 30 s at most. An interrupt (Ctrl-C) leaves the profile running.

EXAMPLES
  perfctl watch last
  perfctl watch p-000042 --timeout 5m --report
  perfctl watch last --on-done 'mail -s "$PERFD_PROFILE is $PERFD_STATE" me </dev/null'

EXIT CODES
  0 complete   3 no such profile or process   4 not permitted   8 partial or cancelled
  124 timeout  1 failed)",
          DefineWatch};
}

}  // namespace perfd::client
