#include "daemon/http/http_request.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace perfd::daemon {
namespace {

constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kNoSuchMethod = 405;
constexpr int kBodyTooLarge = 413;
constexpr int kTargetTooLong = 414;
constexpr int kHeadTooLarge = 431;
constexpr int kNoSuchVersion = 505;

bool IsTokenLetter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::string_view("!#$%&'*+-.^_`|~").find(c) != absl::string_view::npos;
}

bool IsToken(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenLetter);
}

bool IsVisible(char c) {
  return c > ' ' && c <= '~';
}

// "http://host/path" is as good as "/path": RFC 9112 3.2.2 asks servers to take both.
absl::string_view WithoutAuthority(absl::string_view target) {
  absl::string_view rest = target;
  if (!absl::ConsumePrefix(&rest, "http://")) return target;
  const size_t slash = rest.find('/');
  return slash == absl::string_view::npos ? "/" : rest.substr(slash);
}

int ParseTarget(absl::string_view target, HttpRequest* request) {
  if (target.size() > kMaxTargetBytes) return kTargetTooLong;
  if (!std::all_of(target.begin(), target.end(), IsVisible)) return kBadRequest;
  target = WithoutAuthority(target);
  if (target.empty() || target[0] != '/') return kBadRequest;
  const std::vector<absl::string_view> parts = absl::StrSplit(target, absl::MaxSplits('?', 1));
  request->path = std::string(parts[0]);
  if (parts.size() == 2) request->query = std::string(parts[1]);
  return kOk;
}

int ParseStart(absl::string_view line, HttpRequest* request) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || !IsToken(words[0])) return kBadRequest;
  if (words[2] != "HTTP/1.0" && words[2] != "HTTP/1.1")
    return absl::StartsWith(words[2], "HTTP/") ? kNoSuchVersion : kBadRequest;
  if (words[0] != "GET" && words[0] != "HEAD") return kNoSuchMethod;
  request->head = words[0] == "HEAD";
  return ParseTarget(words[1], request);
}

// True when the list names gzip with a weight that is not zero.
bool NamesGzip(absl::string_view list) {
  for (const absl::string_view item : absl::StrSplit(list, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(item, ';');
    if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts[0]), "gzip")) continue;
    if (parts.size() == 1) return true;
    absl::string_view weight = absl::StripAsciiWhitespace(parts[1]);
    double q = 0;
    return absl::ConsumePrefix(&weight, "q=") && absl::SimpleAtod(weight, &q) && q > 0;
  }
  return false;
}

int ParseField(absl::string_view line, HttpRequest* request, int* hosts) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos || !IsToken(line.substr(0, colon))) return kBadRequest;
  const absl::string_view name = line.substr(0, colon);
  const absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  if (value.find_first_of(absl::string_view("\0\r\n", 3)) != absl::string_view::npos)
    return kBadRequest;
  if (absl::EqualsIgnoreCase(name, "Transfer-Encoding")) return kBodyTooLarge;
  if (absl::EqualsIgnoreCase(name, "Content-Length") && value != "0") return kBodyTooLarge;
  if (absl::EqualsIgnoreCase(name, "Host")) ++*hosts;
  if (absl::EqualsIgnoreCase(name, "Accept-Encoding")) request->accepts_gzip |= NamesGzip(value);
  return kOk;
}

}  // namespace

int ParseHttpRequest(absl::string_view head, HttpRequest* request) {
  if (head.size() > kMaxHeadBytes) return kHeadTooLarge;
  if (!absl::ConsumeSuffix(&head, "\r\n\r\n")) return kBadRequest;
  const std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  if (lines.size() > kMaxHeaders + 1) return kHeadTooLarge;
  if (const int status = ParseStart(lines[0], request); status != kOk) return status;
  int hosts = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (const int status = ParseField(lines[i], request, &hosts); status != kOk) return status;
  }
  const bool must_name_host = absl::EndsWith(lines[0], "HTTP/1.1");
  return hosts > 1 || (must_name_host && hosts == 0) ? kBadRequest : kOk;
}

std::string QueryValue(absl::string_view query, absl::string_view name) {
  absl::string_view found;
  int times = 0;
  for (const absl::string_view pair : absl::StrSplit(query, '&')) {
    absl::string_view rest = pair;
    if (!absl::ConsumePrefix(&rest, name) || !absl::ConsumePrefix(&rest, "=")) continue;
    found = rest;
    ++times;
  }
  return times == 1 ? std::string(found) : "";
}

}  // namespace perfd::daemon
