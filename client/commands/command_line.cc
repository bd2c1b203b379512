#include "client/commands/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <ostream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/commands/command_table.h"
#include "client/commands/program_name.h"
#include "core/base/version.h"
#include "core/spec/nearest.h"

namespace perfd::client {
namespace {

constexpr char kDefaultAddress[] = "unix:/run/perfd/perfd.sock";

constexpr char kFooter[] = R"(
`perfctl COMMAND --help` describes a command with examples. Global options may stand anywhere.

ENVIRONMENT
  PERFD_ADDRESS   where perfd listens, when --address is not given
  NO_COLOR        no colours

EXIT CODES
  0 ok   1 failure   2 usage   3 not found   4 permission   5 invalid spec
  6 unsafe target    7 budget  8 partial     124 timeout)";

struct GlobalFlags {
  DialOptions dial;
  bool json = false;
  bool no_color = false;
};

void DefineGlobals(CLI::App& app, GlobalFlags& flags) {
  app.add_option(
      "--address", flags.dial.address,
      absl::StrCat("Where perfd listens: unix:/path or host:port (default ", kDefaultAddress, ")"));
  app.add_option("--tls-ca", flags.dial.tls_ca, "With host:port: the site's CA (PEM)");
  app.add_option("--tls-cert", flags.dial.tls_cert, "With host:port: your certificate (PEM)");
  app.add_option("--tls-key", flags.dial.tls_key, "With host:port: your key (PEM)");
  app.add_option("--daemon-uid", flags.dial.daemon_uid,
                 "Trust a daemon that runs as this user id, besides root and you");
  app.add_flag("--json", flags.json, "JSON on standard output and for errors");
  app.add_flag("--no-color", flags.no_color, "No colours");
}

// What to say about a word that is no command; empty when there is none.
std::string UnknownCommand(const CLI::App& app, const std::string& program) {
  const std::vector<std::string> rest = app.remaining();
  if (!app.get_subcommands().empty() || rest.empty() || rest.front().empty() ||
      rest.front()[0] == '-')
    return "";
  std::vector<std::string> names;
  for (const CommandEntry& entry : AllCommands()) names.emplace_back(entry.name);
  std::string text = absl::StrCat("there is no command '", Clean(rest.front()), "'");
  if (const auto near = Nearest(rest.front(), names); near.has_value())
    absl::StrAppend(&text, "; did you mean '", *near, "'?");
  return absl::StrCat(text, "; see `", program, " --help`");
}

// Usage errors and requests for help, as CLI11 reports them by exception.
ExitCode Explain(const CLI::App& app, const CLI::ParseError& error, Terminal& terminal) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = app.exit(error, out, err);
  if (code == 0) {
    terminal.out << out.str();
    return ExitCode::kOk;
  }
  if (const std::string unknown = UnknownCommand(app, terminal.program); !unknown.empty())
    return Fail(terminal, absl::InvalidArgumentError(unknown), ExitCode::kUsage);
  std::string command = terminal.program;
  for (const CLI::App* sub : app.get_subcommands()) absl::StrAppend(&command, " ", sub->get_name());
  const std::string text = absl::StrCat(error.what(), "; see `", command, " --help`");
  return Fail(terminal, absl::InvalidArgumentError(text), ExitCode::kUsage);
}

// CLI11 wants the arguments last first.
std::vector<std::string> Reversed(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

}  // namespace

ExitCode RunCommandLine(const std::vector<std::string>& arguments,
                        const std::string& default_address, const Connector& connector,
                        Terminal& terminal) {
  const std::string& program = terminal.program;
  CLI::App app(program + " - ask perfd why the loops of a running MPI/OpenMP job are slow",
               program);
  GlobalFlags flags;
  flags.dial.address = default_address.empty() ? kDefaultAddress : default_address;
  flags.dial.trust_system_socket = true;
  DefineGlobals(app, flags);
  app.set_version_flag("--version", absl::StrCat(program, " ", kVersion));
  app.footer(Named(kFooter, program));
  app.require_subcommand(1);
  std::map<const CLI::App*, CommandRun> runs;
  for (const CommandEntry& entry : AllCommands()) {
    CLI::App* command = app.add_subcommand(entry.name, Named(entry.summary, program));
    command->fallthrough();
    command->footer(absl::StrCat(
        "\n", Named(entry.help, program),
        "\n\nGlobal options (--address, --json, --no-color ...): ", program, " --help"));
    runs[command] = entry.define(*command);
  }
  // Known before parsing, so that errors of parsing are JSON too.
  terminal.json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  try {
    app.parse(Reversed(arguments));
  } catch (const CLI::ParseError& error) {
    return Explain(app, error, terminal);
  }
  terminal.json = flags.json;
  if (flags.no_color) terminal.style.color = false;
  terminal.connect = [&](VersionCheck check) { return connector(flags.dial, check); };
  return runs.at(app.get_subcommands().front())(terminal);
}

}  // namespace perfd::client
