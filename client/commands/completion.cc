// perfctl completion: scripts that complete commands and options in a shell.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/commands/command_table.h"
#include "client/commands/program_name.h"

namespace perfd::client {
namespace {

std::vector<std::string> LongOptions(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool TakesFile(const CLI::App& command) {
  return command.get_option_no_throw("FILE") != nullptr;
}

// Options of any command whose value is a file, as a pattern of `case`.
std::string FileOptions(const CLI::App& root) {
  std::set<std::string> names;
  for (const CLI::App* command : root.get_subcommands({})) {
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_type_name() != "FILE") continue;
      for (const std::string& name : option->get_lnames()) names.insert("--" + name);
    }
  }
  return absl::StrJoin(names, "|");
}

std::string Bash(const CLI::App& root) {
  std::vector<std::string> names;
  std::string cases;
  for (const CLI::App* command : root.get_subcommands({})) {
    names.push_back(command->get_name());
    absl::StrAppend(&cases, "    ", command->get_name(), ") words=\"",
                    absl::StrJoin(LongOptions(*command), " "),
                    "\"; files=", TakesFile(*command) ? 1 : 0, " ;;\n");
  }
  return absl::StrCat(
      "# bash completion of perfctl: source <(perfctl completion bash)\n"
      "_perfctl() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\" files=0 global=\"",
      absl::StrJoin(LongOptions(root), " "),
      "\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"",
      absl::StrJoin(names, " "),
      " $global\" -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"${COMP_WORDS[COMP_CWORD-1]}\" in\n    ",
      FileOptions(root),
      ") COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
      "  esac\n"
      "  case \"${COMP_WORDS[1]}\" in\n",
      cases,
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words $global\" -- \"$cur\"))\n"
      "  if [ \"$files\" -eq 1 ]; then COMPREPLY+=($(compgen -f -- \"$cur\")); fi\n"
      "}\n"
      "complete -o filenames -F _perfctl perfctl\n");
}

std::string Zsh(const CLI::App& root) {
  std::string described;
  std::string cases;
  for (const CLI::App* command : root.get_subcommands({})) {
    absl::StrAppend(&described, "    '", command->get_name(), ":",
                    absl::StrReplaceAll(command->get_description(), {{"'", "'\\''"}}), "'\n");
    absl::StrAppend(&cases, "    ", command->get_name(), ") compadd -- ",
                    absl::StrJoin(LongOptions(*command), " "),
                    TakesFile(*command) ? "; _files" : "", " ;;\n");
  }
  return absl::StrCat(
      "#compdef perfctl\n# zsh completion of perfctl: source <(perfctl completion zsh)\n"
      "_perfctl() {\n  local -a commands=(\n",
      described,
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  case \"$words[CURRENT-1]\" in\n    ",
      FileOptions(root),
      ") _files; return ;;\n  esac\n"
      "  case \"$words[2]\" in\n",
      cases, "  esac\n  compadd -- ", absl::StrJoin(LongOptions(root), " "),
      "\n}\ncompdef _perfctl perfctl\n");
}

std::string Fish(const CLI::App& root) {
  std::string text = "# fish completion of perfctl: perfctl completion fish | source\n";
  const auto quote = [](const std::string& s) {
    return absl::StrCat("'", absl::StrReplaceAll(s, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
  };
  for (const CLI::Option* option : root.get_options()) {
    for (const std::string& name : option->get_lnames())
      absl::StrAppend(&text, "complete -c perfctl -l ", name, " -d ",
                      quote(option->get_description()), "\n");
  }
  for (const CLI::App* command : root.get_subcommands({})) {
    const std::string& name = command->get_name();
    absl::StrAppend(&text, "complete -c perfctl -f -n __fish_use_subcommand -a ", name, " -d ",
                    quote(command->get_description()), "\n");
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& long_name : option->get_lnames())
        absl::StrAppend(&text, "complete -c perfctl -n '__fish_seen_subcommand_from ", name,
                        "' -l ", long_name, option->get_type_name() == "FILE" ? " -r -F" : "",
                        " -d ", quote(option->get_description()), "\n");
    }
  }
  return text;
}

CommandRun DefineCompletion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();  // shared by the parser and the command
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell, &app](Terminal& terminal) {
    const CLI::App& root = *app.get_parent();
    const std::string script = *shell == "bash"  ? Bash(root)
                               : *shell == "zsh" ? Zsh(root)
                                                 : Fish(root);
    terminal.out << Named(script, terminal.program);
    return ExitCode::kOk;
  };
}

}  // namespace

CommandEntry CompletionCommand() {
  return {"completion", "Print a completion script for a shell",
          R"(EXAMPLES
  source <(perfctl completion bash)
  perfctl completion fish > ~/.config/fish/completions/perfctl.fish

EXIT CODES
  0 ok   2 usage)",
          DefineCompletion};
}

}  // namespace perfd::client
