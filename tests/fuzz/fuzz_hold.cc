// The bytes between the agent and its tracer: what decodes encodes to the same bytes again.
#include <cstdint>
#include <cstdlib>

#include "agent/attach/hold_codec.h"
#include "agent/attach/thread_status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto request = perfd::DecodeRequest(bytes);
  if (request.ok() && !perfd::DecodeRequest(perfd::EncodeRequest(*request)).ok()) std::abort();
  const auto reply = perfd::DecodeReply(bytes);
  if (reply.ok() && !perfd::DecodeReply(perfd::EncodeReply(*reply)).ok()) std::abort();
  (void)perfd::ParseThreadStatus(bytes);
  (void)perfd::ParseIdentity(bytes);
  return 0;
}
