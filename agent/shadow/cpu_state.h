// agent/shadow/cpu_state.h - which vector state of a thread is saved, and whether a block has room for it.
//
// Shape    XCR0 without AMX tiles: a loop that computes in tiles is refused when it is decoded.
// Errors   kUnimplemented: no XSAVE, or the state is larger than kBlockXsaveBytes.
// Source   Intel SDM vol. 1, 13.1 (XCR0), 13.2 (CPUID leaf 0DH), 13.4.3 (standard format).
#ifndef AGENT_SHADOW_CPU_STATE_H_
#define AGENT_SHADOW_CPU_STATE_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace perfd {

absl::StatusOr<uint64_t> XsaveMaskOfThisCpu();

}  // namespace perfd

#endif  // AGENT_SHADOW_CPU_STATE_H_
