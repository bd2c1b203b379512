// perf-agent-tracer: holds ranks still for perf-agent. Not meant to be started by hand.
#include <signal.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "agent/attach/tracer_server.h"
#include "agent/spawn/helper_process.h"
#include "agent/spawn/page_costs.h"
#include "core/base/log.h"
#include "core/base/version.h"

namespace perfd::agent {
namespace {

// The only arguments are for tests.
bool ParseArguments(const std::vector<std::string>& words, TestTrap* trap) {
  if (words.empty()) return true;
  if (words.size() != 2 || !absl::SimpleAtoi(words[1], &trap->before_operation)) return false;
  if (words[0] == "--die-before-operation") trap->signal = SIGKILL;
  if (words[0] == "--hang-before-operation") trap->signal = SIGSTOP;
  return trap->signal != 0;
}

}  // namespace
}  // namespace perfd::agent

int main(int argc, char** argv) {
  perfd::InitLog("perf-agent-tracer", perfd::LogLevel::kWarning);
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::printf("perf-agent-tracer %s\n", perfd::kVersion);
    return 0;
  }
  if (argc == 2 && std::string_view(argv[1]) == perfd::agent::kPageCostsMode)
    return perfd::agent::TellPageCosts(perfd::agent::kHelperSocket) ? 0 : 1;
  perfd::agent::TestTrap trap;
  if (!perfd::agent::ParseArguments(std::vector<std::string>(argv + 1, argv + argc), &trap)) {
    perfd::LogError("usage: perf-agent-tracer (started by perf-agent, socket on descriptor 3)");
    return 2;
  }
  absl::Status end = perfd::agent::SetUpTracer();
  if (end.ok()) end = perfd::agent::ServeHolds(perfd::agent::kHelperSocket, trap);
  if (end.ok() || absl::IsUnavailable(end)) return 0;
  perfd::LogError("{}", perfd::Text(end));
  return 1;
}
