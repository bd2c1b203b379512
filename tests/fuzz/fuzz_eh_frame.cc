// Call frame information: any bytes give ranges that are sorted, not empty, and each start once.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "agent/binary/eh_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const perfd::agent::EhFrame parsed = perfd::agent::ParseEhFrame(bytes, 0x5000);
  uint64_t last = 0;
  for (const perfd::CodeRange& range : parsed.functions) {
    if (range.low <= last || range.high <= range.low) std::abort();
    last = range.low;
  }
  perfd::agent::EhFrameAddress(bytes, 0x6000);
  return 0;
}
