#include "client/render/live_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/render/report_text.h"
#include "client/render/status_text.h"

namespace perfd::client {
namespace {

constexpr int kProgressCells = 30;
constexpr size_t kMaxNodesShown = 8;
constexpr size_t kMaxLoopsShown = 10;

size_t Width(const TextStyle& style) {
  return static_cast<size_t>(std::max(style.width, 40));
}

std::string HeadLine(const ProfileStatus& status, const TextStyle& style) {
  return absl::StrCat(Clean(status.id), "  ", StateText(status.state, style),
                      status.spec.dry_run ? " (dry run)" : "", "  |",
                      Bar(style, status.course.progress_ratio, kProgressCells), "| ",
                      Percent(status.course.progress_ratio), "  ", status.samples, " samples");
}

std::string NodeLine(const NodeProgress& node) {
  return absl::StrCat("  ", Clean(node.node), ": ", NodePhaseName(node.phase), ", ", node.ranks,
                      " ranks, ", node.threads, " threads, ", node.windows, " windows");
}

std::string LoopLine(const ReportRow& row, double heaviest, const TextStyle& style) {
  const double share = WithCalled(ShownShare(row));
  return absl::StrFormat("  %6s %s  %s  %s", Percent(share),
                         Bar(style, heaviest > 0 ? share / heaviest : 0, 10),
                         Clean(LocationText(row)), Clean(SourceText(row.location.source)));
}

}  // namespace

std::vector<std::string> RenderLive(const ProfileStatus& status,
                                    const std::vector<ReportRow>& loops, const TextStyle& style) {
  const size_t width = Width(style);
  std::vector<std::string> lines;
  // The head holds colour codes, which take no columns: it is short enough without a cut at 80 columns.
  lines.push_back(style.color ? HeadLine(status, style) : CutEnd(HeadLine(status, style), width));
  if (const std::string known = KnownText(status); !known.empty())
    lines.push_back(CutEnd("  " + known, width));
  const size_t nodes = std::min(status.nodes.size(), kMaxNodesShown);
  for (size_t i = 0; i < nodes; ++i) lines.push_back(CutEnd(NodeLine(status.nodes[i]), width));
  if (nodes < status.nodes.size())
    lines.push_back(absl::StrCat("  ... and ", status.nodes.size() - nodes, " more nodes"));
  const size_t shown = std::min(loops.size(), kMaxLoopsShown);
  for (size_t i = 0; i < shown; ++i)
    lines.push_back(
        CutEnd(LoopLine(loops[i], WithCalled(ShownShare(loops.front())), style), width));
  return lines;
}

std::string Redraw(size_t lines_before, const std::vector<std::string>& lines) {
  // Source: ECMA-48 CUU (cursor up), EL 2 (erase line), ED 0 (erase below).
  std::string text;
  if (lines_before > 0) absl::StrAppend(&text, "\x1b[", lines_before, "A");
  for (const std::string& line : lines) absl::StrAppend(&text, "\r\x1b[2K", line, "\n");
  return absl::StrCat(text, "\x1b[0J");
}

std::string RenderLogLine(const ProfileStatus& status, const std::vector<ReportRow>& loops) {
  std::string line =
      absl::StrCat(Clean(status.id), " ", ProfileStateName(status.state),
                   status.spec.dry_run ? " (dry run) " : " ", Percent(status.course.progress_ratio),
                   " ", status.samples, " samples");
  if (const std::string known = KnownText(status); !known.empty())
    absl::StrAppend(&line, ", ", known);
  if (!loops.empty())
    absl::StrAppend(&line, ", heaviest loop ", Percent(WithCalled(ShownShare(loops.front()))), " ",
                    Clean(LocationText(loops.front())), " ",
                    Clean(SourceText(loops.front().location.source)));
  return line + "\n";
}

}  // namespace perfd::client
