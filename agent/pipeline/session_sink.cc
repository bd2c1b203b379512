// What a session does with each record of the kernel.
#include "agent/pipeline/session.h"

namespace perfd::agent {
namespace {

RawLocation InKernel(KernelCause cause, const RawLocation& caller) {
  return {.kind = RawLocation::Kind::kKernel,
          .cause = cause,
          .has_caller = caller.kind == RawLocation::Kind::kModule,
          .module = caller.module,
          .file_offset = caller.file_offset};
}

// A child that ends without a signal to its parent is one of our own: ordinary ones have SIGCHLD.
bool IsShadow(const ProcFs& procfs, int32_t pid) {
  const auto stamp = procfs.Stamp(pid);
  return stamp.ok() && stamp->exit_signal == 0;
}

void RecordStart(const TrackedProcess* process, SessionCosts& costs) {
  if (process != nullptr) costs.RecordStart(PidOfRank(*process));
}

}  // namespace

RawLocation Session::Place(TrackedProcess& process, RuntimeAddress ip, uint64_t time_ns) {
  // In a copy of a loop: the sample belongs to the loop.
  ip = experiment_.OriginalAddress(process.info.pid, ip).value_or(ip);
  const CodeMapping* mapping = process.space.Find(ip, time_ns);
  // Its mapping record may have come into the ring of another thread since we looked. What was
  // before an exec is gone.
  if (mapping == nullptr && time_ns >= process.space.exec_ns()) {
    ranks_.ReadMaps(process, tools_.clock->MonotonicNs());
    mapping = process.space.Find(ip, time_ns);
  }
  if (mapping == nullptr) return {.kind = RawLocation::Kind::kUnmapped};
  const RawModule module = ModuleOf({.pid = process.info.pid,
                                     .uid = process.info.uid,
                                     .gid = process.admission.rights.gids[0],
                                     .start_ticks = process.info.start_ticks,
                                     .image = process.image,
                                     .executable = ExecutableAt(process, time_ns)},
                                    *mapping);
  return {.kind = RawLocation::Kind::kModule,
          .module = windows_.builder().Module(module),
          .file_offset = module.IsAnonymous() ? ip.value() : mapping->OffsetOf(ip)};
}

void Session::OnSample(const perfd::Sample& sample) {
  Accounting& accounting = windows_.accounting();
  ++accounting.seen;
  TrackedProcess* process = ranks_.Find(sample.pid);
  if (process == nullptr) {
    accounting.Drop(DropReason::kForeignProcess);
    return;
  }
  costs_.RecordSample();
  const WindowThread thread{process->info.rank, sample.pid, sample.tid};
  // Of a kernel sample, where its thread came from.
  const RuntimeAddress ip = sample.kernel ? sample.entry.user_ip : sample.ip;
  RawLocation leaf;
  if (ip != RuntimeAddress(0)) leaf = Place(*process, ip, sample.time_ns);
  if (sample.kernel) leaf = InKernel(sample.entry.cause, leaf);
  const bool counted = windows_.builder().Count(thread, leaf, sample.period, sample.time_ns);
  if (!first_sample_announced_) {
    first_sample_announced_ = true;
    Announce(NodeProgress::Phase::kSampling);
  }
  if (counted) RecordCallPath(*process, sample);
}

void Session::OnAccess(const perfd::Sample& sample) {
  TrackedProcess* process = ranks_.Find(sample.pid);
  if (process == nullptr) return;
  costs_.RecordSample();
  if (!TellsOfAccess(sample)) return;
  const RawLocation at = sample.kernel ? RawLocation{.kind = RawLocation::Kind::kKernel}
                                       : Place(*process, sample.ip, sample.time_ns);
  SampledAccess access = AccessOf(sample);
  if (!request_.spec.memory.dtlb) access.access.source.tlb = TlbResult::kUnknown;
  windows_.builder().memory().Count(process->info.rank, sample.pid, at, access);
}

void Session::OnLostAccesses(uint64_t accesses) {
  windows_.builder().memory().Lose(accesses);
}

void Session::OnMapping(const MappingEvent& event) {
  if (TrackedProcess* process = ranks_.Find(event.pid); process != nullptr)
    process->space.Add(event);
}

void Session::OnTask(const TaskEvent& event) {
  const int64_t now = tools_.clock->MonotonicNs();
  switch (event.kind) {
    case TaskEvent::Kind::kProcessForked:
      if (experiment_.active() && IsShadow(*tools_.procfs, event.pid)) break;
      RecordStart(ranks_.Find(event.parent_pid), costs_);
      if (ranks_.AddChild(event.parent_pid, event.pid, now) != nullptr)
        children_.push_back(event.pid);
      break;
    case TaskEvent::Kind::kExec:
      if (TrackedProcess* process = ranks_.Find(event.pid); process != nullptr) {
        ranks_.Exec(*process, event.time_ns, now);
        if (process->helper_of != 0 || process->changed_owner)
          break;  // of the latter Refresh tells
        changes_.Replaced(process->info, process->executable, Seconds());
      }
      break;
    case TaskEvent::Kind::kThreadStarted:
      RecordStart(ranks_.Find(event.pid), costs_);
      break;
    case TaskEvent::Kind::kExited:
    case TaskEvent::Kind::kRenamed:
      break;
  }
}

void Session::OnLost(uint64_t records) {
  windows_.accounting().lost += records;
  costs_.RecordUnseen();
}
void Session::OnThrottled() {
  ++windows_.accounting().throttled;
}

void Session::OnMalformed() {
  ++windows_.accounting().seen;
  windows_.accounting().Drop(DropReason::kMalformed);
}

void Session::OnLateThread(int32_t pid, int32_t /*tid*/, uint64_t cpu_ns) {
  if (!ranks_.Contains(pid)) return;
  ++windows_.accounting().late_threads;
  costs_.RecordUnseen();
  windows_.accounting().late_thread_cpu_ns += cpu_ns;
}

}  // namespace perfd::agent
