#include "daemon/audit_trim_log.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace perfd::daemon {
namespace {

std::string Line(const AuditTrim& trim) {
  return absl::StrCat(
      "audit log: ", trim.entries, " entries of ",
      trim.uid < 0 ? "profiles that are gone" : absl::StrCat("uid ", trim.uid), ", brought by ",
      trim.brought_by.empty() ? "an agent that is not known any more" : trim.brought_by,
      trim.aged ? ", are deleted: older than store.audit_days"
                : ", are deleted, the oldest first: that user has more than store.audit_mib");
}

}  // namespace

void AuditTrimLog::Hold(const AuditTrim& trim) {
  for (AuditTrim& held : unsaid_) {
    if (held.uid != trim.uid || held.brought_by != trim.brought_by || held.aged != trim.aged)
      continue;
    held.entries += trim.entries;
    return;
  }
  if (unsaid_.size() < kMostKeys) {
    unsaid_.push_back(trim);
  } else {
    unsaid_of_others_ += trim.entries;
  }
}

void AuditTrimLog::Record(const AuditChange& change) {
  std::vector<AuditTrim> trims;
  uint64_t others = 0;
  {
    MutexLock lock(&mutex_);
    if (change.bytes.has_value()) figure_.bytes = static_cast<uint64_t>(*change.bytes);
    for (const AuditTrim& trim : change.trimmed) {
      (trim.aged ? figure_.trimmed_for_age : figure_.trimmed_for_size) += trim.entries;
      Hold(trim);
    }
    const int64_t now_ns = clock_.MonotonicNs();
    if (unsaid_.empty() || (said_ns_ != 0 && now_ns - said_ns_ < kEveryNs)) return;
    said_ns_ = now_ns;
    trims.swap(unsaid_);
    std::swap(others, unsaid_of_others_);
  }
  for (const AuditTrim& trim : trims) say_(Line(trim));
  if (others > 0) say_(absl::StrCat("audit log: ", others, " entries of others are deleted"));
}

AuditFigure AuditTrimLog::Figure() const {
  MutexLock lock(&mutex_);
  return figure_;
}

}  // namespace perfd::daemon
