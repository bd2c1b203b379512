// agent/shadow/trampoline.h - the few instructions between a patched loop entry and the copy that runs instead.
//
// Shape    EmitTrampoline: entry -> live copy when the site is idle, -> payload and then the copy when it is not. The timed batch is
//          only for the thread that the payload gives a place for its time.
//          EmitTimedExit: where a timed copy leaves: takes the time, goes on at `target` in the original text.
//          Both keep every register, the flags, the vector state and the red zone.
// Units    addresses in the rank; bytes of code.
// Errors   kOutOfRange when a target is farther than a 32-bit displacement reaches.
// Source   Intel SDM vol. 2 (encodings); System V ABI 3.2.2 (red zone).
#ifndef AGENT_SHADOW_TRAMPOLINE_H_
#define AGENT_SHADOW_TRAMPOLINE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace perfd::agent {

struct TrampolineAddresses {
  uint64_t address = 0;     // of the trampoline
  uint64_t site = 0;        // of the Site, 64-byte aligned
  uint64_t slow_entry = 0;  // of the payload
  uint64_t live_copy = 0;
  uint64_t timed_copy = 0;   // may be the live copy
  uint64_t timed_batch = 0;  // may be the live copy
};

inline constexpr uint32_t kTrampolineBytes = 192;  // room for either

absl::StatusOr<std::vector<uint8_t>> EmitTrampoline(const TrampolineAddresses& place);

struct TimedExitAddresses {
  uint64_t address = 0;
  uint64_t site = 0;
  uint64_t slow_entry = 0;
  uint64_t target = 0;
};

absl::StatusOr<std::vector<uint8_t>> EmitTimedExit(const TimedExitAddresses& place);

// The five bytes of a jump from `address` to `target`.
absl::StatusOr<std::vector<uint8_t>> EmitJump(uint64_t address, uint64_t target);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_TRAMPOLINE_H_
