// client/render/dry_run/dry_run.h - the answer of a dry run: which loops would be patched, which refused, and what it would cost.
//
// Shape    SummarizeDryRun puts the report of a dry run together loop by loop, heaviest first; when no agent answered, its hot
//          loops are refused with that reason. The text is a table, the JSON has
//            id, state, dry_run, loops[], patched_loops, patched_share, refused_share, budget{}, predicted{}, notices[], spec
//            loop     loop_id, function, file, first_line, last_line, share, would_be_patched, ranks_patched, ranks_total,
//                     variants[], refusals[], remarks[], predicted{}
//            refusal  variant ("": the whole loop), instruction, reason, ranks, rank_names[] (at most some)
//            predicted  fork_ns, later_fault_ns, most_run_ns of one shadow; verdict_shadows, least_ratio, most_ratio of the
//                     duration, least_shadows, most_shadows that the budget buys
// Units    ns of wall time, ratios 0..1, addresses as "0x..." text.
// Threads  thread-safe (pure).
#ifndef CLIENT_RENDER_DRY_RUN_DRY_RUN_H_
#define CLIENT_RENDER_DRY_RUN_DRY_RUN_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/render/text_style.h"
#include "core/analysis/injection_forecast.h"
#include "core/model/report.h"

namespace perfd::client {

struct DryRunRefusal {
  Refusal refusal;                 // count: ranks
  std::vector<std::string> ranks;  // "rank 3 on node17", those that the report lists
};

struct DryRunLoop {
  std::string loop_id;
  std::string place;  // function, or the location's key when the report lacks the loop
  SourceRange source;
  double share = 0;
  uint64_t ranks_patched = 0;
  uint64_t ranks_total = 0;
  std::vector<std::string> variants;  // that some rank could make, in the order of the request
  std::vector<DryRunRefusal> refusals;
  std::vector<std::string> remarks;  // what copies leave out
  PredictedCost predicted;

  bool patched() const { return ranks_patched > 0; }
};

struct DryRunSummary {
  std::vector<DryRunLoop> loops;
  size_t patched_loops = 0;
  double patched_share = 0;  // of the job's time
  double refused_share = 0;
  PredictedCost predicted;  // one shadow of every loop that would be patched
  CostForecast forecast;    // of them all; shadows: of each
};

DryRunSummary SummarizeDryRun(const Report& report);

std::string RenderDryRun(const Report& report, const TextStyle& style);
nlohmann::ordered_json DryRunToJson(const Report& report);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_DRY_RUN_DRY_RUN_H_
