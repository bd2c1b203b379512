#include "agent/pipeline/ranks/tracked_ranks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/procfs/cgroup/suspension.h"
#include "core/base/clock.h"
#include "core/base/cpu_time.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxPast = 4096;
constexpr int64_t kMapsShare = 500;
constexpr size_t kThreadsALook = 64;  // some 15 us each

// Nobody knows when it ended since it was last seen alive.
void CountLastLife(ProcessUse& use, int64_t read_ns) {
  use.window.lived_ns += static_cast<uint64_t>(std::max<int64_t>(0, read_ns - use.seen_ns) / 2);
  use.seen_ns = std::max(use.seen_ns, read_ns);
}

// True: it has ended.
bool Compare(TrackedProcess& process, const absl::StatusOr<Admission>& now) {
  if (absl::IsNotFound(now.status())) return true;
  if (now.ok() && now->start_ticks != process.info.start_ticks) return true;
  if (!now.ok() && !absl::IsPermissionDenied(now.status())) return false;
  process.not_itself =
      now.ok() ? CheckSameRights(process.admission, *now, process.info.pid) : now.status();
  process.changed_owner = !process.not_itself.ok();
  process.ended |= process.changed_owner;
  return false;
}

absl::Status EndedError(int32_t pid) {
  return absl::NotFoundError(absl::StrCat("process ", pid, " has ended"));
}

}  // namespace

absl::Status ChangedOwnerError(const TrackedProcess& process) {
  return absl::PermissionDeniedError(
      absl::StrCat("rank ", process.info.rank, " (", process.executable,
                   "): ", process.not_itself.message(), ", nor sampled"));
}

absl::Status TrackedRanks::CheckRights(const RankInfo& info, const Admission& admission) const {
  const std::string who = absl::StrCat("process ", info.pid);
  const uint32_t owner = admission.rights.uids[0];
  if (owner != info.uid)
    return absl::PermissionDeniedError(
        absl::StrCat(who, " belongs to ", UserText(owner), " now, not to ", UserText(info.uid)));
  return CheckRequester(admission, {.uid = info.uid, .name = "", .privileged = privileged_}, who);
}

absl::Status TrackedRanks::Add(const RankInfo& info, int64_t now_ns) {
  ASSIGN_OR_RETURN(const Admission admission, ReadAdmission(procfs_, info.pid));
  if (admission.start_ticks != info.start_ticks) return EndedError(info.pid);
  RETURN_IF_ERROR(CheckRights(info, admission));
  auto old = processes_.find(info.pid);
  if (old != processes_.end() && old->second.info.start_ticks == info.start_ticks)
    return old->second.changed_owner ? ChangedOwnerError(old->second) : absl::OkStatus();
  if (old != processes_.end()) Replace(std::move(processes_.extract(old).mapped()));
  TrackedProcess process;
  process.info = info;
  process.admission = admission;
  process.executable = procfs_.Executable(info.pid).value_or("");
  process.use.seen_ns = now_ns;
  CountUse(process, now_ns);
  process.use.window.threads.clear();
  LoadMaps(process, now_ns);
  processes_.emplace(info.pid, std::move(process));
  left_.erase(info.pid);
  return absl::OkStatus();
}

void TrackedRanks::Replace(TrackedProcess old) {
  if (old.helper_of == 0 && past_.size() < kMaxPast) past_.push_back(old.info);
  if (!old.ended && replaced_.size() < kMaxPast) replaced_.push_back(std::move(old));
}

// A child has the rights of its parent until it executes something setuid: that one is not
// followed.
TrackedProcess* TrackedRanks::AddChild(int32_t parent_pid, int32_t pid, int64_t now_ns) {
  const TrackedProcess* parent = Find(parent_pid);
  if (parent == nullptr || left_.contains(PidOfRank(*parent))) return nullptr;
  const auto admission = ReadAdmission(procfs_, pid);
  if (absl::IsNotFound(admission.status())) return AddEndedChild(*parent, pid);
  if (!admission.ok() || admission->rights != parent->admission.rights ||
      admission->dumpable != parent->admission.dumpable)
    return nullptr;
  RankInfo info = parent->info;
  info.pid = pid;
  info.start_ticks = admission->start_ticks;
  if (Knows(info)) return Find(pid);  // a rank that was discovered before its fork was read
  if (!Add(info, now_ns).ok()) return nullptr;
  TrackedProcess* child = Find(pid);
  child->helper_of = PidOfRank(*parent);
  return child;
}

// Its mappings are its parent's and its rights too, unless it was root's, which can become anyone.
TrackedProcess* TrackedRanks::AddEndedChild(const TrackedProcess& parent, int32_t pid) {
  const auto& uids = parent.admission.rights.uids;
  if (std::find(uids.begin(), uids.end(), 0u) != uids.end() || processes_.contains(pid))
    return nullptr;
  TrackedProcess child;
  child.info = parent.info;
  child.info.pid = pid;
  child.info.start_ticks = 0;
  child.admission = parent.admission;
  child.executable = parent.executable;
  child.executable_before = parent.executable_before;
  child.space = parent.space;
  child.helper_of = PidOfRank(parent);
  child.ended = true;
  child.ended_ns = read_ns_;
  return &processes_.emplace(pid, std::move(child)).first->second;
}

TrackedProcess* TrackedRanks::Find(int32_t pid) {
  auto it = processes_.find(pid);
  return it == processes_.end() || it->second.changed_owner ? nullptr : &it->second;
}

bool TrackedRanks::Lives(int32_t pid) const {
  auto it = processes_.find(pid);
  return it != processes_.end() && !it->second.ended;
}

bool TrackedRanks::Knows(const RankInfo& info) const {
  auto it = processes_.find(info.pid);
  return it != processes_.end() && it->second.info.start_ticks == info.start_ticks;
}

void TrackedRanks::ReadMaps(TrackedProcess& process, int64_t now_ns) {
  if (now_ns >= process.maps_due_ns) LoadMaps(process, now_ns);
}

void TrackedRanks::Exec(TrackedProcess& process, uint64_t time_ns, int64_t now_ns) {
  ++process.image;
  process.executable_before = process.executable;
  process.space.Exec(time_ns != 0 ? time_ns : static_cast<uint64_t>(now_ns));
  if (process.info.start_ticks ==
      0) {  // ended before it was seen: nobody knows whose rights the program gave it
    process.changed_owner = process.change_told = true;
    return;
  }
  // What it runs now is admitted anew: by one reading, which is the one that was compared.
  const auto now = ReadAdmission(procfs_, process.info.pid);
  Compare(process, now);
  if (process.changed_owner) return;
  if (now.ok() && now->start_ticks == process.info.start_ticks) process.admission = *now;
  process.executable = procfs_.Executable(process.info.pid).value_or(process.executable);
  LoadMaps(process, now_ns);
}

void TrackedRanks::LoadMaps(TrackedProcess& process, int64_t now_ns) {
  const uint64_t begin_ns = ThreadCpuNs();
  process.maps_due_ns = now_ns + kNsPerSecond;
  // Of a process that is stuck in the kernel, reading could wait with it.
  const auto stamp = procfs_.Stamp(process.info.pid);
  if (!stamp.ok() || stamp->state == 'D' || stamp->start_ticks != process.info.start_ticks) return;
  auto maps = ExecutableMaps(procfs_, process.info.pid);
  const uint64_t start_ticks = process.info.start_ticks;
  if (absl::IsUnavailable(maps.status()) &&
      std::exchange(silent_told_[process.info.pid], start_ticks) != start_ticks)
    silent_.emplace_back(process.info, maps.status());
  if (maps.ok() && !maps->empty()) process.space.Replace(*maps, static_cast<uint64_t>(now_ns));
  // Of tens of thousands of mappings a look takes long: at most one part in kMapsShare of the time goes into it.
  const auto used_ns = static_cast<int64_t>(ThreadCpuNs() - begin_ns);
  process.maps_due_ns = std::max(process.maps_due_ns, now_ns + kMapsShare * used_ns);
}

// What cannot be read for another reason than its end (want of descriptors) still lives.
bool TrackedRanks::HasEnded(TrackedProcess& process) {
  // A thread can change its rights alone. Of many threads all are looked at every few seconds.
  const auto turns = static_cast<int64_t>(process.use.threads.size() / kThreadsALook + 1);
  const bool all = (read_ns_ / kNsPerSecond + process.info.pid) % turns == 0;
  const auto now = ReadAdmission(procfs_, process.info.pid,
                                 all ? ThreadScope::kAllThreadsOnly : ThreadScope::kMainThread);
  return Compare(process, now);
}

// Each look that finds it suspended stands for the time since the look before: of long and of short ones as much as there was, on
// the average.
void TrackedRanks::CountSuspension(TrackedProcess& process, int64_t since_ns) {
  const auto stamp = procfs_.Stamp(process.info.pid);
  if (!stamp.ok() || stamp->state == 'R') return;  // most ranks: a look at their groups costs more
  std::string by = SuspendedBy(procfs_, process.info.pid);
  if (by.empty()) return;
  process.suspended.by = std::move(by);
  if (since_ns > 0) process.suspended.ns += std::max<int64_t>(0, read_ns_ - since_ns);
}

// What it has used since the last time. At the first look all its threads are new, whether they began since or not.
CpuUse TrackedRanks::CountUse(TrackedProcess& process, int64_t read_ns) {
  ProcessUse& use = process.use;
  CpuUse used;
  const uint64_t cpu_ns = procfs_.CpuNs(process.info.pid, 0).value_or(use.cpu_ns);
  used.cpu_ns = cpu_ns - std::min(cpu_ns, std::exchange(use.cpu_ns, cpu_ns));
  if (const auto threads = procfs_.Schedule(process.info.pid); threads.ok()) {
    const auto before = std::exchange(use.threads, {});
    uint64_t known = 0;
    for (const ThreadSchedule& now : *threads) {
      const auto found = before.find(now.tid);
      if (found != before.end()) ++known;
      const ThreadSchedule last = found == before.end() ? ThreadSchedule{} : found->second;
      const uint64_t wait_ns = now.wait_ns - std::min(now.wait_ns, last.wait_ns);
      ThreadTime& time = use.window.threads[now.tid];
      time.run_ns += now.run_ns - std::min(now.run_ns, last.run_ns);
      time.wait_ns += wait_ns;
      used.wait_ns += wait_ns;
      used.switches += now.switches - std::min(now.switches, last.switches);
      use.threads.emplace(now.tid, now);
    }
    used.ended = before.size() - known;
    if (!before.empty()) used.appeared = threads->size() - known;
    // A process that ran, none of whose threads did: a kernel without these figures.
    const bool told = std::any_of(threads->begin(), threads->end(),
                                  [](const ThreadSchedule& thread) { return thread.run_ns > 0; });
    used.unknown = !told && cpu_ns > 0;
  } else {
    used.unknown = true;
  }
  use.window.lived_ns += static_cast<uint64_t>(std::max<int64_t>(0, read_ns - use.seen_ns));
  use.seen_ns = std::max(use.seen_ns, read_ns);
  return used;
}

std::vector<ProcessTime> TrackedRanks::DrainTimes() {
  std::vector<ProcessTime> times;
  for (auto& [pid, process] : processes_) {
    ProcessTime time = std::exchange(process.use.window, {});
    time.rank = process.info.rank;
    time.pid = pid;
    time.helper = process.helper_of != 0;
    if (time.lived_ns > 0 || !time.helper) times.push_back(std::move(time));
  }
  return times;
}

CpuUse TrackedRanks::Refresh(int64_t read_ns, std::vector<const TrackedProcess*>* ended,
                             std::vector<const TrackedProcess*>* changed) {
  if (changed == nullptr) changed = ended;
  const int64_t since_ns = std::exchange(read_ns_, read_ns);
  told_ = std::exchange(replaced_, {});
  for (const TrackedProcess& process : told_) ended->push_back(&process);
  for (auto it = processes_.begin(); it != processes_.end();) {
    TrackedProcess& process = it->second;
    const bool told = process.ended && (!process.changed_owner || process.change_told);
    const bool forget = told && process.helper_of != 0 && !left_.contains(process.helper_of) &&
                        read_ns - process.ended_ns > kKeepEndedNs;
    it = forget ? processes_.erase(it) : std::next(it);
  }
  CpuUse used{.ended = told_.size()};
  for (auto& [pid, process] : processes_) {
    const bool had_ended = process.ended;
    if (!process.ended && HasEnded(process)) {
      process.ended = true;
      if (!process.changed_owner) ended->push_back(&process);
    }
    if (process.changed_owner && !std::exchange(process.change_told, true)) {
      changed->push_back(&process);
      ++used.ended;
    }
    if (process.ended && !had_ended) {
      process.ended_ns = read_ns;
      CountLastLife(process.use, read_ns);
      ++used.ended;
    }
    if (process.ended) continue;
    used += CountUse(process, read_ns);
    CountSuspension(process, since_ns);
  }
  return used;
}

std::vector<int32_t> TrackedRanks::Leave(int32_t rank_pid) {
  left_.insert(rank_pid);
  std::vector<int32_t> pids;
  for (auto& [pid, process] : processes_) {
    if (PidOfRank(process) != rank_pid || process.ended) continue;
    process.ended = true;
    process.ended_ns = read_ns_;
    pids.push_back(pid);
  }
  return pids;
}

std::map<int32_t, uint64_t> TrackedRanks::ThreadsByRank() const {
  std::map<int32_t, uint64_t> threads;
  for (const auto& [pid, process] : processes_) {
    if (!process.ended) threads[PidOfRank(process)] += process.use.threads.size();
  }
  return threads;
}

int TrackedRanks::living() const {
  return static_cast<int>(std::count_if(
      processes_.begin(), processes_.end(),
      [](const auto& entry) { return !entry.second.ended && entry.second.helper_of == 0; }));
}

std::vector<const TrackedProcess*> TrackedRanks::LivingRanks() const {
  std::vector<const TrackedProcess*> ranks;
  for (const auto& [pid, process] : processes_) {
    if (!process.ended && process.helper_of == 0) ranks.push_back(&process);
  }
  return ranks;
}

std::vector<const TrackedProcess*> TrackedRanks::SuspendedRanks() const {
  std::vector<const TrackedProcess*> suspended;
  for (const auto& [pid, process] : processes_) {
    if (process.suspended.ns > 0 && process.helper_of == 0) suspended.push_back(&process);
  }
  return suspended;
}

std::vector<RankInfo> TrackedRanks::infos() const {
  std::vector<RankInfo> infos = past_;
  for (const auto& [pid, process] : processes_) {
    if (process.helper_of == 0) infos.push_back(process.info);
  }
  return infos;
}

}  // namespace perfd::agent
