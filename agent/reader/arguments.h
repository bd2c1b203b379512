// agent/reader/arguments.h - the command line of perf-agent-reader: which file or process, for whom.
//
// Shape    ParseArguments(FormatArguments(a)) == a.
// Errors   kInvalidArgument, naming the argument.
// Threads  thread-safe (pure).
#ifndef AGENT_READER_ARGUMENTS_H_
#define AGENT_READER_ARGUMENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/reader/reader_client.h"
#include "agent/reader/unwind_client.h"

namespace perfd::agent {

struct ReaderArguments {
  ModuleFile file;
  uint64_t memory_limit_bytes = 0;
  ModuleDetail detail = ModuleDetail::kLines;
};

std::vector<std::string> FormatArguments(const ReaderArguments& arguments);
absl::StatusOr<ReaderArguments> ParseArguments(const std::vector<std::string>& arguments);

// The other mode: the stacks of one process. Its mappings come as the first message.
struct UnwindArguments {
  UnwindProcess process;
  uint64_t memory_limit_bytes = 0;
};

inline constexpr char kUnwindMode[] = "unwind";  // the first word

std::vector<std::string> FormatArguments(const UnwindArguments& arguments);
absl::StatusOr<UnwindArguments> ParseUnwindArguments(const std::vector<std::string>& arguments);

}  // namespace perfd::agent

#endif  // AGENT_READER_ARGUMENTS_H_
