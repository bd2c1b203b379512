// core/dial/dial_settings.h - how a program reaches the daemon again and again, while its TLS files may become others.
//
// Threads  thread-safe. Reads files: not for a thread that may not wait for them.
#ifndef CORE_DIAL_DIAL_SETTINGS_H_
#define CORE_DIAL_DIAL_SETTINGS_H_

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/certificate/expiry.h"
#include "core/dial/dial.h"

namespace perfd {

// Whether the address is one that TLS serves, and not a Unix socket.
bool NeedsTls(const DialOptions& options);

// What is to be said of our certificate; `found` names its file. Only with TLS.
ExpiryCheck CheckOwnCertificate(const DialOptions& options, absl::Time now);
// ... and how it becomes another.
inline constexpr char kRenewOwnCertificate[] =
    "make it anew with make-certs.sh on the host of the site CA; it is used from the next "
    "connection on";

class DialSettings {
 public:
  explicit DialSettings(DialOptions options) : options_(std::move(options)) {}

  DialOptions options() const;
  // The files of `options`; the address stays.
  void SetTls(const DialOptions& options);
  // Often: once a day a line in the log when our certificate ends soon, or is no good.
  void WarnOfExpiry(absl::Time now);

 private:
  mutable Mutex mutex_;
  DialOptions options_ ABSL_GUARDED_BY(mutex_);
  Daily warning_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd

#endif  // CORE_DIAL_DIAL_SETTINGS_H_
