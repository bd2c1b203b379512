#include "client/recording/recorded_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/utf8.h"

namespace perfd::client {
namespace {

constexpr uint64_t kProgressEvery = 1u << 16;
// Beyond that processes share one row: a recording of a whole day of a busy host has few with accesses.
constexpr size_t kMostProcesses = 1u << 16;
constexpr int32_t kOthers = -2;

// Intel's load latency. Source: /sys/devices/cpu/events/mem-loads ("event=0xcd,umask=0x1,ldlat=3") and format/ldlat
// ("config1:0-15").
uint32_t LatencyThreshold(const perf_event_attr& attr) {
  const uint64_t event = attr.config & 0xffff;
  const bool large_core = attr.type == PERF_TYPE_RAW && event == 0x1cd;
  const bool small_core = attr.type >= PERF_TYPE_MAX && event == 0x5d0;  // a PMU of its own
  return large_core || small_core ? static_cast<uint32_t>(attr.config1 & 0xffff) : 0;
}

std::string NameOf(const RecordedEvent& event, size_t index) {
  return event.name.empty() ? absl::StrCat("event ", index + 1) : DisplayForm(event.name);
}

bool Tells(const Sample& sample) {
  const MemoryAccess access = sample.access.value_or(MemoryAccess{});
  return access.address != RuntimeAddress(0) || access.latency_cycles != 0 ||
         access.source != MemorySource{};
}

class Summary {
 public:
  void Add(const EventSet::Decoded& record) {
    if (const auto* sample = std::get_if<Sample>(&record.record)) OnSample(record.event, *sample);
    if (const auto* task = std::get_if<TaskEvent>(&record.record)) OnTask(*task);
  }

  std::vector<EventMemory> Events(const std::vector<RecordedEvent>& events) {
    samples_.resize(events.size());
    for (size_t i = 0; i < events.size(); ++i) {
      samples_[i].name = NameOf(events[i], i);
      samples_[i].by_frequency = events[i].attr.freq != 0;
      samples_[i].rate = events[i].attr.sample_freq;  // one union with the period
      samples_[i].latency_threshold = LatencyThreshold(events[i].attr);
    }
    return std::move(samples_);
  }

  std::vector<ProcessMemory> Processes() const {
    std::vector<ProcessMemory> out;
    for (const auto& [pid, process] : processes_) {
      const auto name = names_.find(pid);
      out.push_back(
          {pid, name == names_.end() ? "" : name->second, process.threads.size(), process.profile});
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
    if (!Tells(sample)) return;
    ++samples_[event].accesses;
    const SampledAccess access{sample.tid, sample.time_ns, sample.period, sample.kernel,
                               *sample.access};
    tally_.Add(access);
    const bool full = processes_.size() >= kMostProcesses && !processes_.contains(sample.pid);
    Process& process = processes_[full ? kOthers : sample.pid];
    process.profile.Add(access);
    process.threads.insert(sample.tid);
  }

  void OnTask(const TaskEvent& task) {
    const bool main_thread = task.pid == task.tid;
    if (!task.name.empty() && (main_thread || !names_.contains(task.pid)))
      names_[task.pid] = DisplayForm(task.name);
    if (task.kind != TaskEvent::Kind::kProcessForked) return;
    const auto parent = names_.find(task.parent_pid);
    if (parent != names_.end()) names_[task.pid] = std::string(parent->second);
  }

  std::vector<EventMemory> samples_;  // by event
  std::map<int32_t, Process> processes_;
  absl::flat_hash_map<int32_t, std::string> names_{
      {0, "swapper"}, {kOthers, "others"}};  // 0: the kernel's, of idle CPUs
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
    if (observer.access && sample != nullptr && Tells(*sample))
      observer.access(NameOf(recording.events()[(*next)->event], (*next)->event), *sample);
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
