// perfctl explain and validate: what a job file may say, and whether it does.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/commands/command_table.h"
#include "client/commands/spec_source.h"
#include "client/render/text_table.h"
#include "core/json/status_json.h"
#include "core/model/variant_name.h"
#include "core/spec/explain.h"
#include "core/spec/spec.h"

namespace perfd::client {
namespace {

struct ExplainOptions {
  std::string key;
  bool schema = false;
};

// The catalogue, below the keys that take names of it.
std::string Variants() {
  TextTable table({{"VARIANT"}, {"WHAT IT TELLS"}});
  for (int i = 0; i < kChangeCount; ++i) {
    const auto change = static_cast<Change>(i);
    std::string name = ChangeName(change);
    if (change == Change::kGroup) name += "(k)";
    if (change == Change::kPrefetch) name += "(p)";
    table.Add({std::move(name), ChangeQuestion(change)});
  }
  return absl::StrCat("\nVariants; combined with +, as in NO_DIV+NO_RED\n", table.Render());
}

ExitCode Explain(Terminal& terminal, const ExplainOptions& options) {
  if (options.schema) {
    terminal.out << ProfileJsonSchema();
    return ExitCode::kOk;
  }
  auto text =
      options.key.empty() ? absl::StatusOr<std::string>(ExplainAllKeys()) : ExplainKey(options.key);
  if (!text.ok()) return Fail(terminal, text.status());
  if (options.key == "variants" || options.key == "variants.set") *text += Variants();
  terminal.out << (terminal.json ? JsonLine({{"text", *text}}) : *text);
  return ExitCode::kOk;
}

CommandRun DefineExplain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();  // shared by the parser and the command
  app.add_option("KEY", options->key, "A key or section, e.g. hotspots.frequency");
  app.add_flag("--schema", options->schema, "Print a JSON Schema for editors");
  return [options](Terminal& terminal) { return Explain(terminal, *options); };
}

ExitCode Validate(Terminal& terminal, const std::string& file) {
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
  return [file](Terminal& terminal) { return Validate(terminal, *file); };
}

}  // namespace

CommandEntry ExplainCommand() {
  return {"explain", "Describe the keys of a job file",
          R"(Every key with its type, default, range and meaning. Needs no daemon.

EXAMPLES
  perfctl explain
  perfctl explain hotspots.frequency
  perfctl explain --schema > perfd-profile.schema.json

EXIT CODES
  0 ok   2 usage   3 no such key)",
          DefineExplain};
}

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
