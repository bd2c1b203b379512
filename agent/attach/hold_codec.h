// agent/attach/hold_codec.h - HoldRequest and HoldReply as bytes, for the socket between the agent and its tracer.
//
// Shape    Decode(Encode(x)) == x. Counts are checked against the bytes that are left before anything is allocated.
// Units    numbers little-endian, fixed width; a list is its length (u32), then its elements.
// Errors   kInvalidArgument: truncated, trailing bytes, unknown op or status code, a reference to a later op, over a limit.
// Source   own format. Its number goes first in a request: after an upgrade in place an agent that still runs starts a tracer of
//          another version, which then refuses before it stops anybody.
#ifndef AGENT_ATTACH_HOLD_CODEC_H_
#define AGENT_ATTACH_HOLD_CODEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/attach/hold_request.h"

namespace perfd::agent {

inline constexpr uint32_t kMaxHoldOps = 4096;
inline constexpr int64_t kMaxStopNs = 10'000'000'000;

std::string EncodeRequest(const HoldRequest& request);
absl::StatusOr<HoldRequest> DecodeRequest(absl::string_view bytes);
std::string EncodeReply(const HoldReply& reply);
absl::StatusOr<HoldReply> DecodeReply(absl::string_view bytes);

}  // namespace perfd::agent

#endif  // AGENT_ATTACH_HOLD_CODEC_H_
