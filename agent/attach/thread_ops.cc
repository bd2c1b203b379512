#include "agent/attach/thread_ops.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "agent/attach/remote_call.h"
#include "agent/attach/thread/restart_rules.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr size_t kScanBytes = 65536;
constexpr uint64_t kRedZoneBytes = 128;
// An armed entry takes some 1 KB (agent/shadow/payload/payload.h); the rest is for a handler that interrupts it. Threads that only wait
// may have the least stack there is, 16 KB.
constexpr uint64_t kStackOfOurCode = 6144;

bool Inside(const PcRange& range, uint64_t address) {
  return address >= range.start && address < range.end;
}

absl::Status WrongPlace(int32_t tid, absl::string_view what, uint64_t address) {
  return absl::UnavailableError(absl::StrFormat("thread %d: %s %#x", tid, what, address));
}

// A call that starts again would do so at the new pc.
bool WillRestart(const user_regs_struct& registers) {
  const CallFitness fitness = FitnessForCall(registers);
  return fitness != CallFitness::kFree;
}

// The words from a thread's stack pointer on; fewer where the mapping ends.
class StackWords {
 public:
  std::span<const uint64_t> Read(const Memory& memory, const HeldThread& thread) {
    const uint64_t start = (thread.registers.rsp - kRedZoneBytes) & ~uint64_t{7};
    const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(words_.data()), kScanBytes);
    return {words_.data(), memory.ReadSome(start, bytes) / sizeof(uint64_t)};
  }

 private:
  std::vector<uint64_t> words_ = std::vector<uint64_t>(kScanBytes / sizeof(uint64_t));
};

std::vector<uint64_t> Affinity(int32_t tid) {
  constexpr size_t kWords = 128;  // 8192 CPUs, the most a kernel for x86 can have
  std::vector<uint64_t> words(kWords);
  auto* const set = reinterpret_cast<cpu_set_t*>(words.data());
  if (::sched_getaffinity(tid, words.size() * sizeof(uint64_t), set) != 0) return {};
  while (!words.empty() && words.back() == 0) words.pop_back();
  return words;
}

}  // namespace

absl::StatusOr<std::optional<uint64_t>> NewPc(const MoveThreadsOp& op, uint64_t pc) {
  for (const auto& [from, to] : op.pairs)
    if (pc == from) return to;
  for (const PcRange& range : op.pairs_only)
    if (Inside(range, pc))
      return absl::UnavailableError(
          absl::StrFormat("a thread is at %#x, not at a known place", pc));
  for (const MoveThreadsOp::Range& range : op.ranges)
    if (Inside(range.from, pc)) return range.to + (pc - range.from.start);
  return std::optional<uint64_t>();
}

absl::StatusOr<uint64_t> MoveThreads(const MoveThreadsOp& op, Operations& operations,
                                     const Memory& memory, std::vector<HeldThread>& threads) {
  std::vector<std::pair<HeldThread*, uint64_t>> moves;
  for (HeldThread& thread : threads) {
    ASSIGN_OR_RETURN(const std::optional<uint64_t> to, NewPc(op, thread.registers.rip));
    if (!to) continue;
    if (WillRestart(thread.registers))
      return WrongPlace(thread.tid, "inside a system call at", thread.registers.rip);
    RETURN_IF_ERROR(CheckOutsideRseq(operations, memory, thread));
    moves.emplace_back(&thread, *to);
  }
  for (const auto& [thread, to] : moves) {
    user_regs_struct moved = thread->registers;
    moved.rip = to;
    RETURN_IF_ERROR(operations.SetRegisters(thread->tid, moved));
    thread->registers = moved;
  }
  return moves.size();
}

absl::Status RequireOwnStacks(int32_t pid, const std::vector<MapEntry>& maps,
                              const std::vector<HeldThread>& threads) {
  for (const HeldThread& thread : threads) {
    if (thread.state == HeldThread::State::kStopped)
      RETURN_IF_ERROR(CheckOwnStackHolds(maps, thread.stack(pid), kStackOfOurCode));
  }
  return absl::OkStatus();
}

absl::Status RequireOutside(const RequireOutsideOp& op, const std::vector<HeldThread>& threads) {
  for (const HeldThread& thread : threads)
    for (const PcRange& range : op.ranges)
      if (Inside(range, thread.registers.rip))
        return WrongPlace(thread.tid, "stands at", thread.registers.rip);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ScanStacks(const ScanStacksOp& op, const Memory& memory,
                                    const std::vector<HeldThread>& threads) {
  uint64_t scanned = 0;
  StackWords stack;
  for (const HeldThread& thread : threads) {
    const std::span<const uint64_t> words = stack.Read(memory, thread);
    if (words.empty())
      return WrongPlace(thread.tid, "cannot read the stack at", thread.registers.rsp);
    for (const uint64_t word : words)
      if (Inside(op.range, word)) return WrongPlace(thread.tid, "has on its stack", word);
    scanned += words.size();
  }
  return scanned;
}

bool MayBeInside(const std::vector<PcRange>& ranges, const Memory& memory,
                 const HeldThread& thread) {
  const auto inside = [&](uint64_t address) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const PcRange& range) { return Inside(range, address); });
  };
  if (inside(thread.registers.rip)) return true;
  StackWords stack;
  const std::span<const uint64_t> words = stack.Read(memory, thread);
  return words.empty() || std::any_of(words.begin(), words.end(), inside);
}

absl::StatusOr<uint64_t> GiveBack(const GiveBackOp& op, Operations& operations,
                                  const Memory& memory, std::vector<HeldThread>& threads,
                                  std::span<uint8_t> met) {
  uint64_t given = 0;
  for (HeldThread& thread : threads) {
    const auto entry =
        std::find_if(op.entries.begin(), op.entries.end(), [&](const GiveBackOp::Entry& wanted) {
          return wanted.gs_base == thread.registers.gs_base;
        });
    if (entry == op.entries.end() || MayBeInside(op.ranges, memory, thread)) continue;
    ASSIGN_OR_RETURN(const uint64_t mask, operations.SignalMask(thread.tid));
    if (((mask ^ entry->mask) & ~(op.either | op.loose)) == 0) {
      const uint64_t own = (entry->own_mask & ~op.either) | (mask & op.either);
      RETURN_IF_ERROR(operations.SetSignalMask(thread.tid, own));
    }
    const absl::Status set = operations.SetGsBase(thread.tid, entry->own_gs_base);
    if (absl::IsNotFound(set)) return set;
    if (!set.ok())
      continue;  // an address that the kernel refuses must not stand in the way of everything else
    thread.registers.gs_base = entry->own_gs_base;
    met[static_cast<size_t>(entry - op.entries.begin())] = 1;
    ++given;
  }
  return given;
}

absl::StatusOr<std::vector<ThreadFacts>> ReadThreads(Operations& operations,
                                                     const XsaveLayout& layout,
                                                     const std::vector<HeldThread>& threads) {
  std::vector<ThreadFacts> all;
  for (const HeldThread& thread : threads) {
    ThreadFacts facts;
    facts.tid = thread.tid;
    facts.pc = thread.registers.rip;
    facts.stack_pointer = thread.registers.rsp;
    facts.fs_base = thread.registers.fs_base;
    facts.gs_base = thread.registers.gs_base;
    facts.in_call = InsideCall(thread.registers);
    ASSIGN_OR_RETURN(const std::vector<uint8_t> state, operations.VectorState(thread.tid));
    ASSIGN_OR_RETURN(facts.xsave_bytes, XsaveBytes(state, layout));
    facts.cpus = Affinity(thread.tid);
    all.push_back(std::move(facts));
  }
  return all;
}

}  // namespace perfd::agent
