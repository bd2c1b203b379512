#include "agent/sample/perf_clock.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agent/procfs/read_file.h"
#include "core/base/clock.h"
#include "core/base/log.h"

namespace perfd::agent {
namespace {

constexpr size_t kSmallFile = 4096;
constexpr int64_t kMostSeconds = INT64_MAX / kNsPerSecond - 1;

}  // namespace

absl::StatusOr<int64_t> ParseMonotonicOffset(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    // By name, or by the clock's number.
    if (words.empty() || (words[0] != "monotonic" && words[0] != "1")) continue;
    int64_t seconds = 0;
    int64_t ns = 0;
    if (words.size() != 3 || !absl::SimpleAtoi(words[1], &seconds) ||
        !absl::SimpleAtoi(words[2], &ns) || ns < 0 || ns >= kNsPerSecond ||
        seconds < -kMostSeconds || seconds > kMostSeconds) {
      break;
    }
    return seconds * kNsPerSecond + ns;
  }
  return absl::InvalidArgumentError("timens_offsets does not tell the shift of CLOCK_MONOTONIC");
}

int64_t PerfClockOffsetNs(const ProcFs& procfs) {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(procfs.root() + "/self/timens_offsets", kSmallFile);
  if (!text.ok()) return 0;
  const absl::StatusOr<int64_t> offset = ParseMonotonicOffset(*text);
  if (!offset.ok()) LogWarning("{}: times of samples may be wrong", Text(offset.status()));
  return offset.value_or(0);
}

}  // namespace perfd::agent
