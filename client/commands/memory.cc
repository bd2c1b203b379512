// perfctl memory: what the memory samples of a recording say.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "client/commands/command_table.h"
#include "client/recording/recorded_memory.h"
#include "client/render/memory/memory_text.h"
#include "client/render/memory/samples_csv.h"
#include "core/base/status_macros.h"
#include "core/json/status_json.h"
#include "core/perfdata/recording.h"

namespace perfd::client {
namespace {

struct MemoryOptions {
  std::string recording;
  size_t top = 12;
  bool csv = false;
};

absl::StatusOr<RecordedMemory> ReadRecording(Terminal& terminal, const MemoryOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<RecordingBytes> bytes, OpenRecordingBytes(options.recording));
  ASSIGN_OR_RETURN(const std::unique_ptr<Recording> recording, Recording::Open(std::move(bytes)));
  RecordingObserver observer;
  const bool shown = terminal.err_is_tty && !terminal.json && !options.csv;
  if (shown)
    observer.progress = [&](uint64_t records) {
      terminal.err << '\r' << records << " records" << std::flush;
    };
  if (options.csv) {
    terminal.out << SamplesCsvHeader();
    observer.access = [&](const std::string& event, const Sample& sample) {
      terminal.out << SamplesCsvRow(event, sample);
    };
  }
  RecordedMemory memory = SummarizeMemory(*recording, observer);
  if (shown) terminal.err << '\r';
  return memory;
}

ExitCode Run(Terminal& terminal, const MemoryOptions& options) {
  const absl::StatusOr<RecordedMemory> memory = ReadRecording(terminal, options);
  if (!memory.ok())
    return Fail(terminal, memory.status(),
                absl::IsInvalidArgument(memory.status()) ? ExitCode::kFailure
                                                         : ExitCodeOf(memory.status()));
  if (terminal.json)
    terminal.out << JsonLine(MemoryToJson(*memory));
  else if (!options.csv)
    terminal.out << RenderMemory(*memory, options.top, terminal.style);
  for (const std::string& remark : MemoryRemarks(*memory)) Remark(terminal, "note: " + remark);
  return memory->damage.ok() && !memory->counts.truncated ? ExitCode::kOk : ExitCode::kPartial;
}

CommandRun DefineMemory(CLI::App& app) {
  auto options = std::make_shared<MemoryOptions>();  // shared by the parser and the command
  app.add_option("--recording", options->recording,
                 "Recording of perf (perf.data), in file or pipe form; - reads standard input")
      ->required();
  app.add_option("--top", options->top, "Processes shown")->check(CLI::PositiveNumber);
  app.add_flag("--csv", options->csv, "Print each sampled access as a row of CSV");
  return [options](Terminal& terminal) -> ExitCode {
    if (terminal.json && options->csv)
      return Fail(terminal, absl::InvalidArgumentError("--csv and --json: one of them"),
                  ExitCode::kUsage);
    return Run(terminal, *options);
  };
}

}  // namespace

CommandEntry MemoryCommand() {
  return {
      "memory", "Show what the memory samples of a recording say",
      R"(Reads a recording that perf made where the processor samples accesses (PEBS, IBS): from which level loads came, how
long they took, what part of their time is spent beyond each level, and how they fared in the DTLB. Needs no daemon.
Profiles have no memory samples yet.

EXAMPLES
  perf mem record -t load ./app && perfctl memory --recording perf.data
  perf mem record -o - ./app | perfctl memory --recording -
  perfctl --json memory --recording perf.data
  perfctl memory --recording perf.data --csv > accesses.csv

EXIT CODES
  0 read   1 not a recording that can be read   3 no such file   8 damaged or cut off: what came before it is shown)",
      DefineMemory};
}

}  // namespace perfd::client
