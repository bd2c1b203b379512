// client/render/loop_text.h - one loop down to its ranks and threads.
#ifndef CLIENT_RENDER_LOOP_TEXT_H_
#define CLIENT_RENDER_LOOP_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/render/text_style.h"
#include "core/model/report.h"

namespace perfd {

// The row whose id begins with `prefix`: kNotFound, or kInvalidArgument when several do.
absl::StatusOr<const ReportRow*> FindRow(const Report& report, absl::string_view prefix);

std::string RenderLoop(const ReportRow& row, const TextStyle& style);

// All compute loops, one line each.
std::string RenderLoopList(const Report& report, const TextStyle& style);

}  // namespace perfd

#endif  // CLIENT_RENDER_LOOP_TEXT_H_
