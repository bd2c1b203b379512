// core/zstd/zstd.h - the one door to zstd: a block whose size is known, and a stream that comes in pieces.
//
// Errors   damaged input is kDataLoss (a stream) or false (a block); more than allowed is kResourceExhausted.
// Threads  thread-compatible.
// Source   zstd.h, "Streaming decompression".
#ifndef CORE_ZSTD_ZSTD_H_
#define CORE_ZSTD_ZSTD_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace perfd {

// Exactly `to` in size.
bool DecompressBlock(std::span<const std::byte> from, std::span<std::byte> to);

class DecompressStream {
 public:
  DecompressStream();
  ~DecompressStream();
  DecompressStream(DecompressStream&&) noexcept;
  DecompressStream& operator=(DecompressStream&&) noexcept;

  // Appends what the next piece gives, at most `limit` bytes. After an error the stream is of no use.
  absl::Status Append(std::span<const std::byte> piece, size_t limit, std::vector<std::byte>* out);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace perfd

#endif  // CORE_ZSTD_ZSTD_H_
