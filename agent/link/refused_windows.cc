#include "agent/link/refused_windows.h"

#include <algorithm>

namespace perfd::agent {

std::optional<uint64_t> RefusedWindows::Ended(const absl::Status& why, const StreamEnd& end) {
  if (!absl::IsInvalidArgument(why) && !absl::IsResourceExhausted(why)) return std::nullopt;
  const bool under_way = end.oldest != 0 && end.sent >= end.oldest;
  // What is stored was readable: some other message is to blame.
  if (!under_way || end.oldest <= end.stored) return std::nullopt;
  const bool alone = end.sent == end.oldest;
  careful_ = std::max(careful_, end.sent);
  if (suspect_ != end.oldest) tries_ = tries_for_size_ = 0;
  suspect_ = end.oldest;
  if (alone) ++(absl::IsResourceExhausted(why) ? tries_for_size_ : tries_);
  if (tries_ < kTries && tries_for_size_ < kTriesForSize) return std::nullopt;
  tries_ = tries_for_size_ = 0;
  return end.oldest;
}

}  // namespace perfd::agent
