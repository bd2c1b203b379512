#include "daemon/limits/peer_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kForgetNs = 60 * kNsPerSecond;

}  // namespace

// Null: a new one. Who has written nothing for a second makes room; for a minute where something was left out.
PeerLog::Line* PeerLog::LineOf(const std::string& whose, int64_t now_ns) {
  const auto known = lines_.find(whose);
  if (known != lines_.end()) return &known->second;
  if (lines_.size() < kMostPeers) return nullptr;
  std::erase_if(lines_, [now_ns](const auto& item) {
    const int64_t silent_ns = now_ns - item.second.written_ns;
    return silent_ns >= (item.second.left_out == 0 ? kNsPerSecond : kForgetNs);
  });
  if (lines_.size() < kMostPeers) return nullptr;
  const auto shared = lines_.find("");
  return shared == lines_.end() ? nullptr : &shared->second;
}

std::optional<uint64_t> PeerLog::Next(const std::string& whose, int64_t now_ns) {
  MutexLock lock(&mutex_);
  Line* const line = LineOf(whose, now_ns);
  if (line == nullptr) {
    lines_.emplace(lines_.size() < kMostPeers ? whose : "", Line{.written_ns = now_ns});
    return 0;
  }
  if (now_ns - line->written_ns < kNsPerSecond) {
    ++line->left_out;
    return std::nullopt;
  }
  line->written_ns = now_ns;
  return std::exchange(line->left_out, 0);
}

std::string LeftOutText(uint64_t left_out) {
  if (left_out == 0) return "";
  return absl::StrCat(" (", left_out, " more since the last such line)");
}

}  // namespace perfd::daemon
