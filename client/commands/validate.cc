// perfctl validate: check a job file without a daemon.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "client/commands/command_table.h"
#include "client/commands/spec_source.h"
#include "core/json/status_json.h"
#include "core/spec/spec.h"

namespace perfd::client {
namespace {

ExitCode Run(Terminal& terminal, const std::string& file) {
  SpecFlags flags;
  flags.file = file;
  const auto spec = MakeSpec(flags, terminal.in);
  if (!spec.ok())
    return Fail(terminal, spec.status(),
                absl::IsInvalidArgument(spec.status()) ? ExitCode::kInvalidSpec : ExitCode::kUsage);
  if (terminal.json) {
    terminal.out << JsonLine({{"valid", true}, {"unmeasured", ListUnmeasured(*spec)}});
    return ExitCode::kOk;
  }
  terminal.out << "valid\n";
  for (const std::string& note : ListUnmeasured(*spec)) Remark(terminal, "note: " + note);
  return ExitCode::kOk;
}

CommandRun DefineValidate(CLI::App& app) {
  auto file = std::make_shared<std::string>();  // shared by the parser and the command
  app.add_option("FILE", *file, "Job file in YAML; - reads standard input")->required();
  return [file](Terminal& terminal) { return Run(terminal, *file); };
}

}  // namespace

CommandEntry ValidateCommand() {
  return {"validate", "Check a job file",
          R"(Lists every error with its line and column. Needs no daemon.

EXAMPLES
  perfctl validate job.yaml
  perfctl validate - < job.yaml

EXIT CODES
  0 valid   2 usage or unreadable file   5 invalid spec)",
          DefineValidate};
}

}  // namespace perfd::client
