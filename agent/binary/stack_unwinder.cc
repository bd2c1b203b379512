#include "agent/binary/stack_unwinder.h"

#include <elf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

constexpr pid_t kThread = 1;  // libdwfl wants a name for the one thread whose state it is shown
constexpr char kVdso[] = "[vdso]";

// Index into StackCopy::registers of each DWARF register 0..16.
// Source: System V ABI AMD64 supplement, figure 3.36; arch/x86/include/uapi/asm/perf_regs.h without the segments.
constexpr std::array<size_t, kStackRegisters> kDwarfRegisters = {
    0, 3, 2, 1, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, kInstructionPointerIndex};

struct EndElf {
  void operator()(Elf* elf) const { ::elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, EndElf>;

struct EndDwfl {
  void operator()(Dwfl* dwfl) const { ::dwfl_end(dwfl); }
};

// What has to be added to the file's virtual addresses; nothing when the mapping shows none of its segments.
std::optional<uint64_t> BiasOf(int file, const CodeMapping& mapping) {
  const ElfHandle elf(::elf_begin(file, ELF_C_READ_MMAP, nullptr));
  size_t count = 0;
  if (elf == nullptr || ::elf_kind(elf.get()) != ELF_K_ELF ||
      ::elf_getphdrnum(elf.get(), &count) != 0)
    return std::nullopt;
  constexpr uint64_t kPage = 4096;
  for (size_t i = 0; i < count && i < 4096; ++i) {
    GElf_Phdr segment;
    if (::gelf_getphdr(elf.get(), static_cast<int>(i), &segment) == nullptr) break;
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    // The loader rounds the segment's bounds to pages.
    const uint64_t low = segment.p_offset & ~(kPage - 1);
    if (segment.p_filesz > UINT64_MAX - segment.p_offset || mapping.file_offset < low ||
        mapping.file_offset >= segment.p_offset + segment.p_filesz)
      continue;
    const ElfAddress there =
        ElfAddress(segment.p_vaddr) + (mapping.file_offset - FileOffset(segment.p_offset));
    return mapping.start.value() - there.value();
  }
  return std::nullopt;
}

// The kernel maps the same image into every 64-bit process.
// Source: vdso(7); the section headers are the end of the image (arch/x86/entry/vdso/vdso.lds.S).
std::string OwnVdso() {
  const uint64_t address = ::getauxval(AT_SYSINFO_EHDR);
  if (address == 0) return {};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel tells it as a number
  const char* image = reinterpret_cast<const char*>(address);
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return {image, header.e_shoff + size_t{header.e_shnum} * header.e_shentsize};
}

// Only the vdso is asked for: every other module was reported with its file.
int FindElf(Dwfl_Module* module, void**, const char* name, Dwarf_Addr, char**, Elf** elf) {
  void** user = nullptr;
  ::dwfl_module_info(module, &user, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  if (user == nullptr || *user == nullptr || std::strcmp(name, kVdso) != 0) return -1;
  auto* image = static_cast<std::string*>(*user);
  *elf = ::elf_memory(image->data(), image->size());
  return -1;
}

// Nothing is looked for on disk: the process is confined, and .eh_frame is in the file itself.
// NOLINTNEXTLINE(readability-function-size): the parameters are libdwfl's
int FindNoDebugInfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                    GElf_Word, char**) {
  return -1;
}

constexpr Dwfl_Callbacks kFiles = {
    .find_elf = FindElf,
    .find_debuginfo = FindNoDebugInfo,
    .section_address = ::dwfl_offline_section_address,
    .debuginfo_path = nullptr,
};

}  // namespace

class StackUnwinder::Session {
 public:
  Session() : dwfl_(::dwfl_begin(&kFiles)) {}

  // False: libdwfl cannot work with what it was given.
  bool Report(std::vector<UnwindModule> modules) {
    if (dwfl_ == nullptr) return false;
    ::dwfl_report_begin(dwfl_.get());
    for (UnwindModule& module : modules) Add(std::move(module));
    return ::dwfl_report_end(dwfl_.get(), nullptr, nullptr) == 0 && modules_ > 0 &&
           ::dwfl_attach_state(dwfl_.get(), nullptr, kThread, &kCallbacks, this);
  }

  CallPath Unwind(const StackCopy& copy) {
    path_ = {};
    copy_ = &copy;
    const int end = ::dwfl_getthread_frames(dwfl_.get(), kThread, OnFrame, this);
    // libdwfl also says "no more frames" when it could not read the return address.
    path_.complete = end == 0 && !unread_ && path_.unknown_address == 0 && !path_.addresses.empty();
    copy_ = nullptr;
    return std::move(path_);
  }

  size_t modules() const { return modules_; }

 private:
  void Add(UnwindModule module) {
    const CodeMapping& mapping = module.mapping;
    if (mapping.path == kVdso) return AddVdso(mapping);
    if (!module.file.valid()) return;
    const auto bias = BiasOf(module.file.get(), mapping);
    if (!bias.has_value()) return;
    // The name keeps two copies of a file apart.
    const std::string name = absl::StrCat(mapping.path, "@", absl::Hex(*bias));
    if (::dwfl_report_elf(dwfl_.get(), name.c_str(), name.c_str(), module.file.get(), *bias,
                          true) == nullptr)
      return;
    module.file.Release();  // libdwfl's from here on
    ++modules_;
  }

  void AddVdso(const CodeMapping& mapping) {
    if (vdso_.empty()) vdso_ = OwnVdso();
    if (vdso_.empty()) return;
    Dwfl_Module* module =
        ::dwfl_report_module(dwfl_.get(), kVdso, mapping.start.value(), mapping.end.value());
    void** user = nullptr;
    if (module == nullptr) return;
    ::dwfl_module_info(module, &user, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
    if (user != nullptr) *user = &vdso_;
  }

  static bool GetThread(Dwfl*, pid_t tid, void* self, void** thread) {
    *thread = self;
    return tid == kThread;
  }

  static pid_t NextThread(Dwfl*, void* self, void** thread) {
    if (*thread != nullptr) return 0;
    *thread = self;
    return kThread;
  }

  static bool ReadMemory(Dwfl*, Dwarf_Addr address, Dwarf_Word* out, void* self) {
    auto* session = static_cast<Session*>(self);
    const StackCopy& copy = *session->copy_;
    const uint64_t offset = address - copy.registers[kStackPointerIndex];
    if (copy.bytes.size() < sizeof *out || offset > copy.bytes.size() - sizeof *out) {
      session->unread_ = true;
      return false;
    }
    std::memcpy(out, copy.bytes.data() + offset, sizeof *out);
    return true;
  }

  static bool SetRegisters(Dwfl_Thread* thread, void* self) {
    const StackCopy& copy = *static_cast<Session*>(self)->copy_;
    std::array<Dwarf_Word, kStackRegisters> registers;
    for (size_t i = 0; i < registers.size(); ++i) registers[i] = copy.registers[kDwarfRegisters[i]];
    return ::dwfl_thread_state_registers(thread, 0, kStackRegisters, registers.data());
  }

  static int OnFrame(Dwfl_Frame* frame, void* self) {
    auto* session = static_cast<Session*>(self);
    CallPath& path = session->path_;
    Dwarf_Addr address = 0;
    bool at_instruction = false;
    session->unread_ = false;  // what is read from here on belongs to the next frame
    if (path.addresses.size() >= kMaxCallPathFrames ||
        !::dwfl_frame_pc(frame, &address, &at_instruction))
      return DWARF_CB_ABORT;
    // A return address may already belong to the next function: the call is before it.
    if (!at_instruction) --address;
    const bool known = ::dwfl_addrmodule(session->dwfl_.get(), address) != nullptr;
    if (known || path.addresses.empty()) path.addresses.push_back(address);
    if (known) return DWARF_CB_OK;
    path.unknown_address = address;  // beyond it there is only guessing
    return DWARF_CB_ABORT;
  }

  static constexpr Dwfl_Thread_Callbacks kCallbacks = {
      .next_thread = NextThread,
      .get_thread = GetThread,
      .memory_read = ReadMemory,
      .set_initial_registers = SetRegisters,
      .detach = nullptr,
      .thread_detach = nullptr,
  };

  std::string vdso_;
  std::unique_ptr<Dwfl, EndDwfl> dwfl_;  // uses vdso_
  size_t modules_ = 0;
  const StackCopy* copy_ = nullptr;
  bool unread_ = false;  // memory beyond the copy was wanted for the next frame
  CallPath path_;
};

StackUnwinder::StackUnwinder(std::unique_ptr<Session> session) : session_(std::move(session)) {}
StackUnwinder::~StackUnwinder() = default;

absl::StatusOr<std::unique_ptr<StackUnwinder>> StackUnwinder::Create(
    std::vector<UnwindModule> modules) {
  ::elf_version(EV_CURRENT);
  auto session = std::make_unique<Session>();
  if (!session->Report(std::move(modules)))
    return absl::NotFoundError("no mapped file of the process can be unwound");
  return std::unique_ptr<StackUnwinder>(new StackUnwinder(std::move(session)));
}

CallPath StackUnwinder::Unwind(const StackCopy& copy) {
  return session_->Unwind(copy);
}

size_t StackUnwinder::modules() const {
  return session_->modules();
}

}  // namespace perfd::agent
