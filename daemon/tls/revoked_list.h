// daemon/tls/revoked_list.h - certificates that are not accepted any more, whoever signed them.
//
// Shape    a text of lines: `serial HEX` (one certificate, as `openssl x509 -serial` prints it), `name NAME` (every certificate
//          for perfd://agent/NAME or perfd://user/NAME, also one that is made later); from # on a line is a comment.
// Errors   kInvalidArgument with the line; kNotFound, kPermissionDenied for the file. A list is taken whole or not at all.
// Threads  thread-compatible; const afterwards.
// Source   RFC 5280 4.1.2.2: a serial has at most 20 octets, and is one certificate's for each CA.
#ifndef DAEMON_TLS_REVOKED_LIST_H_
#define DAEMON_TLS_REVOKED_LIST_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/certificate.h"

namespace perfd::daemon {

enum class RevokedBy { kNothing, kSerial, kName };

class RevokedList {
 public:
  static constexpr size_t kMaxBytes = 1 << 20;

  static absl::StatusOr<RevokedList> Parse(absl::string_view text);
  // An empty path is an empty list. A file that others may write is refused.
  static absl::StatusOr<RevokedList> Read(const std::string& path);

  RevokedBy Find(const Certificate& certificate) const;
  size_t size() const { return serials_.size() + names_.size(); }

 private:
  absl::Status AddLine(absl::string_view line);

  std::set<std::string> serials_;  // as in Certificate
  std::set<std::string> names_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_TLS_REVOKED_LIST_H_
