// core/perfdata/records/sample.h - what records of perf say, of a running system or of a recording.
//
// Units    times in ns: of CLOCK_MONOTONIC where the kernel was asked, of the recording's clock otherwise. Periods in what the
//          event counts.
#ifndef CORE_PERFDATA_RECORDS_SAMPLE_H_
#define CORE_PERFDATA_RECORDS_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/address.h"
#include "core/model/code.h"
#include "core/model/memory/memory_access.h"
#include "core/model/memory/memory_profile.h"

namespace perfd {

// Of a sample of the kernel: how its thread came in.
struct KernelEntry {
  RuntimeAddress user_ip = 0;                 // where from; 0: not recorded
  KernelCause cause = KernelCause::kUnknown;  // for who knows the kernel's symbols to say
  std::span<const uint64_t> chain;            // as Sample::callchain, of the kernel
};

struct UserState {
  // AX BX CX DX SI DI BP SP IP R8 ... R15; empty: not all of them were recorded.
  std::span<const uint64_t> registers;
  std::span<const std::byte> stack;
};

struct Sample {
  RuntimeAddress ip = 0;
  int32_t pid = 0;
  int32_t tid = 0;
  uint64_t time_ns = 0;
  uint32_t cpu = 0;
  // What it stands for, in the mean: more than the event's own where that rests.
  uint64_t period = 0;
  bool kernel = false;
  bool precise = false;  // the processor says that `ip` is the instruction itself, not one after it
  KernelEntry entry{};
  std::span<const uint64_t> callchain;  // innermost first, user frames only; empty: not recorded
  UserState user{};
  std::optional<MemoryAccess> access;  // the event's samples tell of one
};

// Something is known of an access to memory.
inline bool TellsOfAccess(const Sample& sample) {
  const MemoryAccess access = sample.access.value_or(MemoryAccess{});
  return access.address != RuntimeAddress(0) || access.latency_cycles != 0 ||
         access.source != MemorySource{};
}
// Of a sample that tells of one.
inline SampledAccess AccessOf(const Sample& sample) {
  return {sample.tid, sample.time_ns, sample.period, sample.kernel, *sample.access};
}

// A file or anonymous memory was mapped into a process.
struct MappingEvent {
  int32_t pid = 0;  // -1: into the kernel
  uint64_t time_ns = 0;
  RuntimeAddress start = 0;
  uint64_t length = 0;
  FileOffset file_offset = 0;
  uint64_t inode = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  bool executable = true;
  bool shared = false;
  // Raw bytes, when the kernel gave it instead of inode and device; else empty.
  std::string build_id;
  std::string path;
};

struct TaskEvent {
  enum class Kind { kThreadStarted, kProcessForked, kExited, kExec, kRenamed };
  Kind kind = Kind::kThreadStarted;
  int32_t pid = 0;
  int32_t tid = 0;
  int32_t parent_pid = 0;  // of kThreadStarted and kProcessForked
  uint64_t time_ns = 0;
  std::string name{};  // of kExec and kRenamed
};

}  // namespace perfd

#endif  // CORE_PERFDATA_RECORDS_SAMPLE_H_
