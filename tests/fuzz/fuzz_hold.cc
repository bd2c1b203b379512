// The bytes between the agent and its tracer: what decodes encodes to the same bytes again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/attach/hold_codec.h"
#include "agent/attach/thread_status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Behind the number of the format, which no input guesses.
  static const std::string format = perfd::agent::EncodeRequest({}).substr(0, sizeof(uint32_t));
  const auto request = perfd::agent::DecodeRequest(absl::StrCat(format, bytes));
  if (request.ok() && !perfd::agent::DecodeRequest(perfd::agent::EncodeRequest(*request)).ok())
    std::abort();
  const auto reply = perfd::agent::DecodeReply(bytes);
  if (reply.ok() && !perfd::agent::DecodeReply(perfd::agent::EncodeReply(*reply)).ok())
    std::abort();
  (void)perfd::agent::ParseThreadStatus(bytes);
  return 0;
}
