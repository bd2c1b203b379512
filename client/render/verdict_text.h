// client/render/verdict_text.h - one measured loop down to ranks, threads and assembly; and the record of injections.
//
// Threads  thread-safe (pure).
#ifndef CLIENT_RENDER_VERDICT_TEXT_H_
#define CLIENT_RENDER_VERDICT_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/render/text_style.h"
#include "core/model/report.h"

namespace perfd::client {

struct VerdictTextOptions {
  TextStyle style;
  std::optional<int32_t> rank;  // down to this rank's threads, trip counts and references
  std::string variant;          // the assembly of this variant beside the loop's; empty: none
};

// The verdict of a loop, or null when it was never tried.
const LoopVerdict* FindVerdict(const Report& report, absl::string_view loop_id);

// kNotFound: no such rank or listing, naming those there are.
absl::StatusOr<std::string> RenderVerdict(const LoopVerdict& loop,
                                          const VerdictTextOptions& options);

// One line each; times in UTC; bytes as hex, "original -> written".
std::string RenderAudit(const std::vector<AuditEntry>& entries);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_VERDICT_TEXT_H_
