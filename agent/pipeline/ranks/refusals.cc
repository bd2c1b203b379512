#include "agent/pipeline/ranks/refusals.h"

#include "absl/strings/str_cat.h"

namespace perfd::agent {

void Refusals::Report(const Key& key, const absl::Status& reason,
                      std::vector<RejectedProcess>* out) {
  if (told_.size() > kMaxTold || told_.contains(key)) return;
  told_.insert(key);
  if (told_.size() <= kMaxTold) {
    out->push_back({key.first, reason});
    return;
  }
  out->push_back(
      {0, absl::ResourceExhaustedError(absl::StrCat("more than ", kMaxTold,
                                                    " processes of the target are refused on this "
                                                    "node: the others are not named"))});
}

std::vector<RejectedProcess> Refusals::AtOnce(const std::vector<RejectedProcess>& rejected) {
  std::vector<RejectedProcess> tell;
  for (const RejectedProcess& process : rejected)
    Report({process.pid, std::string(process.reason.message())}, process.reason, &tell);
  return tell;
}

std::vector<RejectedProcess> Refusals::Update(const std::vector<RejectedProcess>& rejected) {
  std::map<Key, Seen> now;
  std::vector<RejectedProcess> tell;
  for (const RejectedProcess& process : rejected) {
    if (absl::IsNotFound(process.reason)) continue;
    const Key key{process.pid, std::string(process.reason.message())};
    const bool lasting = seen_.contains(key);
    if (lasting && !absl::IsUnavailable(process.reason)) Report(key, process.reason, &tell);
    now[key] = {process.reason, lasting};
  }
  seen_ = std::move(now);
  return tell;
}

std::vector<RejectedProcess> Refusals::End() {
  std::vector<RejectedProcess> tell;
  for (const auto& [key, seen] : seen_) {
    if (seen.lasting) Report(key, seen.reason, &tell);
  }
  return tell;
}

}  // namespace perfd::agent
