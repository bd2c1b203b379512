// client/commands/command_table.h - every command of perfctl, in the order of the help text.
#ifndef CLIENT_COMMANDS_COMMAND_TABLE_H_
#define CLIENT_COMMANDS_COMMAND_TABLE_H_

#include <vector>

#include "client/commands/command.h"

namespace perfd::client {

CommandEntry SubmitCommand();
CommandEntry ValidateCommand();
CommandEntry ExplainCommand();
CommandEntry ListCommand();
CommandEntry StatusCommand();
CommandEntry WatchCommand();
CommandEntry ReportCommand();
CommandEntry LoopsCommand();
CommandEntry DiffCommand();
CommandEntry HistoryCommand();
CommandEntry MemoryCommand();
CommandEntry AuditCommand();
CommandEntry CancelCommand();
CommandEntry NodesCommand();
CommandEntry LimitsCommand();
CommandEntry DoctorCommand();
CommandEntry HookCommand();
CommandEntry VersionCommand();
CommandEntry CompletionCommand();

std::vector<CommandEntry> AllCommands();

}  // namespace perfd::client

#endif  // CLIENT_COMMANDS_COMMAND_TABLE_H_
