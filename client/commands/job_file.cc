// perfctl explain: what a job file may say.
#include "core/spec/explain.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/commands/command_table.h"
#include "client/render/text_table.h"
#include "core/json/status_json.h"
#include "core/model/variant_name.h"

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

ExitCode Run(Terminal& terminal, const ExplainOptions& options) {
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
  return [options](Terminal& terminal) { return Run(terminal, *options); };
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

}  // namespace perfd::client
