#include "agent/discover/tree_scan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/strip.h"
#include "agent/discover/numbering.h"

namespace perfd::agent {
namespace {

constexpr size_t kMostBelow = 1024;  // looked at, of one named process

bool IsRank(const Candidate& candidate) {
  return candidate.environment.source != RankSource::kNone;
}

std::pair<int32_t, uint64_t> KeyOf(const Candidate& candidate) {
  return {candidate.pid, candidate.start_ticks};
}

// As it was called: mpirun, not orterun; sh, not dash. A login shell is called -bash.
NamedProcess AsCalled(const ProcFs& procfs, const Candidate& candidate) {
  const auto arguments = procfs.CommandLine(candidate.pid);
  const bool known = arguments.ok() && !arguments->empty();
  absl::string_view name = known ? BaseName(arguments->front()) : absl::string_view();
  absl::ConsumePrefix(&name, "-");
  return {candidate.pid, name.empty() ? CommandName(candidate) : std::string(name)};
}

bool IsNamedLauncher(const Candidate& candidate) {
  const std::string name = CommandName(candidate);
  return IsLauncher(name) || IsWrapper(name);
}

// A named process that has started others, which the requester may measure.
struct Parent {
  Candidate candidate;
  std::vector<Candidate> below;
};

std::vector<Candidate> MeasurableBelow(const ProcFs& procfs, const Scope& scope,
                                       const ProcessTree& tree, int32_t pid) {
  std::vector<Candidate> below;
  for (const int32_t child : tree.Descendants(pid, kMostBelow)) {
    const absl::StatusOr<ProcessStamp> stamp = procfs.Stamp(child);
    if (!stamp.ok()) continue;
    Verdict verdict = Judge(procfs, scope, child, *stamp);
    if (verdict.kind == Verdict::Kind::kAccepted) below.push_back(std::move(verdict.candidate));
  }
  return RetainPrograms(std::move(below));
}

class NamedProbe {
 public:
  NamedProbe(const ProcFs& procfs, const SleepFor& sleep) : procfs_(procfs), sleep_(sleep) {}

  // What each used, in the looks so far.
  void Add(const std::vector<Parent>& parents) {
    const std::map<int32_t, uint64_t> before = Read(parents);
    sleep_(absl::Nanoseconds(kProbeNs));
    probe_ns_ += kProbeNs;
    for (const auto& [pid, cpu_ns] : Read(parents)) {
      const auto begin = before.find(pid);
      if (begin != before.end() && cpu_ns > begin->second) used_ns_[pid] += cpu_ns - begin->second;
    }
  }

  bool IsLauncher(const Parent& parent) const {
    std::vector<WatchedChild> below;
    for (const Candidate& child : parent.below) below.push_back({IsRank(child), Use(child.pid)});
    const int32_t pid = parent.candidate.pid;
    return OnlyWaits({.named_so = IsNamedLauncher(parent.candidate),
                      .is_rank = IsRank(parent.candidate),
                      .use = Use(pid),
                      .wait_channel = procfs_.WaitChannel(pid).value_or("")},
                     below, probe_ns_);
  }

  // More looks may show that something below it works.
  bool MayBeLauncher(const Parent& parent) const {
    const bool named_so = IsNamedLauncher(parent.candidate);
    return (named_so || !IsRank(parent.candidate)) &&
           IsIdle(Use(parent.candidate.pid), probe_ns_, named_so);
  }

  LauncherNote NoteOf(const Parent& parent) const {
    LauncherNote note;
    note.launchers = {AsCalled(procfs_, parent.candidate)};
    note.launcher_count = 1;
    for (const Candidate& child : parent.below) {
      if (!IsRank(child) && !Works(Use(child.pid), probe_ns_)) continue;
      ++note.working_count;
      if (note.working.size() < LauncherNote::kMaxNamed)
        note.working.push_back({child.pid, CommandName(child)});
    }
    return note;
  }

 private:
  std::map<int32_t, uint64_t> Read(const std::vector<Parent>& parents) const {
    std::map<int32_t, uint64_t> cpu_ns;
    for (const Parent& parent : parents) {
      cpu_ns[parent.candidate.pid] = ThreadsCpuNs(procfs_, parent.candidate.pid);
      for (const Candidate& child : parent.below)
        cpu_ns[child.pid] = ThreadsCpuNs(procfs_, child.pid);
    }
    return cpu_ns;
  }

  ProbedUse Use(int32_t pid) const {
    const auto used = used_ns_.find(pid);
    return {used == used_ns_.end() ? 0 : used->second, procfs_.CpuNs(pid, 0).value_or(0)};
  }

  const ProcFs& procfs_;
  const SleepFor& sleep_;
  int64_t probe_ns_ = 0;
  std::map<int32_t, uint64_t> used_ns_;
};

}  // namespace

std::vector<int32_t> TreeScan::Roots(const ProcFs& procfs, const Scope& scope) const {
  std::vector<int32_t> roots;
  if (!scanned_) {
    for (const int32_t pid : scope.target->pids) {
      const absl::StatusOr<ProcessStatus> status = procfs.Status(pid);
      const bool own = status.ok() && MayProfile(scope, status->real_uid);
      if (own && tree_.Find(pid) != nullptr) roots.push_back(pid);
    }
    return roots;
  }
  for (const auto& [pid, start_ticks] : members_) {
    const ProcessLink* link = tree_.Find(pid);
    if (link != nullptr && link->start_ticks == start_ticks) roots.push_back(pid);
  }
  return roots;
}

std::vector<int32_t> TreeScan::Members(const ProcFs& procfs, const Scope& scope) {
  tree_ = ReadProcessTree(procfs);
  ProcessTree::Part part = tree_.Below(Roots(procfs, scope), kMost);
  cut_ = part.cut;
  members_.clear();
  for (const int32_t pid : part.pids) members_[pid] = tree_.Find(pid)->start_ticks;
  if (std::exchange(scanned_, true)) return std::move(part.pids);
  // The first scan says why a named one cannot be used.
  part.pids.insert(part.pids.end(), scope.target->pids.begin(), scope.target->pids.end());
  std::sort(part.pids.begin(), part.pids.end());
  part.pids.erase(std::unique(part.pids.begin(), part.pids.end()), part.pids.end());
  return std::move(part.pids);
}

void TreeScan::ReadUse(const ProcFs& procfs, const Clock& clock, const SleepFor& sleep,
                       const std::vector<Candidate>& accepted) {
  uses_.clear();
  const bool first = read_ns_ == 0;
  const bool any_parent =
      std::any_of(accepted.begin(), accepted.end(),
                  [this](const Candidate& one) { return tree_.HasChildren(one.pid); });
  if (first && any_parent) {
    std::map<int32_t, uint64_t> before;
    for (const Candidate& candidate : accepted)
      before[candidate.pid] = ThreadsCpuNs(procfs, candidate.pid);
    sleep(absl::Nanoseconds(kProbeNs));
    for (const Candidate& candidate : accepted) {
      const uint64_t after = ThreadsCpuNs(procfs, candidate.pid);
      uses_[candidate.pid].used_ns = after - std::min(after, before[candidate.pid]);
    }
  }
  std::map<Key, uint64_t> now;
  for (const Candidate& candidate : accepted) {
    const uint64_t cpu_ns = procfs.CpuNs(candidate.pid, 0).value_or(0);
    now[KeyOf(candidate)] = cpu_ns;
    const auto before = cpu_ns_.find(KeyOf(candidate));
    if (before != cpu_ns_.end())
      uses_[candidate.pid].used_ns = cpu_ns - std::min(cpu_ns, before->second);
    if (first || before != cpu_ns_.end()) uses_[candidate.pid].lifetime_ns = cpu_ns;
  }
  cpu_ns_ = std::move(now);
  const int64_t now_ns = std::max<int64_t>(1, clock.MonotonicNs());
  probe_ns_ = first ? kProbeNs : now_ns - read_ns_;
  read_ns_ = now_ns;
}

bool TreeScan::IsLauncherNow(const ProcFs& procfs, const Candidate& candidate,
                             const std::vector<Candidate>& accepted) const {
  if (taken_.contains(KeyOf(candidate))) return false;
  if (IsLauncher(CommandName(candidate))) return true;
  if (!tree_.HasChildren(candidate.pid)) return false;
  const auto use = uses_.find(candidate.pid);
  const bool named_so = IsWrapper(CommandName(candidate));
  if (use == uses_.end()) return named_so;
  if (named_so) return IsIdle(use->second, probe_ns_, true);
  const std::vector<int32_t> below = tree_.Descendants(candidate.pid, kMost);
  std::vector<WatchedChild> children;
  for (const Candidate& other : accepted) {
    if (!std::binary_search(below.begin(), below.end(), other.pid)) continue;
    const auto child = uses_.find(other.pid);
    children.push_back({IsRank(other), child == uses_.end() ? ProbedUse() : child->second});
  }
  return OnlyWaits({.named_so = false,
                    .is_rank = IsRank(candidate),
                    .use = use->second,
                    .wait_channel = procfs.WaitChannel(candidate.pid).value_or("")},
                   children, probe_ns_);
}

bool TreeScan::Rests(const Candidate& candidate) const {
  if (taken_.contains(KeyOf(candidate)) || !IsWrapper(CommandName(candidate))) return false;
  const auto use = uses_.find(candidate.pid);
  return use == uses_.end() || IsIdle(use->second, probe_ns_, true);
}

// A shell that is all there is at first is not taken for good: its next program counts.
void TreeScan::RetainTaken(bool first, std::vector<Candidate>* accepted) {
  const bool programs = std::any_of(accepted->begin(), accepted->end(),
                                    [this](const Candidate& one) { return !Rests(one); });
  if (first && !programs) return;
  std::erase_if(*accepted, [this](const Candidate& one) { return Rests(one); });
  const bool mpi =
      std::any_of(accepted->begin(), accepted->end(), IsRank) ||
      std::any_of(taken_.begin(), taken_.end(), [](const auto& entry) { return entry.second; });
  std::erase_if(*accepted, [&](const Candidate& one) {
    return mpi && !IsRank(one) && !taken_.contains(KeyOf(one));
  });
  for (const Candidate& one : *accepted) taken_[KeyOf(one)] = IsRank(one);
}

std::vector<LauncherNote> TreeScan::Report(const ProcFs& procfs,
                                           const std::vector<Candidate>& launchers,
                                           size_t working) {
  LauncherNote note;
  note.disposition = LauncherNote::Disposition::kLeftOut;
  note.working_count = static_cast<int32_t>(working);
  for (const Candidate& launcher : launchers) {
    if (told_.size() >= kMostTold || !told_.insert(KeyOf(launcher)).second) continue;
    ++note.launcher_count;
    if (note.launchers.size() < LauncherNote::kMaxNamed)
      note.launchers.push_back(AsCalled(procfs, launcher));
  }
  if (note.launchers.empty()) return {};
  return {std::move(note)};
}

// told_ is bounded by itself, and a launcher that has ended is told once, too.
void TreeScan::ForgetEnded() {
  std::erase_if(taken_, [this](const auto& entry) {
    const auto member = members_.find(entry.first.first);
    return member == members_.end() || member->second != entry.first.second;
  });
}

std::vector<LauncherNote> TreeScan::LeaveOut(const ProcFs& procfs, const Clock& clock,
                                             const SleepFor& sleep,
                                             std::vector<Candidate>* accepted) {
  const bool first = read_ns_ == 0;
  ForgetEnded();
  ReadUse(procfs, clock, sleep, *accepted);
  std::vector<Candidate> launchers;
  for (const Candidate& candidate : *accepted) {
    if (IsLauncherNow(procfs, candidate, *accepted)) launchers.push_back(candidate);
  }
  std::erase_if(*accepted, [&](const Candidate& candidate) {
    return std::any_of(launchers.begin(), launchers.end(),
                       [&](const Candidate& one) { return one.pid == candidate.pid; });
  });
  RetainTaken(first, accepted);
  return Report(procfs, launchers, accepted->size());
}

std::vector<LauncherNote> LeaveOutNamed(const ProcFs& procfs, const Scope& scope,
                                        const SleepFor& sleep, std::vector<Candidate>* named) {
  const ProcessTree tree = ReadProcessTree(procfs);
  std::vector<Parent> parents;
  for (const Candidate& candidate : *named) {
    if (!tree.HasChildren(candidate.pid)) continue;
    std::vector<Candidate> below = MeasurableBelow(procfs, scope, tree, candidate.pid);
    if (!below.empty()) parents.push_back({candidate, std::move(below)});
  }
  std::vector<LauncherNote> notes;
  NamedProbe probe(procfs, sleep);
  for (int probes = 0; probes < kMostProbes && !parents.empty(); ++probes) {
    probe.Add(parents);
    std::erase_if(parents, [&](const Parent& parent) {
      if (!probe.IsLauncher(parent)) return !probe.MayBeLauncher(parent);
      notes.push_back(probe.NoteOf(parent));
      std::erase_if(*named, [&](const Candidate& candidate) {
        return candidate.pid == parent.candidate.pid;
      });
      return true;
    });
  }
  return notes;
}

}  // namespace perfd::agent
