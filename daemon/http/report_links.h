// daemon/http/report_links.h - who may read a report over HTTP: whoever has its key.
//
// Shape    a link is BASE/profiles/ID?key=KEY; the key is the first 128 bits of HMAC-SHA256(secret, "report " + ID) in hex.
//          The secret is `folder`/report.key, 32 random bytes, made when missing; without the file all keys are new.
// Errors   Load: kPermissionDenied (the file or its folder is not ours, or others may read it), kDataLoss (its size), and as
//          core/files/own_folder.h.
// Threads  thread-safe.
// Source   promise P8; RFC 2104, FIPS 180-4; RFC 4868 2.1.1 (truncation to half); getrandom(2). Compared in constant time
//          (OpenSSL CRYPTO_memcmp): time must not tell how much of a key is right.
#ifndef DAEMON_HTTP_REPORT_LINKS_H_
#define DAEMON_HTTP_REPORT_LINKS_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd::daemon {

class ReportLinks {
 public:
  // `base`: "http://host:port", without a final slash. `open`: everyone may read everything, links have no key.
  static absl::StatusOr<ReportLinks> Load(const std::string& folder, std::string base, bool open);
  ReportLinks(std::string secret, std::string base, bool open)
      : secret_(std::move(secret)), base_(std::move(base)), open_(open) {}

  std::string UrlOf(absl::string_view profile_id) const;
  bool Opens(absl::string_view profile_id, absl::string_view key) const;
  bool open() const { return open_; }

 private:
  std::string KeyOf(absl::string_view profile_id) const;

  std::string secret_;
  std::string base_;
  bool open_;
};

// What links begin with: what the site says, else where perfd listens (with this host's name for "any address").
std::string LinkBase(absl::string_view wanted, absl::string_view listening);

}  // namespace perfd::daemon

#endif  // DAEMON_HTTP_REPORT_LINKS_H_
