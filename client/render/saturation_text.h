// client/render/saturation_text.h - what the variants said, as a person reads it: the table of the report.
//
// Shape    loops in the order of what a fix would save; for each its verdict, a line with a bar for every variant, what is
//          open or refused, and remarks. Empty when no loop was measured or refused.
// Units    saturations T(V) / T(base) as numbers with +- (the wider half of the 95 % interval); gains in % of the job.
// Threads  thread-safe (pure).
#ifndef CLIENT_RENDER_SATURATION_TEXT_H_
#define CLIENT_RENDER_SATURATION_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "client/render/text_style.h"
#include "core/model/report.h"

namespace perfd::client {

// At most `top` loops; 0: all.
std::string RenderSaturations(const Report& report, const TextStyle& style, int top);

// What the injections cost, for the report's cost section; empty when there were none.
std::string RenderInjection(const Report& report);

// Pieces shared with the drill-down.
// "0.97 +-0.01"; "0.97 unsure"; "0.97" alone where there is no interval
std::string SaturationText(const Ratio& ratio, const TextStyle& style);
// "35.0% [30.1, 40.2] perfect cache (DL1)"; "... (DL1, measured on 1 of 2 ranks)"
std::string GainText(const Gain& gain);
// "1 of 2"; "2" where all were or it is not told
std::string RanksText(const MeasuredRanks& ranks);
// "0.62 +-0.05 (warm, 45 runs in 3 shadows, against 15 live instances)", and why it is not 1.
std::string FidelityText(const Fidelity& fidelity, absl::string_view protocol,
                         const TextStyle& style);
std::string RefusalText(const Refusal& refusal);
// "memory bound", "memory bound (unsure)", "unknown: too noisy"
std::string BoundText(Bound bound, bool sure, Silence why);
std::string BoundText(const LoopVerdict& loop);
std::string CostText(const InjectionCost& cost);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_SATURATION_TEXT_H_
