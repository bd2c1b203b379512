// perf-agent-reader: reads one ELF file for perf-agent, confined. Not meant to be started by hand.
#include <exception>
#include <string>
#include <vector>

#include "agent/reader/reader_server.h"
#include "agent/reader/spawn.h"
#include "core/base/log.h"

int main(int argc, char** argv) {
  perfd::InitLog("perf-agent-reader", perfd::LogLevel::kWarning);
  const auto arguments = perfd::ParseArguments(std::vector<std::string>(argv + 1, argv + argc));
  if (!arguments.ok()) {
    perfd::LogError("{}", perfd::Text(arguments.status()));
    return 2;
  }
  try {
    const absl::Status end = perfd::Serve(perfd::kReaderSocket, *arguments);
    return end.ok() || absl::IsUnavailable(end) ? 0 : 1;
  } catch (const std::exception& e) {  // out of memory under the limit
    perfd::LogError("{}: {}", arguments->file.path, e.what());
    return 1;
  }
}
