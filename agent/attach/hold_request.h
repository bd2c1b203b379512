// agent/attach/hold_request.h - one stop of a rank: what is to be done while every thread of it stands still, and what came out.
//
// Shape    ops run in order; the first that fails ends the list. A tracer may die between any two ops, or inside one that
//          is not a WriteOp with `indivisible`: order them so that every prefix leaves the rank unharmed.
// Units    addresses of the rank's address space; times in ns of CLOCK_MONOTONIC.
// Errors   HoldReply::status: kFailedPrecondition (unsafe: the reason is in the message; do not retry), kUnavailable (not at
//          this moment: thread in a wrong place, restartable sequence, SIGSTOP came in between; hold again later), kNotFound
//          (process gone, or another one under this pid, or another program), kDeadlineExceeded (max_stop_ns),
//          kPermissionDenied (also: its rights are not those of its admission), kInvalidArgument
//          (malformed request), kAborted (an expectation of an op was not met: see its result).
// Source   ptrace(2); injection findings: one stop is one list, prepared before the stop.
#ifndef AGENT_ATTACH_HOLD_REQUEST_H_
#define AGENT_ATTACH_HOLD_REQUEST_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "agent/procfs/admission.h"

namespace perfd::agent {

inline constexpr int32_t kNoOp = -1;

// `number`, plus the value of an earlier op when from_op is its index.
struct OpValue {
  uint64_t number = 0;
  int32_t from_op = kNoOp;
};

// Addresses [start, end).
struct PcRange {
  uint64_t start = 0;
  uint64_t end = 0;
};

// A system call made by one thread of the rank. Value: what it returned (a negative errno wraps around).
struct CallOp {
  enum class Expect : uint8_t { kAny, kNoError, kEqual };
  int64_t call = 0;  // SYS_...
  std::array<OpValue, 6> arguments{};
  Expect expect = Expect::kNoError;
  uint64_t expected = 0;  // of kEqual; may be an error
};

// Works on read-only private mappings too. Value: number of bytes.
struct WriteOp {
  OpValue address;
  std::vector<uint8_t> bytes;
  // All or nothing, whatever happens to the tracer: code that threads may be about to execute. Refused
  // (kFailedPrecondition) when the bytes cross a page.
  bool indivisible = false;
};

// Ends the list with kAborted when memory differs.
struct ExpectBytesOp {
  OpValue address;
  std::vector<uint8_t> bytes;
};

// OpResult::bytes has them.
struct ReadOp {
  OpValue address;
  uint32_t size = 0;
};

// Moves the pc of every thread that stands at `first` of a pair to `second`, or inside a range by the range's offset. A thread
// inside a range of `pairs_only`, but at none of the pairs, ends the list with kUnavailable before any is moved. Value: threads
// moved.
struct MoveThreadsOp {
  struct Range {
    PcRange from;
    uint64_t to = 0;
  };
  std::vector<std::pair<uint64_t, uint64_t>> pairs;
  std::vector<Range> ranges;
  std::vector<PcRange> pairs_only;
};

// kUnavailable when the pc of a thread is in one of them.
struct RequireOutsideOp {
  std::vector<PcRange> ranges;
};

// kFailedPrecondition when the stack pointer of a thread is not in its own stack (thread/own_stack.h), kUnavailable when little is left of
// that: whoever enters our code uses it.
struct RequireOwnStacksOp {};

// Conservative: kUnavailable when one of the 8-byte words in the 64 KB from the stack pointer of a thread is in the range.
// Value: words looked at.
struct ScanStacksOp {
  PcRange range;
};

// OpResult::threads has them.
struct ReadThreadsOp {};

// Every thread with the GS base of an entry gets its own one back, and its own signal mask, if it still has the entry's;
// the bits of signals in `either` stay as they are, those in `loose` need not agree. A thread is passed over that may not
// have left: its pc, or one of the 8-byte words in the 64 KB from its stack pointer, is in a range. Value: threads;
// OpResult::bytes: for each entry 1 if it met one.
struct GiveBackOp {
  struct Entry {
    uint64_t gs_base = 0;
    uint64_t own_gs_base = 0;
    uint64_t mask = 0;  // bit n - 1 is signal n
    uint64_t own_mask = 0;
  };
  std::vector<Entry> entries;
  uint64_t either = 0;
  uint64_t loose = 0;
  std::vector<PcRange> ranges;
};

using HoldOp = std::variant<CallOp, WriteOp, ExpectBytesOp, ReadOp, MoveThreadsOp, RequireOutsideOp,
                            ScanStacksOp, ReadThreadsOp, GiveBackOp, RequireOwnStacksOp>;

struct HoldRequest {
  int32_t pid = 0;
  uint64_t start_ticks = 0;  // ProcessStamp: who is meant
  int64_t max_stop_ns = 20'000'000;
  std::vector<HoldOp> ops;
  // Compared before anything of the process is read, and again while it stands still. None: what we left in it is taken out,
  // whoever it has become.
  std::optional<Admission> admitted = std::nullopt;
};

struct ThreadFacts {
  int32_t tid = 0;
  uint64_t pc = 0;
  uint64_t stack_pointer = 0;
  uint64_t fs_base = 0;
  uint64_t gs_base = 0;
  uint32_t xsave_bytes = 0;    // standard format, without tile state
  bool in_call = false;        // stopped inside a system call
  std::vector<uint64_t> cpus;  // affinity, bit n % 64 of word n / 64
};

struct OpResult {
  uint64_t value = 0;
  std::vector<uint8_t> bytes;
  std::vector<ThreadFacts> threads;
};

struct HoldReply {
  absl::Status status;
  std::vector<OpResult> results;  // one per op begun; that of a failing op is the last
  int32_t threads = 0;            // that were stopped
  int32_t repaired = 0;           // waits that would have seen EINTR because of the stop
  int64_t stop_ns = 0;            // first seize to last detach; 0: nothing was stopped
  // Only the end of the tracer frees a thread that could not be released (it did not stop); the tracer is ended at once.
  bool tracer_ends = false;
  // A system call may yet be made: its thread was not seen to return, or did not get its own registers back.
  bool call_lost = false;
};

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_HOLD_REQUEST_H_
