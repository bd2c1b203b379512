// daemon/limits/limit_table.h - every bound on what peers may hold of perfd: what it bounds, per whom, how much, how to set it.
//
// Shape    LimitTable() has a row for each Limit, in their order. Checks, configuration keys, docs/limits.md and the test of all rows
//          are made from it.
// Units    counts, or what the row's unit says.
#ifndef DAEMON_LIMITS_LIMIT_TABLE_H_
#define DAEMON_LIMITS_LIMIT_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/model/site/limit_use.h"

namespace perfd::daemon {

enum class Limit {
  kTcpConnections,
  kConnectionsPerAddress,
  kConnectionsPerUser,
  kNewConnectionsPerUser,
  kUnknownUsers,
  kCallsPerUser,
  kOpenCallsPerUser,
  kDoorMemory,
  kTlsMemory,
  kQuestionsPerUser,
  kAnswerBytesPerUser,
  kWatches,
  kWatchesPerUser,
  kProfiles,
  kProfilesPerUser,
  kNodeNames,
  kNodeNamesPerUser,
  kGapsPerStream,
  kAuditPerUser,
  kWindowBytesPerUser,
  kMemoryPerUser,
  kActiveBytesPerUser,
  kFinishedBytesPerUser,
  kAlteringSecondsPerUser,
  kProfileMinutes,
  kFrequency,
  kCallPathFrequency,
  kRanksPerUser,
  kThreadsPerUser,
};
inline constexpr size_t kLimits = static_cast<size_t>(Limit::kThreadsPerUser) + 1;

inline constexpr absl::string_view kLimitsSection = "limits.";

struct LimitRange {
  int64_t standard = 0;  // without configuration
  int64_t low = 0;       // what may be configured
  int64_t high = 0;
};

struct LimitRow {
  Limit limit{};
  absl::string_view key;  // of the configuration file; without "limits." its label in /metrics
  LimitPer per{};
  absl::string_view what;       // "calls of watch that stand"
  absl::string_view unit = "";  // of the value; empty: a count
  int64_t period_ns = 0;        // what is taken within it; 0: what is held
  int64_t scale = 1;            // so many of what is counted are one of the value
  bool binds_admins = false;    // also those who have no other limit of their own, but for root
  bool is_counted = true;       // false: not by Limits
  LimitRange range;
  int64_t kept = 0;  // of one of everyone: so many are for administrators and schedulers only
  absl::string_view instead;  // what who is refused can do
};

absl::Span<const LimitRow> LimitTable();
const LimitRow& RowOf(Limit limit);
absl::string_view NameOf(LimitPer per);

using LimitValues = std::array<int64_t, kLimits>;
LimitValues StandardLimits();

// kResourceExhausted, in words: which limit, how much, what to do.
absl::Status Refusal(const LimitRow& row, int64_t value);

// The table as docs/limits.md shows it, and as `perfd --help` does: a line each.
std::string LimitsAsMarkdown();
std::string LimitsAsText();

}  // namespace perfd::daemon

#endif  // DAEMON_LIMITS_LIMIT_TABLE_H_
