// What a shadow may ask of the kernel: everything from the payload's own place, little from anywhere else. Loaded once all that
// the shadow opens, protects and maps is done, and before its threads are made: they inherit it.
// What others may do is private to the shadow, whatever its arguments are (docs/adr/0036-a-filter-in-shadows.md): no descriptor,
// which it shares with the rank; no signal; no memory of a file or of others; no word that another process may wait on. The rest
// comes back as SIGSYS (signals.cc), which ends the shadow and tells the call and its place.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

// Source: uapi/linux/filter.h, bpf_common.h (struct sock_filter, struct sock_fprog), seccomp.h.
struct FilterLine {
  uint16_t code;
  uint8_t yes, no;  // lines to skip
  uint32_t value;
};
struct FilterProgram {
  uint16_t lines;
  uint64_t address;
};
enum : uint16_t { kLoadWord = 0x20, kAnd = 0x54, kIfEqual = 0x15, kReturn = 0x06 };
enum : uint32_t { kAllow = 0x7fff0000, kTrap = 0x00030000, kKillProcess = 0x80000000 };
// Of struct seccomp_data; words of 64 bits have their low half first.
enum : uint32_t { kNumberAt = 0, kArchitectureAt = 4, kPlaceAt = 8, kArgumentsAt = 16 };
inline constexpr uint32_t kX86_64 = 0xc000003e;  // uapi/linux/audit.h

// The kernel answers these without running the program, as nothing but number and architecture is looked at before them.
inline constexpr int64_t kPlainCalls[] = {
    kSysSchedYield,   kSysGetpid, kSysGettid, kSysClockGettime,
    kSysGetTimeOfDay, kSysTime,   kSysGetcpu, kSysGetrusage,
    kSysGetAffinity,  kSysBrk,    kSysMunmap, kSysSigreturn,
};

struct Filter {
  FilterLine lines[96]{};
  uint16_t count = 0;
  uint16_t place_high = 0, place_low = 0;  // lines that hold the place of the payload's calls

  constexpr void Add(uint16_t code, uint32_t value, uint8_t yes = 0, uint8_t no = 0) {
    lines[count++] = {code, yes, no, value};
  }
  constexpr void Load(uint32_t at) { Add(kLoadWord, at); }
  constexpr void LoadArgument(uint32_t index) { Load(kArgumentsAt + 8 * index); }
  constexpr void AllowIf(uint32_t value) {
    Add(kIfEqual, value, 0, 1);
    Add(kReturn, kAllow);
  }
  // What follows up to the returned line's End is about this call alone.
  constexpr uint16_t Begin(int64_t number) {
    Add(kIfEqual, static_cast<uint32_t>(number));
    return static_cast<uint16_t>(count - 1);
  }
  constexpr void End(uint16_t begin) {
    Add(kReturn, kTrap);
    lines[begin].no = static_cast<uint8_t>(count - begin - 1);
  }
};

constexpr void AddFutex(Filter* filter) {
  // A private one is known by its address space: it reaches no other process, whatever its address is.
  constexpr uint32_t kPrivate = 128, kClockRealtime = 256;
  // Wakes and moves between two words; no operation that takes owners, which the kernel knows by their threads. Waits are made by
  // the handler, which counts who waits (calls.cc).
  constexpr uint32_t kOperations[] = {1, 3, 4, 5, 10};
  const uint16_t begin = filter->Begin(kSysFutex);
  filter->LoadArgument(1);
  filter->Add(kAnd, ~kClockRealtime);
  for (uint32_t operation : kOperations) filter->AllowIf(kPrivate | operation);
  filter->End(begin);
}

constexpr void AddMemory(Filter* filter) {
  constexpr uint32_t kPrivateAnonymous = 0x22, kNoReserve = 0x4000, kStack = 0x20000;
  const uint16_t map = filter->Begin(kSysMmap);
  filter->LoadArgument(3);
  filter->Add(kAnd, ~(kNoReserve | kStack));
  filter->AllowIf(kPrivateAnonymous);
  filter->End(map);
  // Of all advice only these two: MADV_REMOVE takes away pages that others share, through a mapping that is read-only here.
  constexpr uint32_t kDontNeed = 4, kFree = 8;
  const uint16_t advise = filter->Begin(kSysMadvise);
  filter->LoadArgument(2);
  filter->AllowIf(kDontNeed);
  filter->AllowIf(kFree);
  filter->End(advise);
}

constexpr Filter MakeFilter() {
  Filter filter;
  filter.Load(kArchitectureAt);
  filter.Add(kIfEqual, kX86_64, 1, 0);
  filter.Add(kReturn, kKillProcess);
  filter.Load(kNumberAt);
  for (int64_t number : kPlainCalls) filter.AllowIf(static_cast<uint32_t>(number));
  filter.Load(kPlaceAt + 4);
  filter.place_high = filter.count;
  filter.Add(kIfEqual, 0, 0, 3);
  filter.Load(kPlaceAt);
  filter.place_low = filter.count;
  filter.AllowIf(0);
  filter.Load(kNumberAt);
  AddFutex(&filter);
  AddMemory(&filter);
  filter.Add(kReturn, kTrap);
  return filter;
}

inline constexpr Filter kFilter = MakeFilter();
static_assert(sizeof(kFilter.lines) <= sizeof(TraceRecord) * kTraceCount);

}  // namespace

// `scratch` lies in memory of the shadow's own that nobody reads yet.
void LoadFilter(ChildControl* child, uint64_t scratch) {
  CopyBytes(scratch, AddressOf(&kFilter.lines[0]), kFilter.count * sizeof(FilterLine));
  // The kernel tells where the instruction ends. Source: kernel/seccomp.c, populate_seccomp_data.
  constexpr uint64_t kInstructionBytes = 2;
  const uint64_t place = AddressOf(&payload_system_call) + kInstructionBytes;
  At<FilterLine>(scratch)[kFilter.place_high].value = static_cast<uint32_t>(place >> 32);
  At<FilterLine>(scratch)[kFilter.place_low].value = static_cast<uint32_t>(place);
  constexpr uint64_t kNoNewPrivileges = 38, kSetModeFilter = 1, kSpeculationAllowed = 4;
  int64_t error = SysCall(kSysPrctl, kNoNewPrivileges, 1);
  if (error < 0) FailShadow(child, kStepFilter, error);
  FilterProgram program{kFilter.count, scratch};
  // Before Linux 5.16 a filter slows down how its task forwards stores to loads, unless this is asked for (since 4.17).
  error = SysCall(kSysSeccomp, kSetModeFilter, kSpeculationAllowed, AddressOf(&program));
  if (error < 0) error = SysCall(kSysSeccomp, kSetModeFilter, 0, AddressOf(&program));
  if (error < 0) FailShadow(child, kStepFilter, error);
}

}  // namespace perfd::agent
