#include "agent/sample/event_names.h"

// libpfm4 brings its own copy of the kernel's perf_event.h; this file must not include the system's.
#include <perfmon/pfmlib.h>
#include <perfmon/pfmlib_perf_event.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxSuggestions = 3;
constexpr size_t kMaxKnownNames = 100'000;

// Levenshtein distance, one row at a time.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

// "PERF_COUNT_HW_CPU_CYCLES" is also "CYCLES" to libpfm4; the aliases are events of their own in its tables.
std::vector<std::string> KnownNames() {
  std::vector<std::string> names;
  for (int pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX; ++pmu) {
    pfm_pmu_info_t facts{};
    facts.size = sizeof facts;
    if (pfm_get_pmu_info(static_cast<pfm_pmu_t>(pmu), &facts) != PFM_SUCCESS || !facts.is_present) {
      continue;
    }
    for (int i = facts.first_event; i != -1 && names.size() < kMaxKnownNames;
         i = pfm_get_event_next(i)) {
      pfm_event_info_t event{};
      event.size = sizeof event;
      if (pfm_get_event_info(i, PFM_OS_PERF_EVENT_EXT, &event) == PFM_SUCCESS) {
        names.emplace_back(event.name);
      }
    }
  }
  return names;
}

absl::Status EncodingError(absl::string_view name, int error) {
  std::string text = absl::StrCat("event '", name, "': ", pfm_strerror(error));
  if (error != PFM_ERR_NOTFOUND) return absl::InvalidArgumentError(text);
  // Only the event itself can be misspelt here, not its modifiers or unit masks.
  const std::vector<std::string> near = NearNames(name.substr(0, name.find(':')), KnownNames());
  if (!near.empty()) absl::StrAppend(&text, "; did you mean ", absl::StrJoin(near, ", "), "?");
  absl::StrAppend(&text, " (auto and cpu-clock always work; `showevtinfo` of libpfm4 lists all)");
  return absl::InvalidArgumentError(text);
}

}  // namespace

EventEncoding CpuClockEncoding() {
  return {.name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
}

EventEncoding CyclesEncoding() {
  return {.name = "cycles", .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES};
}

std::vector<std::string> NearNames(absl::string_view name, const std::vector<std::string>& known) {
  const std::string wanted = absl::AsciiStrToLower(name.substr(0, kMaxNameBytes));
  const size_t limit = std::max<size_t>(2, wanted.size() / 3);
  std::vector<std::pair<size_t, std::string>> near;
  for (const std::string& candidate : known) {
    std::string lower = absl::AsciiStrToLower(candidate.substr(0, kMaxNameBytes));
    for (absl::string_view prefix : {"perf_count_hw_cpu_", "perf_count_hw_", "perf_count_sw_"}) {
      lower = std::string(absl::StripPrefix(lower, prefix));
    }
    std::replace(lower.begin(), lower.end(), '_', '-');
    const size_t distance = EditDistance(wanted, lower);
    if (distance <= limit) near.emplace_back(distance, std::move(lower));
  }
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < near.size() && i < kMaxSuggestions; ++i) names.push_back(near[i].second);
  return names;
}

absl::StatusOr<EventEncoding> EncodeEvent(absl::string_view name) {
  if (name == "cpu-clock") return CpuClockEncoding();
  if (name.empty() || name.size() > kMaxNameBytes) {
    return absl::InvalidArgumentError("event: the name is empty or too long");
  }
  const int started = pfm_initialize();
  if (started != PFM_SUCCESS) {
    return absl::UnimplementedError(
        absl::StrCat("event '", name, "': libpfm4 does not know this CPU (", pfm_strerror(started),
                     "); use auto or cpu-clock"));
  }
  perf_event_attr attr{};
  attr.size = sizeof attr;
  char* full_name = nullptr;
  pfm_perf_encode_arg_t argument{};
  argument.attr = &attr;
  argument.fstr = &full_name;
  argument.size = sizeof argument;
  const std::string text(name);
  const int result = pfm_get_os_event_encoding(text.c_str(), PFM_PLM0 | PFM_PLM3,
                                               PFM_OS_PERF_EVENT_EXT, &argument);
  std::free(full_name);  // NOLINT: libpfm4 allocates it with malloc
  if (result != PFM_SUCCESS) return EncodingError(name, result);
  return EventEncoding{.name = text,
                       .type = attr.type,
                       .config = attr.config,
                       .config1 = attr.config1,
                       .config2 = attr.config2,
                       .exclude_user = attr.exclude_user != 0,
                       .exclude_kernel = attr.exclude_kernel != 0,
                       .precise = static_cast<uint32_t>(attr.precise_ip)};
}

}  // namespace perfd::agent
