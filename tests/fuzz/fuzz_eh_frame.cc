// Call frame information: any bytes give ranges that are sorted, not empty, and each start once. The same bytes as a table of
// landing pads: those are sorted.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "agent/binary/frames/eh_frame.h"
#include "agent/binary/frames/exception_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const perfd::agent::EhFrame parsed = perfd::agent::ParseEhFrame(bytes, 0x5000);
  uint64_t last = 0;
  for (const perfd::CodeRange& range : parsed.functions) {
    if (range.low <= last || range.high <= range.low) std::abort();
    last = range.low;
  }
  perfd::agent::EhFrameAddress(bytes, 0x6000);
  uint64_t before = 0;
  for (const perfd::agent::LandingPad& pad : perfd::agent::ReadLandingPads(bytes, 0x5000, 0x1000)) {
    if (pad.calls.low < before || pad.calls.high <= pad.calls.low) std::abort();
    before = pad.calls.low;
  }
  return 0;
}
