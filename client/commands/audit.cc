// perfctl audit: what was done to ranks, and by whose order.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "client/commands/command_table.h"
#include "client/render/verdict_text.h"
#include "core/base/status_macros.h"
#include "core/json/status_json.h"
#include "core/json/verdict_json.h"

namespace perfd::client {
namespace {

struct AuditOptions {
  std::string id;
  int limit = 1000;
};

CommandRun DefineAudit(CLI::App& app) {
  auto options = std::make_shared<AuditOptions>();  // shared by the parser and the command
  app.add_option("ID", options->id,
                 "Only this profile: p-000042, a unique beginning of it, or last");
  app.add_option("--limit", options->limit, "At most so many, newest first (default 1000)")
      ->check(CLI::Range(1, 10000));
  return [options](Terminal& terminal) {
    return WithDaemon(terminal, [&](DaemonClient& daemon) -> absl::StatusOr<ExitCode> {
      ASSIGN_OR_RETURN(const auto entries, daemon.ListAudit(options->id, options->limit));
      terminal.out << (terminal.json ? JsonLine(AuditToJson(entries)) : RenderAudit(entries));
      return ExitCode::kOk;
    });
  };
}

}  // namespace

CommandEntry AuditCommand() {
  return {
      "audit", "List what was injected into ranks",
      R"(Every change of a rank's text, every shadow and every restoration: when, by whose order, which
bytes, how long the rank waited, and which connection brought the entry: a user id, or the
certificate of a node's agent. Your own profiles; all of them for those who may see all. The record
outlives the profiles; perfd's store.audit_days and store.audit_mib say for how long.

EXAMPLES
  perfctl audit last
  perfctl audit --limit 20 --json

EXIT CODES
  0 ok   1 daemon not reachable   2 usage   3 no such profile)",
      DefineAudit};
}

}  // namespace perfd::client
