#include "agent/binary/elf_file.h"

#include <elf.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/byte_reader.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxSegments = 4096;
constexpr size_t kMaxSections = 100'000;
constexpr size_t kMaxBuildIdBytes = 64;

absl::Status CheckIdent(const Elf64_Ehdr& header, size_t size) {
  const auto* ident = header.e_ident;
  if (size >= 2 && ident[0] == '#' && ident[1] == '!')
    return absl::InvalidArgumentError("a script, not an ELF file: profile its interpreter");
  if (size < EI_NIDENT || std::memcmp(ident, ELFMAG, SELFMAG) != 0)
    return absl::InvalidArgumentError("not an ELF file");
  if (ident[EI_CLASS] == ELFCLASS32)
    return absl::InvalidArgumentError("32-bit ELF file: only 64-bit x86-64 code is supported");
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
    return absl::InvalidArgumentError("not a 64-bit little-endian ELF file");
  if (size < sizeof header) return absl::InvalidArgumentError("truncated ELF header");
  if (header.e_machine != EM_X86_64)
    return absl::InvalidArgumentError(
        absl::StrCat("ELF file for machine ", header.e_machine, ": only x86-64 (62) is supported"));
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
    return absl::InvalidArgumentError(
        absl::StrCat("ELF type ", header.e_type, ": neither an executable nor a shared library"));
  return absl::OkStatus();
}

absl::Status CheckHeader(int fd) {
  Elf64_Ehdr header{};
  const ssize_t got = ::pread(fd, &header, sizeof header, 0);
  if (got < 0)
    return absl::InvalidArgumentError(absl::StrCat("cannot read ELF file: ", strerror(errno)));
  return CheckIdent(header, static_cast<size_t>(got));
}

absl::Status LibelfError(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", elf_errmsg(-1)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ElfFile>> ElfFile::Open(UniqueFd fd) {
  RETURN_IF_ERROR(CheckHeader(fd.get()));
  if (elf_version(EV_CURRENT) == EV_NONE) return LibelfError("libelf version");
  Elf* elf = elf_begin(fd.get(), ELF_C_READ_MMAP, nullptr);
  if (elf == nullptr) return LibelfError("damaged ELF file");
  std::unique_ptr<ElfFile> file(new ElfFile(std::move(fd), elf));
  size_t size = 0;
  const char* image = elf_rawfile(elf, &size);
  if (elf_kind(elf) != ELF_K_ELF || image == nullptr) return LibelfError("damaged ELF file");
  file->image_ = std::as_bytes(std::span(image, size));
  RETURN_IF_ERROR(file->ReadSegments());
  RETURN_IF_ERROR(file->ReadSections());
  return file;
}

ElfFile::~ElfFile() {
  elf_end(elf_);
}

FileVersion ElfFile::version() const {
  struct stat facts {};
  if (::fstat(fd_.get(), &facts) != 0) return {};
  return {facts.st_dev, facts.st_ino, static_cast<uint64_t>(facts.st_size),
          facts.st_mtim.tv_sec * kNsPerSecond + facts.st_mtim.tv_nsec};
}

// FNV-1a, 64 bits.
std::string ElfFile::CodeHash() const {
  uint64_t hash = 0xcbf29ce484222325;
  for (const ModuleSegment& segment : segments_) {
    if (!segment.executable) continue;
    for (const std::byte byte : FileBytes(segment.file_offset, segment.file_size))
      hash = (hash ^ std::to_integer<uint64_t>(byte)) * 0x100000001b3;
  }
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

std::span<const std::byte> ElfFile::FileBytes(FileOffset offset, uint64_t size) const {
  if (offset > image_.size() || size > image_.size() - offset) return {};
  return image_.subspan(offset.value(), size);
}

absl::Status ElfFile::ReadSegments() {
  size_t count = 0;
  if (elf_getphdrnum(elf_, &count) != 0) return LibelfError("damaged program headers");
  if (count > kMaxSegments) return absl::InvalidArgumentError("too many program headers");
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf_, static_cast<int>(i), &header) == nullptr)
      return LibelfError("damaged program headers");
    if (header.p_type == PT_GNU_EH_FRAME) eh_frame_header_ = header.p_vaddr;
    if (header.p_type == PT_NOTE)
      FindBuildId(FileBytes(header.p_offset, header.p_filesz), header.p_align);
    if (header.p_type != PT_LOAD) continue;
    segments_.push_back(
        {header.p_offset, header.p_vaddr, header.p_filesz, (header.p_flags & PF_X) != 0});
  }
  return absl::OkStatus();
}

// Section headers are not needed to run and may be missing or damaged on purpose: what cannot be read is left out.
absl::Status ElfFile::ReadSections() {
  size_t count = 0;
  size_t names = 0;
  if (elf_getshdrnum(elf_, &count) != 0 || elf_getshdrstrndx(elf_, &names) != 0)
    return absl::OkStatus();
  if (count > kMaxSections) return absl::InvalidArgumentError("too many section headers");
  for (size_t i = 0; i < count; ++i) {
    GElf_Shdr header;
    ElfSection section;
    if (gelf_getshdr(elf_getscn(elf_, i), &header) != nullptr) {
      const char* name = elf_strptr(elf_, names, header.sh_name);
      section.name = name == nullptr ? "" : name;
      section.type = header.sh_type;
      section.link = header.sh_link;
      section.address = header.sh_addr;
      section.size = header.sh_size;
      section.executable = (header.sh_flags & SHF_EXECINSTR) != 0;
      if (header.sh_type != SHT_NOBITS && (header.sh_flags & SHF_COMPRESSED) == 0)
        section.bytes = FileBytes(header.sh_offset, header.sh_size);
    }
    if (section.name == ".note.gnu.build-id") FindBuildId(section.bytes, 4);
    sections_.push_back(std::move(section));
  }
  return absl::OkStatus();
}

// Source: ELF gABI "Note Section"; fields are 4-byte words, name and descriptor padded to the alignment.
void ElfFile::FindBuildId(std::span<const std::byte> notes, uint64_t alignment) {
  const size_t pad = alignment == 8 ? 8 : 4;
  ByteReader reader(notes);
  while (reader.ok() && reader.remaining() >= sizeof(Elf64_Nhdr)) {
    const auto header = reader.Read<Elf64_Nhdr>();
    const auto name = reader.ReadSpan(header.n_namesz);
    reader.Skip(std::min((pad - reader.offset() % pad) % pad, reader.remaining()));
    const auto id = reader.ReadSpan(header.n_descsz);
    reader.Skip(std::min((pad - reader.offset() % pad) % pad, reader.remaining()));
    if (!reader.ok() || header.n_type != NT_GNU_BUILD_ID) continue;
    if (name.size() != sizeof ELF_NOTE_GNU ||
        std::memcmp(name.data(), ELF_NOTE_GNU, name.size()) != 0)
      continue;
    if (id.empty() || id.size() > kMaxBuildIdBytes) continue;
    build_id_ = absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(id.data()), id.size()));
  }
}

const ElfSection* ElfFile::FindSection(absl::string_view name) const {
  for (const ElfSection& section : sections_)
    if (section.name == name) return &section;
  return nullptr;
}

const ElfSection* ElfFile::SectionAt(ElfAddress address) const {
  for (const ElfSection& section : sections_) {
    if (section.address != 0 && address >= section.address &&
        address - section.address < section.size)
      return &section;
  }
  return nullptr;
}

const ModuleSegment* ElfFile::SegmentAt(ElfAddress address) const {
  for (const ModuleSegment& segment : segments_) {
    if (address >= segment.virtual_address && address - segment.virtual_address < segment.file_size)
      return &segment;
  }
  return nullptr;
}

std::span<const std::byte> ElfFile::ReadToEnd(ElfAddress address) const {
  const ModuleSegment* segment = SegmentAt(address);
  if (segment == nullptr) return {};
  const uint64_t skip = address - segment->virtual_address;
  const auto bytes = FileBytes(segment->file_offset, segment->file_size);
  return bytes.size() <= skip ? bytes.first(0) : bytes.subspan(skip);
}

std::span<const std::byte> ElfFile::Read(ElfAddress address, uint64_t size) const {
  const auto bytes = ReadToEnd(address);
  return bytes.size() < size ? bytes.first(0) : bytes.first(size);
}

bool ElfFile::HasDebugInfo() const {
  return FindSection(".debug_info") != nullptr || FindSection(".zdebug_info") != nullptr;
}

// Source: GDB manual "Separate Debug Files": a zero-terminated name, padding to 4 bytes, the CRC at the end.
DebugLink ElfFile::debug_link() const {
  const ElfSection* section = FindSection(".gnu_debuglink");
  if (section == nullptr || section->bytes.size() < 8) return {};
  const auto bytes = section->bytes;
  const char* text = reinterpret_cast<const char*>(bytes.data());
  DebugLink link{std::string(text, strnlen(text, bytes.size() - 4)), 0};
  if (link.name.find('/') != std::string::npos || link.name == "..") return {};
  std::memcpy(&link.crc, bytes.data() + bytes.size() - 4, sizeof link.crc);
  return link;
}

bool IsDebugFileOf(const ElfFile& debug, const ElfFile& main) {
  if (!main.build_id().empty() && !debug.build_id().empty())
    return main.build_id() == debug.build_id();
  const DebugLink link = main.debug_link();
  return !link.name.empty() && link.crc == DebugLinkCrc(debug.image());
}

uint32_t DebugLinkCrc(std::span<const std::byte> bytes) {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit)
      table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? 0xEDB88320U : 0U);
  }
  uint32_t crc = 0xFFFFFFFFU;
  for (const std::byte b : bytes)
    crc = table[(crc ^ std::to_integer<uint32_t>(b)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

}  // namespace perfd::agent
