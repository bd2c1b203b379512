// perfctl version: ours and the daemon's.
#include "core/base/version.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "client/commands/command_table.h"
#include "client/render/text_style.h"
#include "core/json/status_json.h"

namespace perfd::client {
namespace {

ExitCode Run(Terminal& terminal, bool client_only) {
  Json json = {{"client", kVersion}, {"client_protocol", kProtocolVersion}};
  if (!terminal.json)
    terminal.out << terminal.program << " " << kVersion << " (protocol " << kProtocolVersion
                 << ")\n";
  if (client_only) {
    if (terminal.json) terminal.out << JsonLine(json);
    return ExitCode::kOk;
  }
  const auto daemon = terminal.connect(VersionCheck::kAny);
  const auto version = daemon.ok() ? (*daemon)->GetVersion() : daemon.status();
  if (!version.ok()) {
    if (terminal.json) terminal.out << JsonLine(json);
    return Fail(terminal, version.status());
  }
  json["daemon"] = version->version;
  json["daemon_protocol"] = version->protocol_version;
  if (terminal.json) {
    terminal.out << JsonLine(json);
  } else {
    terminal.out << "perfd " << Clean(version->version) << " (protocol "
                 << version->protocol_version << ")\n";
  }
  return ExitCode::kOk;
}

CommandRun DefineVersion(CLI::App& app) {
  auto client_only = std::make_shared<bool>(false);  // shared by the parser and the command
  app.add_flag("--client", *client_only, "Do not ask the daemon");
  return [client_only](Terminal& terminal) { return Run(terminal, *client_only); };
}

}  // namespace

CommandEntry VersionCommand() {
  return {"version", "Show versions of perfctl and perfd",
          R"(EXAMPLES
  perfctl version
  perfctl version --client

EXIT CODES
  0 ok   1 daemon not reachable   2 usage)",
          DefineVersion};
}

}  // namespace perfd::client
