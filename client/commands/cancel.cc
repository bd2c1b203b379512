// perfctl cancel: end a profile.
#include "absl/strings/str_cat.h"
#include "client/commands/command_table.h"
#include "client/commands/one_profile.h"
#include "client/render/text_style.h"

namespace perfd::client {
namespace {

std::string Brief(const ProfileStatus& status, const TextStyle&) {
  return absl::StrCat(Clean(status.id), " ", ProfileStateName(status.state), "\n");
}

CommandRun DefineCancel(CLI::App& app) {
  return DefineOneProfile(app, &DaemonClient::Cancel, Brief);
}

}  // namespace

CommandEntry CancelCommand() {
  return {"cancel", "End a profile; what was measured is kept",
          R"(EXAMPLES
  perfctl cancel last

EXIT CODES
  0 cancelled   1 it is already over   2 usage   3 no such profile   4 not permitted)",
          DefineCancel};
}

}  // namespace perfd::client
