// agent/attach/thread_ops.h - the ops of a hold that look at or move the stopped threads.
//
// Errors   kUnavailable: a thread is where it must not be, hold again later; the message names thread and address.
// Threads  thread-bound, like Operations.
#ifndef AGENT_ATTACH_THREAD_OPS_H_
#define AGENT_ATTACH_THREAD_OPS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/attach/held_threads.h"
#include "agent/attach/hold_request.h"
#include "agent/attach/memory.h"
#include "agent/attach/operations.h"
#include "agent/attach/thread/signal_frame.h"

namespace perfd::agent {

// Where a thread at `pc` goes: none when it stays; kUnavailable when it is inside `pairs_only` and at no pair. Pure.
absl::StatusOr<std::optional<uint64_t>> NewPc(const MoveThreadsOp& op, uint64_t pc);

// All or none are moved, unless the tracer dies in between. Returns how many.
absl::StatusOr<uint64_t> MoveThreads(const MoveThreadsOp& op, Operations& operations,
                                     const Memory& memory, std::vector<HeldThread>& threads);
absl::Status RequireOwnStacks(int32_t pid, const std::vector<MapEntry>& maps,
                              const std::vector<HeldThread>& threads);
absl::Status RequireOutside(const RequireOutsideOp& op, const std::vector<HeldThread>& threads);
absl::StatusOr<uint64_t> ScanStacks(const ScanStacksOp& op, const Memory& memory,
                                    const std::vector<HeldThread>& threads);
// The thread's pc, or a word in the 64 KB from its stack pointer, is in one of the ranges; also when its stack cannot be read.
bool MayBeInside(const std::vector<PcRange>& ranges, const Memory& memory,
                 const HeldThread& thread);
// Returns how many threads; met[i] becomes 1 when entry i met one of them. A tracer that dies between the two system calls for
// a thread has given back its mask, the one that matters, and not its GS base: the next attempt does the rest.
absl::StatusOr<uint64_t> GiveBack(const GiveBackOp& op, Operations& operations,
                                  const Memory& memory, std::vector<HeldThread>& threads,
                                  std::span<uint8_t> met);
absl::StatusOr<std::vector<ThreadFacts>> ReadThreads(Operations& operations,
                                                     const XsaveLayout& layout,
                                                     const std::vector<HeldThread>& threads);

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_THREAD_OPS_H_
