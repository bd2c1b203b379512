// core/model/site/limit_use.h - what one of perfd's limits is for the user who asks, and how much of it is in use.
//
// Shape    rows in the order of perfd's table (daemon/limits/limit_table.h).
// Units    counts, or what `unit` says.
#ifndef CORE_MODEL_SITE_LIMIT_USE_H_
#define CORE_MODEL_SITE_LIMIT_USE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perfd {

// Whose share of it is counted.
enum class LimitPer { kEveryone, kUser, kAddress, kStream };
inline constexpr int kLimitPerCount = 4;

// A user who holds some of it.
struct LimitHolding {
  uint32_t uid = 0;
  int64_t used = 0;

  bool operator==(const LimitHolding&) const = default;
};

struct LimitUse {
  std::string key;  // of the configuration file
  std::string what;
  LimitPer per{};
  std::string unit;
  int64_t period_ns = 0;  // what is taken within it; 0: what is held
  int64_t value = 0;      // how much there is
  int64_t kept = 0;       // of that, for administrators and schedulers only
  bool bound = true;      // false: who asks has no limit of their own
  std::optional<int64_t>
      used;  // of everyone's by everyone, of a user's by who asks; none: it is not counted by user
  uint64_t refusals = 0;  // of anybody, since perfd began
  std::string instead;    // what who is refused can do
  std::vector<LimitHolding>
      most;  // for administrators: the users with most of it, from most to least

  bool operator==(const LimitUse&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_SITE_LIMIT_USE_H_
