// agent/variant/moved.h - a finished copy at another address.
//
// Shape    pure. What leads out of the copy (exits, rip-relative operands) leads to the same address from there.
// Units    bytes; `shift` is a multiple of 64, so that alignment stays.
// Errors   OutOfRange: something cannot be reached from there; InvalidArgument: the bytes are no instructions, or the shift is odd.
// Source   docs/adr/0026-branches-as-new.md.
#ifndef AGENT_VARIANT_MOVED_H_
#define AGENT_VARIANT_MOVED_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/variant/copy.h"

namespace perfd::agent {

absl::StatusOr<std::vector<uint8_t>> MovedBytes(const CodeCopy& copy, uint64_t shift);

}  // namespace perfd::agent

#endif  // AGENT_VARIANT_MOVED_H_
