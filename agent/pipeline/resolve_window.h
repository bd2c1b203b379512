// agent/pipeline/resolve_window.h - addresses become functions and loops: RawWindow -> Window.
//
// Shape    pure but for the lookups it makes through the CodeIndex. Rows of the same place and thread are added up.
// Loss     none: sum of samples in == sum of samples out. Beyond kMaxWindowLocations the lightest places of a category
//          become that category's "(other)".
#ifndef AGENT_PIPELINE_RESOLVE_WINDOW_H_
#define AGENT_PIPELINE_RESOLVE_WINDOW_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "agent/pipeline/code_index.h"
#include "agent/pipeline/raw_window.h"
#include "core/model/window.h"

namespace perfd::agent {

inline constexpr size_t kMaxWindowLocations = 4096;

struct UnreadableModule {
  std::string path;
  absl::Status status;  // why it could not be read; OK: it could, but its lines
  LinesProblem lines = LinesProblem::kNone;
};
using UnreadableModules = std::vector<UnreadableModule>;

// `timeout`: for all modules together. Those that it does not suffice for are among the unreadable, and what was known of
// them before is used.
Window ResolveWindow(RawWindow raw, CodeIndex& index, absl::Duration timeout,
                     UnreadableModules* unreadable);

// Time here may be of a loop that called it. Time in a loop is its own, what waits is nobody's work, and of the kernel a path does
// not tell the cause, which its rows have.
bool MayBeCalled(const CodeLocation& at);

// Folds the lightest locations into "(other)" until at most `limit` are left. Totals per category and thread stay.
void FoldLightLocations(Window& window, size_t limit);

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_RESOLVE_WINDOW_H_
