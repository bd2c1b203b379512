// Whatever clients and gRPC say: what passes is what came, no message over the limit passes, and no room is lost.
//
// Input: pieces of a byte for who says it and how long it is, and the bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/limits/limits.h"
#include "daemon/relay/request_meter.h"

namespace {

using perfd::daemon::Limit;
using perfd::daemon::Limits;
using perfd::daemon::RequestMeter;

constexpr uint32_t kMost = 1 << 16;
constexpr uint32_t kUser = 1;

void Feed(Limits& limits, RequestMeter& meter, absl::string_view bytes, bool admit) {
  while (!bytes.empty()) {
    const size_t passed = meter.Pass(bytes);
    if (passed > bytes.size()) std::abort();
    bytes.remove_prefix(passed);
    if (!meter.status().ok()) {
      if (passed != 0) std::abort();
      return;
    }
    if (meter.call_waits()) {
      meter.BeginCall(limits.Hold(Limit::kOpenCallsPerUser, kUser));
      continue;
    }
    if (meter.needed() == 0) {
      if (!bytes.empty()) std::abort();
      return;
    }
    if (meter.needed() > kMost) std::abort();
    if (!admit) return;
    meter.Admit(limits.Hold(Limit::kDoorMemory, kUser, meter.needed()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  absl::string_view rest(reinterpret_cast<const char*>(data), size);
  Limits limits;
  {
    RequestMeter meter({.most = kMost, .most_question = kMost / 2});
    while (!rest.empty()) {
      const auto kind = static_cast<uint8_t>(rest[0]);
      const absl::string_view piece = rest.substr(1, kind >> 2);
      rest.remove_prefix(1 + piece.size());
      if ((kind & 1) != 0) meter.Answered(piece);
      if ((kind & 1) == 0) Feed(limits, meter, piece, (kind & 2) == 0);
    }
  }
  for (const perfd::LimitUse& use :
       limits.UsesOf({.uid = kUser, .name = "", .privileged = false}, 0)) {
    if (use.used.value_or(0) != 0) std::abort();
  }
  return 0;
}
