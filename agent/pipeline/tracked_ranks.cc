#include "agent/pipeline/tracked_ranks.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

// Their last samples are read well before that.
constexpr int kLooksAtEndedHelpers = 10;

}  // namespace

absl::Status TrackedRanks::Add(const RankInfo& info, int64_t now_ns) {
  ASSIGN_OR_RETURN(const ProcessStatus status, procfs_.Status(info.pid));
  TrackedProcess process;
  process.info = info;
  process.gid = status.real_gid;
  process.executable = procfs_.Executable(info.pid).value_or("");
  process.cpu_ns = procfs_.CpuNs(info.pid, 0).value_or(0);
  ReadMaps(process, now_ns, true);
  processes_.insert_or_assign(info.pid, std::move(process));
  return absl::OkStatus();
}

TrackedProcess* TrackedRanks::AddChild(int32_t parent_pid, int32_t pid, int64_t now_ns) {
  const TrackedProcess* parent = Find(parent_pid);
  if (parent == nullptr) return nullptr;
  RankInfo info = parent->info;
  info.pid = pid;
  info.start_ticks = procfs_.StartTicks(pid).value_or(0);
  if (!Add(info, now_ns).ok()) return nullptr;
  TrackedProcess* child = Find(pid);
  child->helper = true;
  return child;
}

TrackedProcess* TrackedRanks::Find(int32_t pid) {
  auto it = processes_.find(pid);
  return it == processes_.end() ? nullptr : &it->second;
}

void TrackedRanks::ReadMaps(TrackedProcess& process, int64_t now_ns, bool force) {
  if (!force && now_ns - process.maps_read_ns < kNsPerSecond) return;
  process.maps_read_ns = now_ns;
  auto maps = procfs_.Maps(process.info.pid);
  if (maps.ok() && !maps->empty()) process.space.Replace(*maps);
}

uint64_t TrackedRanks::Refresh(std::vector<const TrackedProcess*>* ended) {
  std::erase_if(processes_, [](auto& entry) {
    TrackedProcess& process = entry.second;
    return process.ended && process.helper && ++process.looks_since_end > kLooksAtEndedHelpers;
  });
  uint64_t used_ns = 0;
  for (auto& [pid, process] : processes_) {
    if (process.ended) continue;
    const auto ticks = procfs_.StartTicks(pid);
    const auto status = procfs_.Status(pid);
    const bool same = ticks.ok() && *ticks == process.info.start_ticks;
    if (!same || !status.ok() || status->state == 'Z' || status->state == 'X') {
      process.ended = true;
      ended->push_back(&process);
      continue;
    }
    const uint64_t cpu_ns = procfs_.CpuNs(pid, 0).value_or(process.cpu_ns);
    used_ns += cpu_ns - std::min(cpu_ns, process.cpu_ns);
    process.cpu_ns = cpu_ns;
  }
  return used_ns;
}

int TrackedRanks::living() const {
  return static_cast<int>(std::count_if(processes_.begin(), processes_.end(), [](const auto& entry) {
    return !entry.second.ended && !entry.second.helper;
  }));
}

std::vector<RankInfo> TrackedRanks::infos() const {
  std::vector<RankInfo> infos;
  for (const auto& [pid, process] : processes_) {
    if (!process.helper) infos.push_back(process.info);
  }
  return infos;
}

}  // namespace perfd
