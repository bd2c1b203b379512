// core/model/stack.h - what a sample holds of its thread's stack, and the call path that is found in it.
//
// Shape    StackCopy (as the kernel wrote it) -> unwinder -> CallPath.
// Units    run-time addresses of the sampled process; offsets and sizes in bytes.
// Source   perf_event_open(2) PERF_SAMPLE_REGS_USER, PERF_SAMPLE_STACK_USER.
#ifndef CORE_MODEL_STACK_H_
#define CORE_MODEL_STACK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/address.h"

namespace perfd {

inline constexpr size_t kStackRegisters = 17;
inline constexpr size_t kStackPointerIndex = 7;
inline constexpr size_t kInstructionPointerIndex = 8;
inline constexpr size_t kMaxStackCopyBytes = size_t{64} << 10;  // one perf record is smaller
inline constexpr size_t kMaxCallPathFrames = 512;

// A mapping of a file that lies against anonymous code in the place of the file's own.
struct FileNeighbour {
  RuntimeAddress start = 0;
  RuntimeAddress end = 0;  // exclusive
  FileOffset file_offset = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  std::string path;

  bool operator==(const FileNeighbour&) const = default;
};

// Executable part of an address space, as a line of /proc/PID/maps shows it.
struct CodeMapping {
  RuntimeAddress start = 0;
  RuntimeAddress end = 0;  // exclusive
  FileOffset file_offset = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  std::string path;                                    // "[vdso]" and the like; empty: anonymous
  std::optional<FileNeighbour> beside = std::nullopt;  // of moved code; never leaves the agent

  FileOffset OffsetOf(RuntimeAddress address) const { return file_offset + (address - start); }
  bool operator==(const CodeMapping&) const = default;
};

struct StackCopy {
  std::array<uint64_t, kStackRegisters> registers{};  // AX BX CX DX SI DI BP SP IP R8 ... R15
  std::vector<std::byte> bytes;                       // memory from SP upwards

  bool operator==(const StackCopy&) const = default;
};

struct CallPath {
  // Innermost first. The first is the instruction itself, the others lie inside the call that has not yet returned.
  std::vector<RuntimeAddress> addresses;
  bool complete = false;  // ends at the outermost frame
  RuntimeAddress unknown_address =
      0;  // the path ended here: in none of the mappings known; 0: it did not

  bool operator==(const CallPath&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_STACK_H_
