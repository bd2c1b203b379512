// daemon/http/http_request.h - the head of an HTTP request, read strictly: whoever reaches the port may write it.
//
// Shape    ParseHttpRequest(head) with its final empty line -> 200 and the request, or the status that refuses it.
//          Only GET and HEAD, without a body. Nothing is decoded: a path with an escape is the name of nothing here.
// Limits   kMaxHeadBytes, kMaxTargetBytes, kMaxHeaders.
// Threads  thread-safe (pure).
// Source   RFC 9112 2.1-3.2, 5.1-5.2 (message, request target, field lines); RFC 9110 12.5.3 (Accept-Encoding), 15.5.
#ifndef DAEMON_HTTP_HTTP_REQUEST_H_
#define DAEMON_HTTP_HTTP_REQUEST_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace perfd::daemon {

inline constexpr size_t kMaxHeadBytes = 8192;
inline constexpr size_t kMaxTargetBytes = 1024;
inline constexpr size_t kMaxHeaders = 64;

struct HttpRequest {
  bool head = false;  // HEAD: the answer without its body
  bool accepts_gzip = false;
  std::string path;   // begins with '/'
  std::string query;  // what follows '?'
};

int ParseHttpRequest(absl::string_view head, HttpRequest* request);

// The value of `name` in a query such as "a=1&key=2"; empty when it is not there exactly once.
std::string QueryValue(absl::string_view query, absl::string_view name);

}  // namespace perfd::daemon

#endif  // DAEMON_HTTP_HTTP_REQUEST_H_
