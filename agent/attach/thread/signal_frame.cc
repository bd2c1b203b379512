#include "agent/attach/thread/signal_frame.h"

#include <cpuid.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "agent/attach/thread/restart_rules.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint32_t kLegacyBytes = 512;     // FXSAVE area: components 0 and 1
constexpr uint32_t kHeaderBytes = 64;      // starts with XSTATE_BV
constexpr uint32_t kSoftwareOffset = 464;  // GETREGSET leaves the task's components here
constexpr uint32_t kSoftwareBytes = 48;
constexpr uint32_t kMagic1 = 0x46505853;  // FP_XSTATE_MAGIC1, FP_XSTATE_MAGIC2
constexpr uint32_t kMagic2 = 0x46505845;
constexpr uint64_t kTileData = uint64_t{1} << 18;
constexpr uint64_t kRedZoneBytes = 128;
constexpr uint64_t kSiginfoBytes = 128;

// asm/ucontext.h flags: extended state follows; ss is saved; restore it as it is.
constexpr uint64_t kContextFlags = 0x1 | 0x2 | 0x4;
// rt_sigreturn sets the alternate stack from the frame; flags that do not exist make only that part fail, and the thread
// keeps the one it has.
constexpr uint32_t kNoAlternateStack = 0x1234;

struct SoftwareBytes {
  uint32_t magic1;
  uint32_t extended_size;
  uint64_t components;
  uint32_t xstate_size;
  uint32_t padding[7];
};
static_assert(sizeof(SoftwareBytes) == kSoftwareBytes);

// The kernel's struct rt_sigframe up to the signal mask, which for it has 8 bytes (glibc's has 128).
struct FrameHead {
  uint64_t return_address;
  uint64_t flags;
  uint64_t link;
  uint64_t stack_pointer;
  uint32_t stack_flags;
  uint32_t padding;
  uint64_t stack_size;
  uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
  uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
  uint16_t cs, gs, fs, ss;
  uint64_t error, trap, old_mask, cr2;
  uint64_t vector_state;
  uint64_t reserved[8];
  uint64_t signal_mask;
};
static_assert(offsetof(FrameHead, r8) == 8 + 40);
static_assert(offsetof(FrameHead, cs) == 8 + 40 + 18 * 8);
static_assert(offsetof(FrameHead, vector_state) == 8 + 40 + 23 * 8);
static_assert(sizeof(FrameHead) == 8 + 304);

uint64_t WordAt(std::span<const uint8_t> bytes, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

uint64_t AlignDown(uint64_t value, uint64_t alignment) {
  return value & ~(alignment - 1);
}

FrameHead MakeHead(const ThreadState& state, uint64_t restorer, uint64_t vector_address) {
  const user_regs_struct r = AsResumed(state.registers);
  FrameHead head{};
  head.return_address = restorer;
  head.flags = kContextFlags;
  head.stack_flags = kNoAlternateStack;
  head.r8 = r.r8, head.r9 = r.r9, head.r10 = r.r10, head.r11 = r.r11;
  head.r12 = r.r12, head.r13 = r.r13, head.r14 = r.r14, head.r15 = r.r15;
  head.rdi = r.rdi, head.rsi = r.rsi, head.rbp = r.rbp, head.rbx = r.rbx;
  head.rdx = r.rdx, head.rax = r.rax, head.rcx = r.rcx;
  head.rsp = r.rsp, head.rip = r.rip, head.eflags = r.eflags;
  head.cs = static_cast<uint16_t>(r.cs);
  head.ss = static_cast<uint16_t>(r.ss);
  head.vector_state = vector_address;
  head.signal_mask = state.signal_mask;
  return head;
}

std::vector<uint8_t> MakeImage(std::span<const uint8_t> vector_state, uint32_t size) {
  std::vector<uint8_t> image(size + sizeof(kMagic2));
  std::copy_n(vector_state.begin(), size, image.begin());
  SoftwareBytes software{};
  software.magic1 = kMagic1;
  software.extended_size = size + static_cast<uint32_t>(sizeof(kMagic2));
  software.components = WordAt(vector_state, kSoftwareOffset) & ~kTileData;
  software.xstate_size = size;
  const auto* const raw = reinterpret_cast<const uint8_t*>(&software);
  std::copy_n(raw, sizeof(software), image.begin() + kSoftwareOffset);
  std::memcpy(image.data() + size, &kMagic2, sizeof(kMagic2));
  return image;
}

}  // namespace

XsaveLayout XsaveLayout::OfThisCpu() {
  constexpr uint32_t kLeaf = 0xD;
  XsaveLayout layout;
  for (uint32_t i = 2; i < layout.components.size() - 1; ++i) {
    uint32_t size = 0, offset = 0, flags = 0, unused = 0;
    if (__get_cpuid_count(kLeaf, i, &size, &offset, &flags, &unused) == 0) break;
    const bool supervisor = (flags & 1) != 0;
    if (size != 0 && !supervisor) layout.components[i] = {offset, size};
  }
  return layout;
}

uint32_t XsaveLayout::Size(uint64_t components_mask) const {
  uint32_t end = kLegacyBytes + kHeaderBytes;
  for (size_t i = 2; i < components.size(); ++i)
    if ((components_mask >> i & 1) != 0)
      end = std::max(end, components[i].offset + components[i].size);
  return end;
}

absl::StatusOr<uint32_t> XsaveBytes(std::span<const uint8_t> vector_state,
                                    const XsaveLayout& layout) {
  if (vector_state.size() < kLegacyBytes + kHeaderBytes)
    return absl::FailedPreconditionError("the kernel gives no XSAVE image");
  const uint64_t components = WordAt(vector_state, kSoftwareOffset);
  const uint64_t in_use = WordAt(vector_state, kLegacyBytes);
  if ((in_use & kTileData) != 0)
    return absl::FailedPreconditionError("a thread has live AMX tiles");
  // All the components a task may have without asking; sigreturn drops everything beyond SSE from an image of more bytes than
  // the task is permitted.
  const uint32_t size = layout.Size(components & ~kTileData);
  if ((components & 3) != 3 || (in_use & ~components) != 0 || size > vector_state.size())
    return absl::FailedPreconditionError(
        absl::StrCat("XSAVE image of an unknown shape: components ", absl::Hex(components)));
  return size;
}

absl::StatusOr<SignalFrame> MakeSignalFrame(const ThreadState& state, uint64_t restorer,
                                            const XsaveLayout& layout) {
  constexpr uint64_t kImageAlignment = 64;  // XRSTOR
  constexpr uint64_t kFrameAlignment = 16;
  ASSIGN_OR_RETURN(const uint32_t size, XsaveBytes(state.vector_state, layout));
  const std::vector<uint8_t> image = MakeImage(state.vector_state, size);
  const uint64_t top = state.registers.rsp - kRedZoneBytes;
  const uint64_t image_address = AlignDown(top - image.size(), kImageAlignment);
  const uint64_t below = image_address - sizeof(FrameHead) - kSiginfoBytes;
  SignalFrame frame;
  frame.start = AlignDown(below, kFrameAlignment) - sizeof(uint64_t);
  const FrameHead head = MakeHead(state, restorer, image_address);
  frame.bytes.resize(image_address - frame.start + image.size());
  std::memcpy(frame.bytes.data(), &head, sizeof(head));
  std::copy(image.begin(), image.end(),
            frame.bytes.begin() + static_cast<ptrdiff_t>(image_address - frame.start));
  return frame;
}

}  // namespace perfd::agent
