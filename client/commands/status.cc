// perfctl status: where one profile stands.
#include "client/commands/command_table.h"
#include "client/commands/one_profile.h"
#include "client/render/status_text.h"

namespace perfd::client {
namespace {

CommandRun DefineStatus(CLI::App& app) {
  return DefineOneProfile(app, &DaemonClient::GetProfile, RenderStatus);
}

}  // namespace

CommandEntry StatusCommand() {
  return {"status", "Show where a profile stands",
          R"(EXAMPLES
  perfctl status last
  perfctl status p-000042 --json

EXIT CODES
  0 ok, whatever the state   1 daemon not reachable   2 usage   3 no such profile
  4 not permitted)",
          DefineStatus};
}

}  // namespace perfd::client
