// perfctl doctor: is everything there that profiling needs, here, in the daemon and on the nodes?
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/commands/command_table.h"
#include "client/render/site/nodes_text.h"
#include "client/rpc/rpc_status.h"
#include "core/base/version.h"
#include "core/json/status_json.h"

namespace perfd::client {
namespace {

DoctorCheck Failed(const char* name, const absl::Status& status, std::string fix) {
  return {name, false, false, std::string(status.message()), std::move(fix)};
}

// Who runs `doctor` may be root and does what the lines say: no agent writes them.
void UseOwnFixes(DoctorReport& report) {
  if (report.source == DoctorSource::kDaemon) return;
  for (DoctorCheck& check : report.checks) check.fix = check.ok ? "" : FixOf(check.name);
}

// The checks of this side, then those of the daemon and the nodes as far as it can be reached.
std::vector<DoctorReport> Examine(Terminal& terminal, const std::string& node) {
  DoctorReport here{terminal.program, {}, DoctorSource::kDaemon};
  const auto daemon = terminal.connect(VersionCheck::kAny);
  if (!daemon.ok()) {
    here.checks.push_back(Failed("daemon", daemon.status(), "systemctl enable --now perfd"));
    return {here};
  }
  here.checks = (*daemon)->CheckOwnCertificate();
  const auto version = (*daemon)->GetVersion();
  if (!version.ok()) {
    here.checks.push_back(Failed("daemon", version.status(), "systemctl restart perfd"));
    return {here};
  }
  here.checks.push_back({"daemon", true, false, absl::StrCat("perfd ", version->version), ""});
  const bool same = version->protocol_version == kProtocolVersion;
  here.checks.push_back(
      {"protocol", same, false,
       absl::StrCat("perfd ", version->protocol_version, ", client ", kProtocolVersion),
       same ? "" : "install the same version of perfd and the client"});
  auto remote = (*daemon)->Doctor(node);
  if (!remote.ok()) {
    here.checks.push_back(Failed("nodes", remote.status(), terminal.program + " nodes"));
    return {here};
  }
  std::vector<DoctorReport> reports = *std::move(remote);
  for (DoctorReport& report : reports) UseOwnFixes(report);
  reports.insert(reports.begin(), std::move(here));
  return reports;
}

CommandRun DefineDoctor(CLI::App& app) {
  auto node = std::make_shared<std::string>();  // shared by the parser and the command
  app.add_option("--node", *node, "Only this node");
  return [node](Terminal& terminal) {
    const std::vector<DoctorReport> reports = Examine(terminal, *node);
    terminal.out << (terminal.json ? JsonLine(DoctorToJson(reports))
                                   : RenderDoctor(reports, terminal.style));
    return AllWell(reports) ? ExitCode::kOk : ExitCode::kFailure;
  };
}

}  // namespace

CommandEntry DoctorCommand() {
  return {
      "doctor", "Check permissions, kernel features and packages",
      R"(Checks this program, the daemon and every connected node, and prints below each failed check
the line that fixes it. Agents that other users run for themselves are not asked; your own are.

EXAMPLES
  perfctl doctor
  perfctl doctor --node node17

EXIT CODES
  0 everything needed is there   1 a check failed   2 usage)",
      DefineDoctor};
}

}  // namespace perfd::client
