#include "daemon/http/http_response.h"

#include "absl/strings/str_cat.h"

namespace perfd::daemon {
namespace {

const char* Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

HttpResponse PlainResponse(int status, absl::string_view text) {
  HttpResponse response;
  response.status = status;
  response.body = std::make_shared<const std::string>(text);  // shared, as bodies of a cache are
  return response;
}

HttpResponse RefusalResponse(int status) {
  HttpResponse response = PlainResponse(status, absl::StrCat(status, " ", Reason(status), "\n"));
  if (status == 405) response.fields = {{"Allow", "GET, HEAD"}};
  if (status == 503) response.fields = {{"Retry-After", "2"}};
  return response;
}

std::string HeadOf(const HttpResponse& response) {
  std::string head =
      absl::StrCat("HTTP/1.1 ", response.status, " ", Reason(response.status),
                   "\r\nContent-Type: ", response.content_type,
                   "\r\nContent-Length: ", response.body == nullptr ? 0 : response.body->size(),
                   "\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\n"
                   "Referrer-Policy: no-referrer\r\nCache-Control: no-store\r\n");
  if (response.gzipped) absl::StrAppend(&head, "Content-Encoding: gzip\r\n");
  for (const auto& [name, value] : response.fields)
    absl::StrAppend(&head, name, ": ", value, "\r\n");
  return head + "\r\n";
}

}  // namespace perfd::daemon
