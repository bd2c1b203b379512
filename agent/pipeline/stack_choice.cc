#include "agent/pipeline/stack_choice.h"

#include <algorithm>

#include "core/base/clock.h"

namespace perfd::agent {
namespace {

constexpr double kFirstSeconds = 0.1;  // credit of the first drain
constexpr double kMostSeconds = 0.5;

}  // namespace

void StackChoice::Begin(int64_t now_ns) {
  const double seconds =
      static_cast<double>(now_ns - begun_ns_) / static_cast<double>(kNsPerSecond);
  credit_ -= static_cast<double>(std::min(room_, candidates_));
  credit_ += per_second_ * (started_ ? std::max(seconds, 0.0) : kFirstSeconds);
  credit_ = std::min(credit_, per_second_ * kMostSeconds);
  started_ = true;
  begun_ns_ = now_ns;
  room_ = static_cast<size_t>(std::max(credit_, 0.0));
  candidates_ = 0;
}

std::optional<size_t> StackChoice::Next() {
  ++candidates_;
  if (candidates_ <= room_) return candidates_ - 1;
  const size_t location = std::uniform_int_distribution<size_t>(0, candidates_ - 1)(random_);
  if (location < room_) return location;
  return std::nullopt;
}

}  // namespace perfd::agent
