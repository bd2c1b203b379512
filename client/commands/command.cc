#include "client/commands/command.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/render/text_style.h"
#include "core/json/status_json.h"

namespace perfd::client {
namespace {

void PrintError(Terminal& terminal, const absl::Status& status, ExitCode exit_code) {
  const std::vector<std::string> lines = absl::StrSplit(status.message(), '\n');
  if (terminal.json) {
    Json json = ErrorToJson(ErrorKey(exit_code, status.code()), status.message(),
                            static_cast<int>(exit_code));
    json["error"]["details"] = lines;
    terminal.err << JsonLine(json);
    return;
  }
  for (const std::string& line : lines)
    terminal.err << terminal.program << ": " << Clean(line) << "\n";
}

}  // namespace

ExitCode Fail(Terminal& terminal, const absl::Status& status, ExitCode exit_code) {
  PrintError(terminal, status, exit_code);
  return exit_code;
}

ExitCode Fail(Terminal& terminal, const absl::Status& status) {
  return Fail(terminal, status, ExitCodeOf(status));
}

ExitCode WithDaemon(Terminal& terminal,
                    const std::function<absl::StatusOr<ExitCode>(DaemonClient& daemon)>& body) {
  const auto daemon = terminal.connect(VersionCheck::kSameProtocol);
  if (!daemon.ok()) return Fail(terminal, daemon.status());
  const absl::StatusOr<ExitCode> result = body(**daemon);
  return result.ok() ? *result : Fail(terminal, result.status());
}

void Remark(Terminal& terminal, absl::string_view text) {
  if (!terminal.json) terminal.err << Clean(text) << "\n";
}

}  // namespace perfd::client
