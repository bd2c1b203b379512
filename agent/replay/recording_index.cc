#include "agent/replay/recording_index.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/perfdata/event_facts.h"
#include "core/perfdata/process_names.h"
#include "core/perfdata/recording_bytes.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kLatestNs = uint64_t{1} << 60;  // 36 years after the start of its clock

class Indexer {
 public:
  void Add(const EventSet::Decoded& record) {
    if (const auto* sample = std::get_if<Sample>(&record.record)) OnSample(record.event, *sample);
    if (const auto* task = std::get_if<TaskEvent>(&record.record)) names_.OnTask(*task);
  }

  RecordingIndex Finish(const Recording& recording) {
    index_.facts = recording.facts();
    index_.events.resize(recording.events().size());
    for (size_t i = 0; i < recording.events().size(); ++i) {
      index_.events[i].name = EventName(recording.events()[i], i);
      index_.events[i].attr = recording.events()[i].attr;
    }
    for (auto& [pid, process] : processes_) {
      process.command = names_.NameOf(pid);
      index_.processes.push_back(std::move(process));
    }
    std::stable_sort(
        index_.processes.begin(), index_.processes.end(),
        [](const RecordedProcess& a, const RecordedProcess& b) { return a.samples > b.samples; });
    return std::move(index_);
  }

 private:
  void OnSample(size_t event, const Sample& sample) {
    if (index_.events.size() <= event) index_.events.resize(event + 1);
    ++index_.events[event].samples;
    if (TellsOfAccess(sample)) ++index_.events[event].accesses;
    index_.first_ns = std::min(index_.first_ns, sample.time_ns);
    index_.last_ns = std::max(index_.last_ns, sample.time_ns);
    if (sample.pid <= 0) return;  // of an idle CPU
    if (processes_.size() >= RecordingIndex::kMostProcesses && !processes_.contains(sample.pid)) {
      ++index_.further_samples;
      return;
    }
    RecordedProcess& process = processes_[sample.pid];
    process.pid = sample.pid;
    ++process.samples;
    process.threads.insert(sample.tid);
  }

  RecordingIndex index_;
  std::map<int32_t, RecordedProcess> processes_;
  ProcessNames names_;
};

}  // namespace

size_t RecordingIndex::TimeEvent() const {
  size_t best = 0;
  uint64_t most = 0;
  for (const ReplayedEvent& event : events) most = std::max(most, event.samples);
  const auto rank = [&](size_t i) {
    const bool enough = events[i].samples > 0 && events[i].samples >= most / 10;
    return std::tuple(enough, enough && events[i].accesses == 0, events[i].samples);
  };
  for (size_t i = 1; i < events.size(); ++i) {
    if (rank(i) > rank(best)) best = i;
  }
  return best;
}

std::vector<MemoryEvent> RecordingIndex::MemoryEvents() const {
  std::vector<MemoryEvent> out;
  for (const ReplayedEvent& event : events) {
    if (event.accesses > 0) out.push_back({event.name, LatencyThreshold(event.attr)});
  }
  return out;
}

absl::StatusOr<RecordingIndex> IndexRecording(const std::string& path) {
  ASSIGN_OR_RETURN(auto bytes, OpenRecordingBytes(path));
  ASSIGN_OR_RETURN(const auto recording, Recording::Open(std::move(bytes)));
  Indexer indexer;
  absl::Status damage;
  while (true) {
    const auto next = recording->Next();
    if (!next.ok()) damage = next.status();
    if (!next.ok() || !next->has_value()) break;
    indexer.Add(**next);
  }
  RecordingIndex index = indexer.Finish(*recording);
  index.damage = damage;
  index.time_event = index.TimeEvent();
  if (index.first_ns > index.last_ns)
    return damage.ok() ? absl::NotFoundError(absl::StrCat(path, " has no samples")) : damage;
  if (index.last_ns == 0)
    return absl::UnimplementedError(
        absl::StrCat(path, " has no times: record with perf record --timestamp"));
  if (index.last_ns > kLatestNs)
    return absl::UnimplementedError(absl::StrCat(path, " has times that cannot be"));
  return index;
}

}  // namespace perfd::agent
