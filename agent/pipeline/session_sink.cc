// What a session does with each record of the kernel.
#include "agent/pipeline/session.h"

namespace perfd {

RawPlace Session::Place(TrackedProcess& process, uint64_t ip, bool kernel) {
  if (kernel) return {.kind = RawPlace::Kind::kKernel};
  const CodeMapping* mapping = process.space.Find(ip);
  if (mapping == nullptr) {  // its mapping record may still sit in the ring of another thread
    ranks_.ReadMaps(process, tools_.clock->MonotonicNs(), false);
    mapping = process.space.Find(ip);
  }
  if (mapping == nullptr) return {.kind = RawPlace::Kind::kUnmapped};
  const RawModule module{
      .key = {mapping->device_major, mapping->device_minor, mapping->inode, mapping->path},
      .kind = ClassifyModule(mapping->path, process.executable),
      .pid = process.info.pid,
      .uid = process.info.uid,
      .gid = process.gid,
      .map_start = mapping->start,
      .map_end = mapping->end,
  };
  return {.kind = RawPlace::Kind::kModule,
          .module = builder_.Module(module),
          .file_offset = mapping->FileOffset(ip)};
}

void Session::OnSample(const perfd::Sample& sample) {
  Accounting& accounting = builder_.accounting();
  ++accounting.seen;
  TrackedProcess* process = ranks_.Find(sample.pid);
  if (process == nullptr) {
    accounting.Drop(DropReason::kForeignProcess);
    return;
  }
  ++span_samples_;
  const WindowThread thread{process->info.rank, sample.pid, sample.tid};
  const RawPlace leaf = Place(*process, sample.ip, sample.kernel);
  const bool counted = builder_.Count(thread, leaf, sample.period);
  if (!first_sample_announced_) {
    first_sample_announced_ = true;
    Announce(NodeProgress::Phase::kSampling);
  }
  if (counted) TakeCallPath(*process, sample);
}

void Session::OnMapping(const MappingEvent& event) {
  if (TrackedProcess* process = ranks_.Find(event.pid); process != nullptr) process->space.Add(event);
}

void Session::OnTask(const TaskEvent& event) {
  const int64_t now = tools_.clock->MonotonicNs();
  switch (event.kind) {
    case TaskEvent::Kind::kProcessForked:
      if (ranks_.AddChild(event.parent_pid, event.pid, now) != nullptr) children_.push_back(event.pid);
      break;
    case TaskEvent::Kind::kExec:
      if (TrackedProcess* process = ranks_.Find(event.pid); process != nullptr) {
        ranks_.ReadMaps(*process, now, true);
        ++process->image;
        process->executable = tools_.procfs->Executable(event.pid).value_or(process->executable);
        if (process->helper) break;
        AddNotice(Notice::Severity::kInfo, absl::OkStatus(), event.pid);
        notices_.back().text = "the rank replaced its program (exec): " + process->executable;
      }
      break;
    case TaskEvent::Kind::kThreadStarted:
    case TaskEvent::Kind::kExited:
      break;
  }
}

void Session::OnLost(uint64_t records) { builder_.accounting().lost += records; }
void Session::OnThrottled() { ++builder_.accounting().throttled; }

void Session::OnMalformed() {
  ++builder_.accounting().seen;
  builder_.accounting().Drop(DropReason::kMalformed);
}

void Session::OnLateThread(int32_t pid, int32_t /*tid*/, uint64_t cpu_ns) {
  if (!ranks_.Contains(pid)) return;
  ++builder_.accounting().late_threads;
  builder_.accounting().late_thread_cpu_ns += cpu_ns;
}

}  // namespace perfd
