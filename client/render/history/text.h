// client/render/history/text.h - the loops of one program over many profiles, as a person reads them.
//
// Shape    RenderHistory: what changed first, then by share; RenderLoopHistory: one loop, a line for each profile.
// Threads  thread-safe (pure).
#ifndef CLIENT_RENDER_HISTORY_TEXT_H_
#define CLIENT_RENDER_HISTORY_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/render/text_style.h"
#include "core/analysis/jobs/history.h"
#include "core/model/history.h"

namespace perfd::client {

struct HistoryTextOptions {
  TextStyle style;
  size_t top = 12;  // loops shown, and besides all that changed; 0: all
};

std::string RenderHistory(const ProgramHistory& history, const std::vector<LoopSeries>& series,
                          const HistoryTextOptions& options);

// The one series whose loop had an id that begins with `text` in some profile, or whose function has `text` in its name.
// kNotFound; kInvalidArgument when several do.
absl::StatusOr<const LoopSeries*> FindSeries(const std::vector<LoopSeries>& series,
                                             absl::string_view text);
std::string RenderLoopHistory(const ProgramHistory& history, const LoopSeries& series,
                              const TextStyle& style);

// Pieces, for their tests.
// "slower since p-000045 (2026-11-12): 12.1 -> 15.3 cycles an iteration (+26 %)", "steady", "too few profiles".
std::string ChangeText(const ProgramHistory& history, const LoopSeries& series);
// One letter for each profile, from zero to the largest; a blank where there is no figure. The last kMaxSpark profiles.
std::string Spark(const LoopSeries& series, const TextStyle& style);
inline constexpr size_t kMaxSpark = 40;

}  // namespace perfd::client

#endif  // CLIENT_RENDER_HISTORY_TEXT_H_
