#include "daemon/limits/limit_table.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/clock.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kMinuteNs = 60 * kNsPerSecond;
constexpr int64_t kDayNs = 24 * 60 * kMinuteNs;
constexpr char kAsk[] = "or ask who runs perfd to raise it";

// lint: data table
constexpr LimitRow kTable[] = {
    {.limit = Limit::kTcpConnections,
     .key = "limits.connections_tcp",
     .per = LimitPer::kEveryone,
     .what = "connections over TCP",
     .range = {.standard = 16384, .low = 16, .high = 1'000'000},
     .instead = "try again later"},
    {.limit = Limit::kConnectionsPerAddress,
     .key = "limits.connections_per_address",
     .per = LimitPer::kAddress,
     .what = "connections over TCP",
     .range = {.standard = 1024, .low = 4, .high = 1'000'000},
     .instead = "close one"},
    {.limit = Limit::kConnectionsPerUser,
     .key = "limits.connections_per_user",
     .per = LimitPer::kUser,
     .what = "connections to the Unix socket",
     .binds_admins = true,
     .range = {.standard = 64, .low = 4, .high = 65536},
     .instead = "close one"},
    {.limit = Limit::kNewConnectionsPerUser,
     .key = "limits.new_connections_per_user",
     .per = LimitPer::kUser,
     .what = "new connections to the Unix socket",
     .period_ns = kMinuteNs,
     .binds_admins = true,
     .range = {.standard = 600, .low = 60, .high = 1'000'000},
     .instead = "use one connection for many calls"},
    {.limit = Limit::kUnknownUsers,
     .key = "limits.unknown_users",
     .per = LimitPer::kEveryone,
     .what = "user ids with connections that the user database does not know",
     .range = {.standard = 16, .low = 1, .high = 256},
     .instead = "wait until others have left"},
    {.limit = Limit::kCallsPerUser,
     .key = "limits.calls_per_user",
     .per = LimitPer::kUser,
     .what = "calls on the Unix socket; more have to wait",
     .period_ns = kMinuteNs,
     .binds_admins = true,
     .is_counted = false,
     .range = {.standard = 30000, .low = 600, .high = 6'000'000},
     .instead = "wait"},
    {.limit = Limit::kOpenCallsPerUser,
     .key = "limits.open_calls_per_user",
     .per = LimitPer::kUser,
     .what = "calls under way on the Unix socket",
     .binds_admins = true,
     .range = {.standard = 256, .low = 64, .high = 65536},
     .instead = "wait, or end some"},
    {.limit = Limit::kDoorMemory,
     .key = "limits.request_mib_per_user",
     .per = LimitPer::kUser,
     .what = "requests on their way in on the Unix socket",
     .unit = "MiB",
     .scale = 1 << 20,
     .binds_admins = true,
     .range = {.standard = 64, .low = 32, .high = 4096},
     .instead = "wait, or use fewer connections at once"},
    {.limit = Limit::kTlsMemory,
     .key = "limits.request_mib_tls",
     .per = LimitPer::kEveryone,
     .what = "requests on their way in over TCP",
     .unit = "MiB",
     .is_counted = false,
     .range = {.standard = 1024, .low = 64, .high = 65536},
     .instead = "wait"},
    {.limit = Limit::kQuestionsPerUser,
     .key = "limits.questions_per_user",
     .per = LimitPer::kUser,
     .what = "calls that wait for their answer",
     .range = {.standard = 32, .low = 2, .high = 128},
     .instead = "wait for one to be answered"},
    {.limit = Limit::kAnswerBytesPerUser,
     .key = "limits.answer_mib_per_user",
     .per = LimitPer::kUser,
     .what = "answers that were not read yet",
     .unit = "MiB",
     .scale = 1 << 20,
     .range = {.standard = 128, .low = 64, .high = 65536},
     .instead = "read the answers"},
    {.limit = Limit::kWatches,
     .key = "limits.watches",
     .per = LimitPer::kEveryone,
     .what = "calls of watch that stand",
     .range = {.standard = 256, .low = 16, .high = 16384},
     .kept = 32,
     .instead = "try again later"},
    {.limit = Limit::kWatchesPerUser,
     .key = "limits.watches_per_user",
     .per = LimitPer::kUser,
     .what = "calls of watch that stand",
     .range = {.standard = 16, .low = 1, .high = 256},
     .instead = "end one"},
    {.limit = Limit::kProfiles,
     .key = "limits.profiles",
     .per = LimitPer::kEveryone,
     .what = "active profiles on the site's agents",
     .range = {.standard = 64, .low = 2, .high = 1024},
     .kept = 8,
     .instead = "wait for one to end"},
    {.limit = Limit::kProfilesPerUser,
     .key = "limits.profiles_per_user",
     .per = LimitPer::kUser,
     .what = "active profiles",
     .range = {.standard = 8, .low = 1, .high = 1024},
     .instead = "wait for one to end, or cancel one"},
    {.limit = Limit::kNodeNames,
     .key = "limits.nodes",
     .per = LimitPer::kEveryone,
     .what = "nodes that are known",
     .range = {.standard = 65536, .low = 16, .high = 65536},
     .instead = "end agents that are not needed"},
    {.limit = Limit::kNodeNamesPerUser,
     .key = "limits.nodes_per_user",
     .per = LimitPer::kUser,
     .what = "nodes with an agent in user mode",
     .binds_admins = true,
     .range = {.standard = 16, .low = 1, .high = 4096},
     .instead = "end one of your agents"},
    {.limit = Limit::kGapsPerStream,
     .key = "limits.gaps_per_stream",
     .per = LimitPer::kStream,
     .what = "gaps in the numbers of the windows that an agent sent",
     .is_counted = false,
     .range = {.standard = 1024, .low = 16, .high = 65536},
     .instead = "move the agent's spool away: it then begins anew"},
    {.limit = Limit::kAuditPerUser,
     .key = "limits.audit_entries_per_user",
     .per = LimitPer::kUser,
     .what = "entries for the audit log from agents in user mode",
     .period_ns = kMinuteNs,
     .binds_admins = true,
     .range = {.standard = 6000, .low = 100, .high = 1000000},
     .instead = "wait a minute"},
    {.limit = Limit::kWindowBytesPerUser,
     .key = "limits.window_mib_per_user",
     .per = LimitPer::kUser,
     .what = "windows from agents in user mode",
     .unit = "MiB",
     .period_ns = kMinuteNs,
     .scale = 1 << 20,
     .binds_admins = true,
     .range = {.standard = 256, .low = 32, .high = 65536},
     .instead = "wait a minute"},
    {.limit = Limit::kMemoryPerUser,
     .key = "limits.memory_mib_per_user",
     .per = LimitPer::kUser,
     .what = "measurements of active profiles in memory",
     .unit = "MiB",
     .scale = 1 << 20,
     .binds_admins = true,
     .range = {.standard = 1024, .low = 16, .high = 1 << 20},
     .instead =
         "keep to fewer processes and functions: what is new in these profiles shares a line"},
    {.limit = Limit::kActiveBytesPerUser,
     .key = "limits.active_mib_per_user",
     .per = LimitPer::kUser,
     .what = "measurements of active profiles in the store",
     .unit = "MiB",
     .scale = 1 << 20,
     .range = {.standard = 4096, .low = 64, .high = 1 << 24},
     .instead = "wait for your active profiles to end, or cancel one"},
    {.limit = Limit::kFinishedBytesPerUser,
     .key = "limits.finished_mib_per_user",
     .per = LimitPer::kUser,
     .what = "finished profiles in the store",
     .unit = "MiB",
     .scale = 1 << 20,
     .binds_admins = true,
     .range = {.standard = 4096, .low = 64, .high = 1 << 24},
     .instead = "save the reports that you need: the oldest go by themselves"},
    {.limit = Limit::kAlteringSecondsPerUser,
     .key = "limits.altering_seconds_per_user",
     .per = LimitPer::kUser,
     .what = "time that profiles may spend on altered loops",
     .unit = "s",
     .period_ns = kDayNs,
     .range = {.standard = 36000, .low = 60, .high = 100'000'000},
     .instead = "ask for a shorter one, for less overhead or none (--variants none), wait until "
                "tomorrow (UTC)"},
    {.limit = Limit::kProfileMinutes,
     .key = "limits.profile_minutes",
     .per = LimitPer::kUser,
     .what = "that a profile may last",
     .unit = "min",
     .is_counted = false,
     .range = {.standard = 10080, .low = 1, .high = 10080},
     .instead = "ask for a shorter one (duration, max_duration)"},
    {.limit = Limit::kFrequency,
     .key = "limits.frequency_hz",
     .per = LimitPer::kUser,
     .what = "that each thread of a profile may be sampled at",
     .unit = "Hz",
     .is_counted = false,
     .range = {.standard = 10000, .low = 1, .high = 10000},
     .instead = "ask for less (hotspots.frequency)"},
    {.limit = Limit::kCallPathFrequency,
     .key = "limits.callpath_frequency_hz",
     .per = LimitPer::kUser,
     .what = "that each thread of a profile that keeps call paths may be sampled at",
     .unit = "Hz",
     .is_counted = false,
     .range = {.standard = 10000, .low = 1, .high = 10000},
     .instead = "ask for less (hotspots.frequency), or without call paths (hotspots.callpaths)"},
    {.limit = Limit::kRanksPerUser,
     .key = "limits.ranks_per_user",
     .per = LimitPer::kUser,
     .what = "ranks of active profiles",
     .range = {.standard = 131072, .low = 1, .high = 1 << 30},
     .instead = "ask for some of them (ranks), or wait for a profile to end"},
    {.limit = Limit::kThreadsPerUser,
     .key = "limits.threads_per_user",
     .per = LimitPer::kUser,
     .what = "threads of active profiles",
     .range = {.standard = 4 << 20, .low = 1, .high = 1 << 30},
     .instead = "ask for some ranks (ranks), or wait for a profile to end"},
};
static_assert(std::size(kTable) == kLimits);

absl::string_view InPeriod(int64_t period_ns) {
  if (period_ns == 0) return "";
  return period_ns == kMinuteNs ? ", in a minute" : ", in a day";
}

}  // namespace

absl::Span<const LimitRow> LimitTable() {
  return kTable;
}

const LimitRow& RowOf(Limit limit) {
  return kTable[static_cast<size_t>(limit)];
}

absl::string_view NameOf(LimitPer per) {
  switch (per) {
    case LimitPer::kEveryone:
      return "everyone";
    case LimitPer::kUser:
      return "one user";
    case LimitPer::kAddress:
      return "one address";
    case LimitPer::kStream:
      return "one agent's stream";
  }
  return "";
}

LimitValues StandardLimits() {
  LimitValues values{};
  for (const LimitRow& row : kTable) values[static_cast<size_t>(row.limit)] = row.range.standard;
  return values;
}

absl::Status Refusal(const LimitRow& row, int64_t value) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the limit of ", value, row.unit.empty() ? "" : " ", row.unit, " ", row.what,
                   " of ", NameOf(row.per), InPeriod(row.period_ns), " is reached: ", row.instead,
                   ", ", kAsk, " (", row.key, ")"));
}

std::string LimitsAsMarkdown() {
  std::string text =
      "| key | bounds | of | standard | from, to | kept back |\n|---|---|---|---|---|---|\n";
  for (const LimitRow& row : kTable) {
    const std::string unit = row.unit.empty() ? "" : absl::StrCat(" ", row.unit);
    absl::StrAppend(&text, "| `", row.key, "` | ", row.what, " | ", NameOf(row.per),
                    row.binds_admins ? ", also an administrator" : "", InPeriod(row.period_ns),
                    " | ", row.range.standard, unit, " | ", row.range.low, ", ", row.range.high,
                    " | ", row.kept == 0 ? "" : absl::StrCat(row.kept), " |\n");
  }
  return text;
}

std::string LimitsAsText() {
  std::string text;
  for (const LimitRow& row : kTable) {
    absl::StrAppendFormat(&text, "  %-33s %6d %-4s %s, of %s%s\n", row.key, row.range.standard,
                          row.unit, row.what, NameOf(row.per), InPeriod(row.period_ns));
  }
  return text;
}

}  // namespace perfd::daemon
