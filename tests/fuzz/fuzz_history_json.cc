// Whatever a file of an archive holds: an error, or a profile within its limits that can be compared with itself.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/analysis/jobs/history.h"
#include "core/json/history_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto profile = perfd::HistoryFromReportJson(text);
  if (!profile.ok()) return 0;
  if (profile->id.empty() || profile->loops.size() > perfd::kMaxHistoryLoops) std::abort();
  for (const perfd::HistoryLoop& loop : profile->loops) {
    if (!std::isfinite(loop.cpu.share) || !std::isfinite(loop.cycles) || loop.first_line < 0)
      std::abort();
    if (loop.wall && !std::isfinite(loop.wall->share)) std::abort();
  }
  const std::vector<perfd::HistoryProfile> twice = {*profile, *profile};
  (void)perfd::LoopsOverTime(twice);
  return 0;
}
