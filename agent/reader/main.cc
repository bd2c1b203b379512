// perf-agent-reader: reads ELF files for perf-agent, confined, and slow files of /proc, with its rights. Not meant to be started
// by hand.
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "agent/procfs/guarded/file_server.h"
#include "agent/reader/reader_server.h"
#include "agent/reader/unwind_server.h"
#include "agent/spawn/helper_host.h"
#include "agent/spawn/helper_process.h"
#include "core/base/log.h"
#include "core/base/version.h"

namespace perfd::agent {
namespace {

// Parses with `parse`, serves with `serve`; returns the exit code.
template <typename Parse, typename ServeWith>
int Run(const std::vector<std::string>& words, Parse parse, ServeWith serve) {
  const auto arguments = parse(words);
  if (!arguments.ok()) {
    LogError("{}", Text(arguments.status()));
    return 2;
  }
  try {
    const absl::Status end = serve(kHelperSocket, *arguments);
    return end.ok() || absl::IsUnavailable(end) ? 0 : 1;
  } catch (const std::exception& e) {  // out of memory under the limit
    LogError("{}: {}", words.back(), e.what());
    return 1;
  }
}

}  // namespace
}  // namespace perfd::agent

int main(int argc, char** argv) {
  perfd::InitLog("perf-agent-reader", perfd::LogLevel::kWarning);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words == std::vector<std::string>{"--version"}) {  // as perf-agent's doctor asks
    std::printf("perf-agent-reader %s\n", perfd::kVersion);
    return 0;
  }
  if (words == std::vector<std::string>{perfd::agent::kFilesMode}) {
    perfd::agent::ServeSlowFiles(perfd::agent::kHelperSocket);
    return 0;
  }
  if (words == std::vector<std::string>{perfd::agent::kHostMode}) {
    auto task = perfd::agent::ServeHelpers();
    if (!task.has_value()) return 0;
    words = std::move(*task);
  }
  if (!words.empty() && words[0] == perfd::agent::kUnwindMode)
    return perfd::agent::Run(words, perfd::agent::ParseUnwindArguments, perfd::agent::ServeUnwind);
  return perfd::agent::Run(words, perfd::agent::ParseArguments, perfd::agent::Serve);
}
