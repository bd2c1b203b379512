#include "client/render/memory/memory_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/render/memory/memory_words.h"
#include "client/render/text_table.h"

namespace perfd::client {
namespace {

constexpr int kBarCells = 30;
constexpr uint64_t kOpenEnd = UINT64_MAX;

std::string Range(const LatencyRange& range) {
  if (range == LatencyRange{}) return "-";
  if (range.high == kOpenEnd) return absl::StrCat(range.low, " and more");
  return range.high == range.low + 1 ? absl::StrCat(range.low)
                                     : absl::StrCat(range.low, " to ", range.high - 1);
}

double Ratio(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

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

void AddLevels(const std::array<AccessCount, kMemoryLevels>& counts, const char* before,
               uint64_t all, const TextStyle& style, TextTable* table) {
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i].samples == 0) continue;
    const double ratio = Ratio(counts[i].weight, all);
    table->Add({absl::StrCat(before, LevelWords(static_cast<MemoryLevel>(i)).text),
                absl::StrCat(counts[i].samples), Percent(ratio), Bar(style, ratio, kBarCells)});
  }
}

std::string Levels(const MemoryProfile& profile, const TextStyle& style) {
  TextTable table({{"FOUND IN"}, {"SAMPLES", true}, {"SHARE", true}, {""}});
  AddLevels(profile.loads, "", profile.all.weight, style, &table);
  AddLevels(profile.missed, "not in ", profile.all.weight, style, &table);
  if (profile.stores.samples > 0) {
    const double ratio = Ratio(profile.stores.weight, profile.all.weight);
    table.Add({"stores", absl::StrCat(profile.stores.samples), Percent(ratio),
               Bar(style, ratio, kBarCells)});
  }
  std::string out = table.Render();
  if (profile.kernel.samples > 0)
    absl::StrAppend(&out, "  ", profile.kernel.samples, " of ", profile.all.samples,
                    " samples are of the kernel\n");
  return out;
}

std::string Shares(const MemoryFigures& figures) {
  TextTable table({{"TIME OF LOADS"}, {"SHARE", true}, {"95 %", true}, {"SAMPLES", true}, {""}});
  for (size_t i = 0; i < kMemoryBorders; ++i) {
    const BeyondShare& share = figures.beyond[i];
    const char* what = BorderWords(static_cast<MemoryBorder>(i)).text;
    const std::string samples = absl::StrCat(share.samples);
    switch (share.why_not) {
      case NoShare::kNone:
        table.Add({what, Percent(share.share), Interval95(share.interval.low, share.interval.high),
                   samples, ""});
        break;
      case NoShare::kTooFew:
        table.Add(
            {what, "-", "", samples, absl::StrCat("too few: ", kFewestSamples, " tell something")});
        break;
      case NoShare::kNoLatency:
        table.Add({what, "-", "", samples,
                   absl::StrCat(share.without_latency,
                                " loads say where they were found, and not how long they took")});
        break;
      case NoShare::kNotTold:
        table.Add(
            {what, "-", "", samples,
             absl::StrCat("half of the time is of ", share.untold, " loads that do not tell")});
        break;
    }
  }
  return table.Render();
}

std::string Latencies(const LatencyHistogram& histogram, const TextStyle& style) {
  TextTable table({{"LATENCY (cycles)", true}, {"SAMPLES", true}, {"OF SAMPLES", true}, {""}});
  const uint64_t all = histogram.total();
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    if (histogram.at(i) == 0) continue;
    const double ratio = Ratio(histogram.at(i), all);
    table.Add({Range(LatencyHistogram::RangeOf(i)), absl::StrCat(histogram.at(i)), Percent(ratio),
               Bar(style, ratio, kBarCells)});
  }
  const LatencyRange most = histogram.Quantile(0.9);
  std::string out = table.Render();
  absl::StrAppend(&out, "  median ", Range(histogram.Quantile(0.5)));
  if (most.high != kOpenEnd) absl::StrAppend(&out, ", 9 of 10 below ", most.high);
  return absl::StrCat(out, "\n");
}

std::string Tlb(const MemoryProfile& profile, const TextStyle& style) {
  TextTable table({{"DTLB"}, {"SAMPLES", true}, {"SHARE", true}, {""}});
  for (size_t i = 0; i < kTlbResults; ++i) {
    const AccessCount& count = profile.tlb[i];
    if (count.samples == 0) continue;
    const double ratio = Ratio(count.weight, profile.all.weight);
    table.Add({TlbWords(static_cast<TlbResult>(i)).text, absl::StrCat(count.samples),
               Percent(ratio), Bar(style, ratio, kBarCells)});
  }
  return table.Render();
}

uint64_t Walks(const MemoryProfile& profile) {
  return profile.tlb[static_cast<size_t>(TlbResult::kWalk)].samples;
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
               Percent(Ratio(process.profile.all.weight, all)),
               absl::StrCat(Walks(process.profile)), Range(process.profile.latency.Quantile(0.5))});
  }
  std::string out = table.Render();
  if (memory.processes.size() > top)
    absl::StrAppend(&out, "  and ", memory.processes.size() - top, " more (--top)\n");
  return out;
}

void AddSection(std::string* out, const std::string& section) {
  absl::StrAppend(out, "\n", section);
}

}  // namespace

std::string RenderMemory(const RecordedMemory& memory, size_t top, const TextStyle& style) {
  const MemoryProfile& profile = memory.figures.profile;
  std::string out = Head(memory);
  AddSection(&out, Events(memory));
  if (profile.all.samples == 0) return out;
  if (profile.without_source < profile.all.samples) {
    AddSection(&out, Levels(profile, style));
    AddSection(&out, Shares(memory.figures));
    AddSection(&out, Tlb(profile, style));
  }
  if (profile.latency.total() > 0) AddSection(&out, Latencies(profile.latency, style));
  AddSection(&out, Processes(memory, top));
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
