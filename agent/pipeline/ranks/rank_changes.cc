#include "agent/pipeline/ranks/rank_changes.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace perfd::agent {

using Severity = Notice::Severity;

void RankChanges::Began(const RankInfo& rank) {
  if (numbers_.size() < kMaxNumbers) numbers_.insert(rank.rank);
}

void RankChanges::Joined(const RankInfo& rank, double seconds) {
  const bool goes_on = numbers_.contains(rank.rank);
  Began(rank);
  if (!MayReport(kJoined)) return;
  notices_->Say(
      Severity::kInfo,
      goes_on ? absl::StrFormat("rank %d goes on as another process (%s) %.1f s after sampling "
                                "began; both count as rank %d",
                                rank.rank, rank.command, seconds, rank.rank)
              : absl::StrFormat("rank %d (%s) joined %.1f s after sampling began", rank.rank,
                                rank.command, seconds),
      rank.pid);
}

void RankChanges::Ended(const RankInfo& rank, double seconds) {
  programs_.erase(rank.pid);
  if (!MayReport(kEnded)) return;
  const std::string text =
      absl::StrFormat("rank %d (%s) ended %.1f s after sampling began; its samples are kept",
                      rank.rank, rank.command, seconds);
  if (follows_job_) {
    notices_->Say(Severity::kInfo, text, rank.pid);
  } else {
    notices_->Warning(absl::NotFoundError(text), rank.pid);
  }
}

void RankChanges::Replaced(const RankInfo& rank, const std::string& executable, double seconds) {
  const auto known = programs_.find(rank.pid);
  if (known != programs_.end() && known->second == executable) return;
  if (!MayReport(kReplaced)) return;
  programs_[rank.pid] = executable;
  notices_->Say(Severity::kInfo,
                absl::StrFormat("rank %d replaced its program (exec) %.1f s after sampling began: "
                                "from then on it runs %s",
                                rank.rank, seconds, executable),
                rank.pid);
}

void RankChanges::End() {
  constexpr std::array<const char*, kKinds> kTexts = {
      " more processes joined than are named here", " more ranks ended than are named here",
      " more times a rank replaced its program than is said here"};
  for (size_t kind = 0; kind < kKinds; ++kind) {
    const uint64_t count = std::exchange(count_[kind], 0);
    if (count > kMaxTold)
      notices_->Say(Severity::kInfo, absl::StrCat(count - kMaxTold, kTexts[kind]), 0);
  }
}

}  // namespace perfd::agent
