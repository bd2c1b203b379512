// daemon/http/http_response.h - an answer over HTTP. Every answer ends its connection.
//
// Shape    HeadOf(response) is the status line and header fields with the final empty line; the body follows as it is.
// Threads  thread-safe (pure).
// Source   RFC 9112 4, 9.6 (Connection: close); RFC 9110 8.6, 10.2.1 (Allow), 10.2.3 (Retry-After); Fetch standard
//          "X-Content-Type-Options"; W3C Referrer Policy: a key in the address must not travel on.
#ifndef DAEMON_HTTP_HTTP_RESPONSE_H_
#define DAEMON_HTTP_HTTP_RESPONSE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace perfd::daemon {

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  // shared with a cache; null: empty
  bool gzipped = false;                     // the body is
  std::vector<std::pair<std::string, std::string>> fields = {};
};

HttpResponse PlainResponse(int status, absl::string_view text);
// A refusal in words, with the fields that its status asks for.
HttpResponse RefusalResponse(int status);

std::string HeadOf(const HttpResponse& response);

}  // namespace perfd::daemon

#endif  // DAEMON_HTTP_HTTP_RESPONSE_H_
