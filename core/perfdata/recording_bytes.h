// core/perfdata/recording_bytes.h - where the bytes of a recording come from: a file, a pipe, or memory.
//
// Errors   a named pipe that brings nothing in kPipeWaitMs: kDeadlineExceeded (once it has begun it is waited for until it ends); ReadAt of a pipe: kFailedPrecondition.
// Threads  thread-bound.
#ifndef CORE_PERFDATA_RECORDING_BYTES_H_
#define CORE_PERFDATA_RECORDING_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace perfd {

class RecordingBytes {
 public:
  virtual ~RecordingBytes() = default;
  // The next ones; fewer than asked only at the end.
  virtual absl::StatusOr<size_t> Read(std::span<std::byte> to) = 0;
  // The same from `offset` on; Read goes on where it was.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> to) = 0;
  // Where Read goes on from.
  virtual absl::Status SeekTo(uint64_t offset) = 0;
};

inline constexpr int kPipeWaitMs = 30'000;

// "-" is standard input. A regular file, a pipe or a FIFO; kInvalidArgument of anything else, with what it is.
absl::StatusOr<std::unique_ptr<RecordingBytes>> OpenRecordingBytes(const std::string& path);

// `bytes` outlive it.
std::unique_ptr<RecordingBytes> BytesInMemory(std::span<const std::byte> bytes);

}  // namespace perfd

#endif  // CORE_PERFDATA_RECORDING_BYTES_H_
