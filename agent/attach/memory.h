// agent/attach/memory.h - reads and writes another process's memory while it runs; stops nothing.
//
// Shape    bound to one address space: after an exec of the process every access is kNotFound, never the new program's memory.
// Errors   Open: kNotFound (gone, or another process under this pid), kPermissionDenied. Read and Write: kNotFound (the
//          address space is gone), kOutOfRange (not mapped); all bytes or an error, but a failed Write may have written a part.
// Threads  thread-safe (const).
// Source   proc(5), /proc/PID/mem: ignores page protection of private mappings.
#ifndef AGENT_ATTACH_MEMORY_H_
#define AGENT_ATTACH_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {

class Memory {
 public:
  // start_ticks: of ProcessStamp.
  static absl::StatusOr<Memory> Open(int32_t pid, uint64_t start_ticks);

  absl::Status Read(uint64_t address, std::span<uint8_t> out) const;
  absl::StatusOr<std::vector<uint8_t>> Read(uint64_t address, size_t size) const;
  absl::Status Write(uint64_t address, std::span<const uint8_t> bytes) const;
  // As many bytes as are mapped from `address` on, at most out.size().
  size_t ReadSome(uint64_t address, std::span<uint8_t> out) const;
  int32_t pid() const { return pid_; }

 private:
  Memory(int32_t pid, UniqueFd file) : pid_(pid), file_(std::move(file)) {}

  int32_t pid_;
  UniqueFd file_;
};

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_MEMORY_H_
