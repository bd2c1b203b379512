#include "client/recording/recorded_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "core/base/utf8.h"
#include "core/perfdata/event_facts.h"
#include "core/perfdata/process_names.h"

namespace perfd::client {
namespace {

constexpr uint64_t kProgressEvery = 1u << 16;
// Beyond that processes share one row: a recording of a whole day of a busy host has few with accesses.
constexpr size_t kMostProcesses = 1u << 16;
constexpr int32_t kOthers = -2;

class Summary {
 public:
  void Add(const EventSet::Decoded& record) {
    if (const auto* sample = std::get_if<Sample>(&record.record)) OnSample(record.event, *sample);
    if (const auto* task = std::get_if<TaskEvent>(&record.record)) names_.OnTask(*task);
  }

  std::vector<EventMemory> Events(const std::vector<RecordedEvent>& events) {
    samples_.resize(events.size());
    for (size_t i = 0; i < events.size(); ++i) {
      samples_[i].name = EventName(events[i], i);
      samples_[i].by_frequency = events[i].attr.freq != 0;
      samples_[i].rate = events[i].attr.sample_freq;  // one union with the period
      samples_[i].latency_threshold = LatencyThreshold(events[i].attr);
    }
    return std::move(samples_);
  }

  std::vector<ProcessMemory> Processes() const {
    std::vector<ProcessMemory> out;
    for (const auto& [pid, process] : processes_) {
      out.push_back({pid, pid == kOthers ? "others" : names_.NameOf(pid), process.threads.size(),
                     process.profile});
    }
    std::stable_sort(out.begin(), out.end(), [](const ProcessMemory& a, const ProcessMemory& b) {
      return a.profile.all.weight > b.profile.all.weight;
    });
    return out;
  }

  MemoryFigures Figures() const { return tally_.Figures(); }

 private:
  struct Process {
    std::set<int32_t> threads;
    MemoryProfile profile;
  };

  void OnSample(size_t event, const Sample& sample) {
    if (samples_.size() <= event) samples_.resize(event + 1);
    ++samples_[event].samples;
    if (!TellsOfAccess(sample)) return;
    ++samples_[event].accesses;
    const SampledAccess access = AccessOf(sample);
    tally_.Add(access);
    const bool full = processes_.size() >= kMostProcesses && !processes_.contains(sample.pid);
    Process& process = processes_[full ? kOthers : sample.pid];
    process.profile.Add(access);
    process.threads.insert(sample.tid);
  }

  std::vector<EventMemory> samples_;  // by event
  std::map<int32_t, Process> processes_;
  ProcessNames names_;
  MemoryTally tally_;
};

}  // namespace

RecordedMemory SummarizeMemory(Recording& recording, const RecordingObserver& observer) {
  RecordedMemory out;
  Summary summary;
  uint64_t records = 0;
  while (true) {
    const auto next = recording.Next();
    if (!next.ok()) out.damage = next.status();
    if (!next.ok() || !next->has_value()) break;
    summary.Add(**next);
    const auto* sample = std::get_if<Sample>(&(*next)->record);
    if (observer.access && sample != nullptr && TellsOfAccess(*sample))
      observer.access(EventName(recording.events()[(*next)->event], (*next)->event), *sample);
    if (++records % kProgressEvery == 0 && observer.progress) observer.progress(records);
  }
  out.facts = recording.facts();
  for (std::string* text : {&out.facts.host, &out.facts.cpu, &out.facts.command})
    *text = DisplayForm(*text);
  out.counts = recording.counts();
  out.events = summary.Events(recording.events());
  out.processes = summary.Processes();
  out.figures = summary.Figures();
  return out;
}

}  // namespace perfd::client
