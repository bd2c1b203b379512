// agent/binary/elf_file.h - one ELF file: segments, sections, build-id, bytes by virtual address. The libelf door.
//
// Shape    Open(fd) maps the file; every span points into the mapping and lives as long as the ElfFile.
// Units    addresses are ELF virtual addresses; offsets and sizes in bytes.
// Errors   kInvalidArgument (not ELF, 32-bit, other machine or byte order, not an executable or shared library).
// Threads  thread-bound. A file that is truncated while mapped kills the process (SIGBUS): use it confined.
// Source   ELF gABI chapters 4 and 5 (elf.h); System V ABI AMD64 supplement 4.1.1.
#ifndef AGENT_BINARY_ELF_FILE_H_
#define AGENT_BINARY_ELF_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/unique_fd.h"
#include "core/model/module.h"

extern "C" {
struct Elf;  // libelf
}

namespace perfd::agent {

struct ElfSection {
  std::string name;
  uint32_t type = 0;  // SHT_*
  uint32_t link = 0;
  ElfAddress address = 0;
  uint64_t size = 0;
  bool executable = false;
  std::span<const std::byte> bytes;  // empty for SHT_NOBITS and compressed sections
};

// Where the separate debug file of a stripped one is to be found.
struct DebugLink {
  std::string name;  // a file name without directories; empty: none
  uint32_t crc = 0;
};

class ElfFile {
 public:
  static absl::StatusOr<std::unique_ptr<ElfFile>> Open(UniqueFd fd);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  FileVersion version() const;
  const std::string& build_id() const { return build_id_; }
  // Of the bytes of the executable segments, in hex: tells builds apart that have no build-id. Reads them all.
  std::string CodeHash() const;
  const std::vector<ModuleSegment>& segments() const { return segments_; }
  const std::vector<ElfSection>& sections() const { return sections_; }
  // nullptr: there is none.
  const ElfSection* FindSection(absl::string_view name) const;
  // The section [address, ...) lies in; nullptr: none.
  const ElfSection* SectionAt(ElfAddress address) const;
  // All of [address, address + size) from one segment, or an empty span.
  std::span<const std::byte> Read(ElfAddress address, uint64_t size) const;
  // From address to the end of its segment.
  std::span<const std::byte> ReadToEnd(ElfAddress address) const;
  const ModuleSegment* SegmentAt(ElfAddress address) const;
  // Virtual address of .eh_frame_hdr from the program headers; 0: none.
  uint64_t eh_frame_header() const { return eh_frame_header_; }
  bool HasDebugInfo() const;
  DebugLink debug_link() const;
  std::span<const std::byte> image() const { return image_; }
  Elf* handle() const { return elf_; }

 private:
  ElfFile(UniqueFd fd, Elf* elf) : fd_(std::move(fd)), elf_(elf) {}
  absl::Status ReadSegments();
  absl::Status ReadSections();
  std::span<const std::byte> FileBytes(FileOffset offset, uint64_t size) const;
  void FindBuildId(std::span<const std::byte> notes, uint64_t alignment);

  UniqueFd fd_;
  Elf* elf_;
  std::span<const std::byte> image_;
  std::string build_id_;
  uint64_t eh_frame_header_ = 0;
  std::vector<ModuleSegment> segments_;
  std::vector<ElfSection> sections_;
};

// By build-id where both have one, else by the checksum of .gnu_debuglink.
bool IsDebugFileOf(const ElfFile& debug, const ElfFile& main);

// Source: GDB manual "Separate Debug Files": the CRC of .gnu_debuglink is CRC-32 (polynomial 0xEDB88320, reflected).
uint32_t DebugLinkCrc(std::span<const std::byte> bytes);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_ELF_FILE_H_
