#include "agent/binary/compressed/debug_image.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "core/zstd/zstd.h"

namespace perfd::agent {
namespace {

constexpr uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD
constexpr uint64_t kAlignment = 16;

// A section as it is, and as it will be.
struct Section {
  Elf64_Shdr header{};
  std::span<const std::byte> bytes;  // empty: left out
  bool zstd = false;
};

std::span<const std::byte> Bytes(std::span<const std::byte> image, const Elf64_Shdr& header) {
  if (header.sh_type == SHT_NOBITS || header.sh_offset > image.size() ||
      header.sh_size > image.size() - header.sh_offset)
    return {};
  return image.subspan(header.sh_offset, header.sh_size);
}

// Takes the header of compressed bytes off; false: it is of a compression that is not known.
bool TakeCompressionHeader(Section& section) {
  Elf64_Chdr header{};
  if (section.bytes.size() < sizeof header) return true;  // libdw will not find it
  std::memcpy(&header, section.bytes.data(), sizeof header);
  if (header.ch_type == ELFCOMPRESS_ZLIB) return true;  // left to libelf
  if (header.ch_type != kZstd) return false;
  section.zstd = true;
  section.bytes = section.bytes.subspan(sizeof header);
  section.header.sh_size = header.ch_size;
  section.header.sh_addralign = 1;
  section.header.sh_flags &= ~Elf64_Xword{SHF_COMPRESSED};
  return true;
}

struct Sections {
  std::vector<Section> all;
  size_t names = 0;  // index of the section with the names
  bool zstd = false;
  bool unknown = false;
};

Sections Read(Elf* elf, std::span<const std::byte> image) {
  Sections out;
  size_t count = 0;
  if (elf_getshdrnum(elf, &count) != 0 || elf_getshdrstrndx(elf, &out.names) != 0 ||
      count >= SHN_LORESERVE)
    return out;
  for (size_t i = 0; i < count; ++i) {
    Section section;
    if (gelf_getshdr(elf_getscn(elf, i), &section.header) == nullptr) return {};
    const char* name = elf_strptr(elf, out.names, section.header.sh_name);
    const bool debug = name != nullptr &&
                       (absl::StartsWith(name, ".debug_") || absl::StartsWith(name, ".zdebug_"));
    if (debug || i == out.names) section.bytes = Bytes(image, section.header);
    if (debug && (section.header.sh_flags & SHF_COMPRESSED) != 0 && !TakeCompressionHeader(section))
      out.unknown = true;
    out.zstd = out.zstd || section.zstd;
    out.all.push_back(section);
  }
  return out;
}

// Gives every section its offset behind the headers; 0: together they are too large.
uint64_t Arrange(std::vector<Section>& sections) {
  uint64_t end = sizeof(Elf64_Ehdr) + sections.size() * sizeof(Elf64_Shdr);
  for (Section& section : sections) {
    if (section.bytes.empty()) {
      if (section.header.sh_type != SHT_NULL) section.header.sh_type = SHT_NOBITS;
      section.header.sh_size = 0;
    }
    section.header.sh_offset = end = (end + kAlignment - 1) / kAlignment * kAlignment;
    if (section.header.sh_size > kMaxDebugImageBytes - std::min(end, kMaxDebugImageBytes)) return 0;
    end += section.header.sh_size;
  }
  return end;
}

// False: a section is not as large as it says.
bool Fill(const Section& section, std::byte* to) {
  const uint64_t size = section.header.sh_size;
  if (section.zstd)
    return DecompressBlock(section.bytes, {to, size});
  std::copy(section.bytes.begin(), section.bytes.end(), to);
  return true;
}

bool Write(const Sections& sections, std::span<const std::byte> image, std::span<std::byte> to) {
  Elf64_Ehdr file{};
  std::memcpy(&file, image.data(), sizeof file);
  file.e_phoff = file.e_phnum = 0;
  file.e_shoff = sizeof file;
  file.e_shentsize = sizeof(Elf64_Shdr);
  file.e_shnum = static_cast<Elf64_Half>(sections.all.size());
  file.e_shstrndx = static_cast<Elf64_Half>(sections.names);
  std::memcpy(to.data(), &file, sizeof file);
  std::byte* header = to.data() + sizeof file;
  for (const Section& section : sections.all) {
    std::memcpy(header, &section.header, sizeof section.header);
    header += sizeof section.header;
    if (!Fill(section, to.data() + section.header.sh_offset)) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<DebugImage> DebugImage::Make(Elf* elf, std::span<const std::byte> image,
                                             LinesProblem* problem) {
  Sections sections = Read(elf, image);
  if (sections.unknown) *problem = LinesProblem::kCompression;
  if (sections.unknown || !sections.zstd) return nullptr;
  *problem = LinesProblem::kTooLarge;
  const uint64_t size = Arrange(sections.all);
  if (size == 0) return nullptr;
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::unique_ptr<DebugImage> out(new DebugImage({static_cast<std::byte*>(memory), size}));
  *problem = LinesProblem::kDamaged;
  if (!Write(sections, image, out->memory_)) return nullptr;
  out->elf_ = elf_memory(reinterpret_cast<char*>(memory), size);
  if (out->elf_ == nullptr) return nullptr;
  *problem = LinesProblem::kNone;
  return out;
}

DebugImage::~DebugImage() {
  elf_end(elf_);
  ::munmap(memory_.data(), memory_.size());
}

}  // namespace perfd::agent
