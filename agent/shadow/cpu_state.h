// agent/shadow/cpu_state.h - what of this CPU a shadow has to know: vector state to be saved, caches to be emptied.
//
// Shape    XCR0 without AMX tiles: a loop that computes in tiles is refused when it is decoded. A walk through a private buffer
//          pushes out of a thread's caches what they held; nothing is flushed by address: the live rank shares those lines.
// Units    bytes, per thread; larger for each level, bounded.
// Errors   kUnimplemented: no XSAVE, or the state is larger than kBlockXsaveBytes.
// Source   Intel SDM vol. 1, 13.1 (XCR0), 13.2 (CPUID leaf 0DH), 13.4.3 (standard format); sysconf(3) _SC_LEVEL*_CACHE_SIZE;
//          hazards of measuring, "Cold protocol".
#ifndef AGENT_SHADOW_CPU_STATE_H_
#define AGENT_SHADOW_CPU_STATE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace perfd::agent {

absl::StatusOr<uint64_t> XsaveMaskOfThisCpu();

// Of the first level; of the second, too; of all.
enum class Evict : uint8_t { kNothing, kFirst, kSecond, kAll };
inline constexpr size_t kEvictLevels = 4;

uint64_t EvictBytesOfThisCpu(Evict level);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_CPU_STATE_H_
