#include "core/certificate/expiry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

std::string Date(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

}  // namespace

const Certificate& FirstToEnd(const std::vector<Certificate>& certificates) {
  return *std::min_element(certificates.begin(), certificates.end(),
                           [](const auto& a, const auto& b) { return a.ends < b.ends; });
}

bool EndsSoon(const Certificate& certificate, absl::Time now) {
  const absl::Duration life = certificate.ends - certificate.begins;
  return certificate.ends - now < std::min(kWarnBeforeEnd, life / 3);
}

absl::Status CheckValidNow(const Certificate& certificate, absl::Time now) {
  if (now >= certificate.ends)  // as X509_cmp_time(3ssl)
    return absl::FailedPreconditionError(absl::StrCat("it ended on ", Date(certificate.ends)));
  if (now < certificate.begins)
    return absl::FailedPreconditionError(absl::StrCat(
        "it is valid only from ", Date(certificate.begins), " on, by the clock of this host"));
  return absl::OkStatus();
}

ExpiryCheck CheckExpiry(const absl::StatusOr<std::vector<Certificate>>& certificates,
                        absl::Time now) {
  if (!certificates.ok()) return {.found = std::string(certificates.status().message())};
  const Certificate& first = FirstToEnd(*certificates);
  const absl::Status valid = CheckValidNow(first, now);
  if (!valid.ok()) return {.found = std::string(valid.message())};
  const auto days = static_cast<int64_t>(absl::ToInt64Hours(first.ends - now) / 24);
  return {.ok = !EndsSoon(first, now),
          .usable = true,
          .found = absl::StrCat("it ends on ", Date(first.ends), ", in ", days,
                                days == 1 ? " day" : " days")};
}

bool Daily::Due(absl::Time now) {
  if (now < next_) return false;
  next_ = now + absl::Hours(24);
  return true;
}

}  // namespace perfd
