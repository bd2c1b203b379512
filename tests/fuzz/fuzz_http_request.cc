// Whatever the head of a request is: an answer, and what is accepted is within its limits.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "daemon/http/http_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view head(reinterpret_cast<const char*>(data), size);
  perfd::daemon::HttpRequest request;
  const int status = perfd::daemon::ParseHttpRequest(head, &request);
  if (status != 200) {
    if (status < 400 || status > 599) std::abort();
    return 0;
  }
  if (size > perfd::daemon::kMaxHeadBytes || request.path.empty() || request.path[0] != '/')
    std::abort();
  if (request.path.size() + request.query.size() > perfd::daemon::kMaxTargetBytes) std::abort();
  const auto visible = [](char c) { return c > ' ' && c <= '~'; };
  if (!std::all_of(request.path.begin(), request.path.end(), visible)) std::abort();
  (void)perfd::daemon::QueryValue(request.query, "key");
  return 0;
}
