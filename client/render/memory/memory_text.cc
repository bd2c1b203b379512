#include "client/render/memory/memory_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/render/memory/memory_sections.h"
#include "client/render/text_table.h"

namespace perfd::client {
namespace {

std::string Head(const RecordedMemory& memory) {
  const RecordingFacts& facts = memory.facts;
  std::string out =
      absl::StrCat("Recording of ", facts.host.empty() ? "an unknown host" : Clean(facts.host));
  if (!facts.cpu.empty()) absl::StrAppend(&out, ", ", Clean(facts.cpu));
  if (facts.cpus_online > 0) absl::StrAppend(&out, ", ", facts.cpus_online, " CPUs");
  if (facts.numa_nodes.size() > 1)
    absl::StrAppend(&out, ", ", facts.numa_nodes.size(), " NUMA nodes");
  absl::StrAppend(&out, "  (replayed)\n");
  if (!facts.command.empty()) absl::StrAppend(&out, "  ", CutEnd(Clean(facts.command), 96), "\n");
  return out;
}

std::string Rate(const EventMemory& event) {
  return event.by_frequency ? absl::StrCat(event.rate, " a second")
                            : absl::StrCat("one of ", event.rate);
}

std::string Events(const RecordedMemory& memory) {
  TextTable table({{"EVENT"}, {"SAMPLED", true}, {"SAMPLES", true}, {"ACCESSES", true}});
  for (const EventMemory& event : memory.events) {
    table.Add({CutEnd(event.name, 60), Rate(event), absl::StrCat(event.samples),
               absl::StrCat(event.accesses)});
  }
  return table.Render();
}

std::string Processes(const RecordedMemory& memory, size_t top) {
  TextTable table({{"PROCESS"},
                   {"PID", true},
                   {"THREADS", true},
                   {"SAMPLES", true},
                   {"SHARE", true},
                   {"WALKS", true},
                   {"MEDIAN LATENCY", true}});
  const uint64_t all = memory.figures.profile.all.weight;
  for (size_t i = 0; i < std::min(top, memory.processes.size()); ++i) {
    const ProcessMemory& process = memory.processes[i];
    table.Add({process.name.empty() ? "?" : CutEnd(process.name, 40), absl::StrCat(process.pid),
               absl::StrCat(process.threads), absl::StrCat(process.profile.all.samples),
               Percent(RatioOf(process.profile.all.weight, all)),
               absl::StrCat(process.profile.tlb[static_cast<size_t>(TlbResult::kWalk)].samples), LatencyText(process.profile.latency.Quantile(0.5))});
  }
  std::string out = table.Render();
  if (memory.processes.size() > top)
    absl::StrAppend(&out, "  and ", memory.processes.size() - top, " more (--top)\n");
  return out;
}

}  // namespace

std::string RenderMemory(const RecordedMemory& memory, size_t top, const TextStyle& style) {
  std::string out = Head(memory);
  absl::StrAppend(&out, "\n", Events(memory));
  if (memory.figures.profile.all.samples == 0) return out;
  absl::StrAppend(&out, RenderFigures(memory.figures, style));
  absl::StrAppend(&out, "\n", Processes(memory, top));
  return out;
}

std::vector<std::string> MemoryRemarks(const RecordedMemory& memory) {
  const RecordingCounts& counts = memory.counts;
  const MemoryProfile& profile = memory.figures.profile;
  std::vector<std::string> out;
  if (!memory.damage.ok())
    out.push_back(absl::StrCat(memory.damage.message(), "; what came before it is shown"));
  if (counts.truncated)
    out.push_back("the recording ends amid a record; what came before it is shown");
  if (counts.unfinished)
    out.push_back(
        "perf did not come to write the end of the recording: its host and events have no names");
  if (counts.lost > 0)
    out.push_back(absl::StrCat(counts.lost, " records were lost while it was recorded"));
  if (counts.malformed > 0)
    out.push_back(absl::StrCat(counts.malformed, " records could not be read"));
  if (counts.late > 0) out.push_back(absl::StrCat(counts.late, " records came out of order"));
  if (counts.damaged_features > 0)
    out.push_back(absl::StrCat(counts.damaged_features, " parts of its header could not be read"));
  for (const EventMemory& event : memory.events) {
    if (event.latency_threshold > 3)
      out.push_back(absl::StrCat("loads that took fewer than ", event.latency_threshold,
                                 " cycles were not sampled (", event.name, ")"));
  }
  const auto telling = std::count_if(memory.events.begin(), memory.events.end(),
                                     [](const EventMemory& event) { return event.accesses > 0; });
  if (telling > 1)
    out.push_back(
        "shares add up samples of several events, each by its period: --csv has them apart");
  if (profile.all.samples == 0)
    out.push_back(
        "no sample tells of an access to memory: record with `perf mem record` or `perf record -d "
        "-e mem-loads`, on a processor with PEBS or IBS");
  else if (profile.without_source == profile.all.samples)
    out.push_back("the samples tell addresses, but not where the data were found");
  return out;
}

}  // namespace perfd::client
