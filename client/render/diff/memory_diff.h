// client/render/diff/memory_diff.h - the accesses to memory of two reports compared: of the whole job, and loop by loop.
//
// Rules    compared is the share of the time of loads that was spent beyond L2. There is no change where one of the two has no
//          such share, nor where other events or other latencies were sampled: these see other loads.
//          A change is significant only when the two 95 % intervals do not overlap.
// Units    ratios 0..1; change = share in B - share in A.
#ifndef CLIENT_RENDER_DIFF_MEMORY_DIFF_H_
#define CLIENT_RENDER_DIFF_MEMORY_DIFF_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/render/diff/report_diff.h"
#include "client/render/text_style.h"
#include "core/model/report.h"

namespace perfd::client {

struct MemoryDiff {
  const LoopDiff* loop = nullptr;    // null: the whole job
  const MemoryFigures* a = nullptr;  // null: no access was sampled there
  const MemoryFigures* b = nullptr;
  std::optional<double> change;
  bool significant = false;
};

bool SameMemoryEvents(const MemoryReport& a, const MemoryReport& b);

// The job, then the loops that have accesses, as in `loops`; empty: neither report has any. All three must outlive the result.
std::vector<MemoryDiff> DiffMemory(const Report& a, const Report& b,
                                   const std::vector<LoopDiff>& loops);

// Empty as well then.
std::string RenderMemoryDiff(const Report& a, const Report& b, const std::vector<LoopDiff>& loops,
                             const TextStyle& style);
// {a_beyond_l2, a_low, a_high, b_..., change, significant}; null: nothing was sampled there, not told, not comparable.
nlohmann::ordered_json MemoryDiffToJson(const MemoryDiff& diff);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_DIFF_MEMORY_DIFF_H_
