// agent/binary/compressed/debug_image.h - the debug sections of a file whose compression libelf does not know, made readable.
//
// Shape    Make(elf, image) -> an ELF file in memory with the debug sections alone, those by zstd decompressed; or none, where
//          nothing is compressed so, or where it cannot be: then `problem` says why.
// Units    bytes.
// Limits   kMaxDebugImageBytes in all.
// Threads  thread-bound.
// Source   ELF gABI "Section Compression" (Elf64_Chdr; ELFCOMPRESS_ZSTD is 2, which libelf 0.188 does not know); zstd.h.
#ifndef AGENT_BINARY_COMPRESSED_DEBUG_IMAGE_H_
#define AGENT_BINARY_COMPRESSED_DEBUG_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/model/module.h"

extern "C" {
struct Elf;  // libelf
}

namespace perfd::agent {

inline constexpr uint64_t kMaxDebugImageBytes = uint64_t{1} << 30;

class DebugImage {
 public:
  // `image` holds the bytes of the file.
  static std::unique_ptr<DebugImage> Make(Elf* elf, std::span<const std::byte> image,
                                          LinesProblem* problem);
  ~DebugImage();
  DebugImage(const DebugImage&) = delete;
  DebugImage& operator=(const DebugImage&) = delete;

  Elf* handle() const { return elf_; }

 private:
  explicit DebugImage(std::span<std::byte> memory) : memory_(memory) {}

  std::span<std::byte> memory_;  // of mmap: what is not written to takes no room
  Elf* elf_ = nullptr;
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_COMPRESSED_DEBUG_IMAGE_H_
