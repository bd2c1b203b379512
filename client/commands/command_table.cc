#include "client/commands/command_table.h"

namespace perfd::client {

std::vector<CommandEntry> AllCommands() {
  return {SubmitCommand(), ValidateCommand(), ExplainCommand(),   ListCommand(),   StatusCommand(),
          WatchCommand(),  ReportCommand(),   LoopsCommand(),     DiffCommand(),   HistoryCommand(), MemoryCommand(),
          AuditCommand(),  CancelCommand(),   NodesCommand(),     LimitsCommand(), DoctorCommand(),
          HookCommand(),   VersionCommand(),  CompletionCommand()};
}

}  // namespace perfd::client
