#include "client/render/folded.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "client/render/report_text.h"
#include "core/analysis/stack_time.h"

namespace perfd::client {
namespace {

// ';' separates frames and a line break ends the line.
std::string Frame(absl::string_view name) {
  std::string frame = Clean(name);
  std::replace(frame.begin(), frame.end(), ';', ':');
  return frame.empty() ? "?" : frame;
}

// Counts must be whole, and no line may vanish; 2^53 us are 285 years.
int64_t Microseconds(double seconds) {
  return std::llround(std::clamp(seconds * 1e6, 1.0, 0x1p53));
}

std::string Line(const std::vector<std::string>& frames, double seconds) {
  std::string line;
  for (const std::string& frame : frames)
    absl::StrAppend(&line, line.empty() ? "" : ";", Frame(frame));
  return absl::StrCat(line, " ", Microseconds(seconds), "\n");
}

}  // namespace

std::vector<std::string> LocateFrames(const ReportRow& row) {
  const CodeLocation& at = row.location;
  const bool module = !at.module_path.empty();
  std::vector<std::string> frames = {
      module ? BaseName(at.module_path) : std::string(CategoryName(at.category)),
      at.function.empty() ? "?" : at.function};
  if (!at.loop.has_value()) return frames;
  const std::string place = at.source.file.empty()
                                ? absl::StrCat("0x", absl::Hex(at.loop->header))
                                : absl::StrCat(BaseName(at.source.file), ":", at.source.first_line);
  frames.push_back(absl::StrCat("loop@", place));
  return frames;
}

std::string RenderFolded(const Report& report) {
  std::string text;
  const std::vector<double> seconds = StackSeconds(report);
  for (size_t i = 0; i < report.stacks.size(); ++i) {
    const ReportStack& stack = report.stacks[i];
    std::vector<std::string> frames = {absl::StrCat("rank ", stack.rank)};
    frames.insert(frames.end(), stack.frames.begin(), stack.frames.end());
    text += Line(frames, seconds[i]);
  }
  if (!report.stacks.empty()) return text;
  const double job_seconds = JobSeconds(report);
  for (const auto* rows : {&report.loops, &report.waiting, &report.functions}) {
    for (const ReportRow& row : *rows) text += Line(LocateFrames(row), row.share * job_seconds);
  }
  return text;
}

}  // namespace perfd::client
