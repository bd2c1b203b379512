#include "daemon/limits/peer_log.h"

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kForgetNs = 60 * kNsPerSecond;

}  // namespace

std::optional<uint64_t> PeerLog::Next(const std::string& whose, int64_t now_ns) {
  MutexLock lock(&mutex_);
  auto line = lines_.find(whose);
  if (line == lines_.end()) {
    if (lines_.size() >= kMostPeers)
      std::erase_if(lines_, [now_ns](const auto& item) {
        return now_ns - item.second.asked_ns >= kForgetNs;
      });
    line = lines_.try_emplace(lines_.size() < kMostPeers ? whose : "").first;
  }
  line->second.asked_ns = now_ns;
  return line->second.log.Next(now_ns);
}

std::string LeftOutText(uint64_t left_out) {
  if (left_out == 0) return "";
  return absl::StrCat(" (", left_out, " more since the last such line)");
}

}  // namespace perfd::daemon
