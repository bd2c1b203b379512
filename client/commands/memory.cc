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
#include "client/render/memory/report_memory.h"
#include "client/render/memory/samples_csv.h"
#include "core/base/status_macros.h"
#include "core/json/memory/memory_json.h"
#include "core/json/status_json.h"
#include "core/perfdata/recording.h"

namespace perfd::client {
namespace {

struct MemoryOptions {
  std::string id;
  std::string loop;
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

ExitCode RunRecording(Terminal& terminal, const MemoryOptions& options) {
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

absl::Status NoAccesses(const Report& report) {
  return absl::NotFoundError(absl::StrCat(
      report.status.id,
      " has no accesses to memory: its nodes sampled none (perfctl doctor, \"memory samples\"), or their "
      "windows were lost (perfctl report says so)"));
}

absl::StatusOr<ExitCode> RunProfile(Terminal& terminal, DaemonClient& daemon,
                                    const MemoryOptions& options) {
  ASSIGN_OR_RETURN(const Report report, daemon.GetReport(options.id));
  const MemoryReport& memory = report.findings.memory;
  if (!memory.Any()) return NoAccesses(report);
  if (options.loop.empty()) {
    if (terminal.json)
      terminal.out << JsonLine({{"id", report.status.id}, {"memory", MemoryReportToJson(memory)}});
    else
      terminal.out << RenderReportMemory(report, options.top, terminal.style);
  } else {
    ASSIGN_OR_RETURN(const MemoryPlace* place, FindMemoryPlace(report, options.loop));
    if (terminal.json)
      terminal.out << JsonLine(MemoryPlaceToJson(*place));
    else
      terminal.out << RenderMemoryPlace(memory, *place, options.top, terminal.style);
  }
  for (const std::string& remark : MemoryRemarks(memory)) Remark(terminal, "note: " + remark);
  return ExitCodeOf(report.status);
}

absl::Status CheckOptions(const Terminal& terminal, const MemoryOptions& options) {
  if (options.id.empty() == options.recording.empty())
    return absl::InvalidArgumentError("give a profile's ID, or --recording FILE: one of them");
  if (options.csv && options.recording.empty())
    return absl::InvalidArgumentError("--csv is of a recording: give --recording FILE");
  if (!options.loop.empty() && options.id.empty())
    return absl::InvalidArgumentError("--loop is of a profile: give its ID");
  if (terminal.json && options.csv)
    return absl::InvalidArgumentError("--csv and --json: one of them");
  return absl::OkStatus();
}

CommandRun DefineMemory(CLI::App& app) {
  auto options = std::make_shared<MemoryOptions>();  // shared by the parser and the command
  app.add_option("ID", options->id, kIdHelp);
  app.add_option("--loop", options->loop,
                 "Only this loop, by instruction and rank: its number in the report (3 or #3) or the "
                 "beginning of its id");
  app.add_option("--recording", options->recording,
                 "Recording of perf (perf.data), in file or pipe form; - reads standard input");
  app.add_option("--top", options->top, "Lines of each list")->check(CLI::PositiveNumber);
  app.add_flag("--csv", options->csv, "Print each sampled access of a recording as a row of CSV");
  return [options](Terminal& terminal) -> ExitCode {
    if (const absl::Status status = CheckOptions(terminal, *options); !status.ok())
      return Fail(terminal, status, ExitCode::kUsage);
    if (!options->recording.empty()) return RunRecording(terminal, *options);
    return WithDaemon(terminal, [&](DaemonClient& daemon) {
      return RunProfile(terminal, daemon, *options);
    });
  };
}

}  // namespace

CommandEntry MemoryCommand() {
  return {
      "memory", "Show what the memory samples of a profile or a recording say",
      R"(Where the processor samples accesses (PEBS, IBS): from which level loads came, how long they took, what part of their
time is spent beyond each level, and how they fared in the DTLB; of a profile loop by loop, of one loop by instruction
and rank. A recording that perf made is read without a daemon; as a node of a cluster it is `perf-agent --replay`.

EXAMPLES
  perfctl memory p-000012
  perfctl memory p-000012 --loop 3
  perf mem record -t load ./app && perfctl memory --recording perf.data
  perf mem record -o - ./app | perfctl memory --recording -
  perfctl --json memory --recording perf.data
  perfctl memory --recording perf.data --csv > accesses.csv

EXIT CODES
  0 shown   1 not a recording that can be read   3 no such file or profile, or it has no accesses   8 the profile is PARTIAL, or the recording damaged or cut off: what came before it is shown)",
      DefineMemory};
}

}  // namespace perfd::client
