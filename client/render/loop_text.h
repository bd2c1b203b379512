// client/render/loop_text.h - one loop down to its ranks and threads.
#ifndef CLIENT_RENDER_LOOP_TEXT_H_
#define CLIENT_RENDER_LOOP_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/render/text_style.h"
#include "core/model/report.h"

namespace perfd::client {

// The loop with this number in the report's order, from 1 on ("3" or "#3"), or the row whose id begins with `text`. Up to
// three digits are always a number, more when there are so many loops. kNotFound, with the range of numbers;
// kInvalidArgument when several ids begin so.
absl::StatusOr<const ReportRow*> FindRow(const Report& report, absl::string_view text);

std::string RenderLoop(const ReportRow& row, const TextStyle& style);

// All compute loops, one line each.
std::string RenderLoopList(const Report& report, const TextStyle& style);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_LOOP_TEXT_H_
