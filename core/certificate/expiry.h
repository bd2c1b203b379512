// core/certificate/expiry.h - how long certificates last, said in time.
//
// Rules    a certificate ends soon in the last 30 days of its life, and of a short life in its last third.
// Threads  Due: thread-compatible; the rest is pure.
#ifndef CORE_CERTIFICATE_EXPIRY_H_
#define CORE_CERTIFICATE_EXPIRY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/certificate/certificate.h"

namespace perfd {

inline constexpr absl::Duration kWarnBeforeEnd = absl::Hours(30 * 24);

// Of a file: the certificate of it that ends first.
const Certificate& FirstToEnd(const std::vector<Certificate>& certificates);

bool EndsSoon(const Certificate& certificate, absl::Time now);

// kFailedPrecondition: "it ended on 2026-01-31 12:00 UTC", "it is valid only from ...".
absl::Status CheckValidNow(const Certificate& certificate, absl::Time now);

// What `doctor` says of a file, without the file's name.
struct ExpiryCheck {
  bool ok = false;
  bool usable = false;  // not ok and usable: it ends soon
  std::string found;
};
ExpiryCheck CheckExpiry(const absl::StatusOr<std::vector<Certificate>>& certificates,
                        absl::Time now);

// Once a day.
class Daily {
 public:
  bool Due(absl::Time now);

 private:
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace perfd

#endif  // CORE_CERTIFICATE_EXPIRY_H_
