#include "client/render/status_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/render/report_totals.h"
#include "client/render/text_table.h"
#include "core/base/clock.h"
#include "core/spec/units.h"

namespace perfd::client {
namespace {

constexpr size_t kMaxPidsShown = 8;

std::string PidsText(const std::vector<int32_t>& pids) {
  const size_t shown = std::min(pids.size(), kMaxPidsShown);
  std::string text = absl::StrJoin(pids.begin(), pids.begin() + static_cast<int64_t>(shown), ", ");
  if (shown < pids.size()) absl::StrAppend(&text, " and ", pids.size() - shown, " more");
  return absl::StrCat(pids.size() == 1 ? "pid " : "pids ", text);
}

std::string NodeTable(const std::vector<NodeProgress>& nodes) {
  TextTable table({{"NODE"},
                   {"PHASE"},
                   {"RANKS", true},
                   {"THREADS", true},
                   {"COVERED S", true},
                   {"WINDOWS", true}});
  for (const NodeProgress& n : nodes)
    table.Add({n.node, NodePhaseName(n.phase), absl::StrCat(n.ranks), absl::StrCat(n.threads),
               Seconds(static_cast<double>(n.covered_ns) / kNsPerSecond), absl::StrCat(n.windows)});
  return table.empty() ? "" : "\n" + table.Render();
}

std::string LengthText(const ProfileSpec& spec) {
  if (!spec.until_known) return FormatDuration(spec.duration_ns);
  return absl::StrCat("the time until the hot loops are known (at most ",
                      FormatDuration(spec.duration_ns), ")");
}

}  // namespace

std::string TargetText(const TargetSpec& target) {
  std::string text;
  if (target.slurm_job.has_value()) text = absl::StrCat("job ", *target.slurm_job);
  if (target.command.has_value()) text = absl::StrCat("command ", Clean(*target.command));
  if (!target.pids.empty()) text = PidsText(target.pids);
  if (target.tree) absl::StrAppend(&text, " and all below");
  if (!target.user.empty()) absl::StrAppend(&text, " of ", Clean(target.user));
  if (!target.node.empty()) absl::StrAppend(&text, " on ", Clean(target.node));
  return text;
}

std::string StateText(ProfileState state, const TextStyle& style) {
  const char* name = ProfileStateName(state);
  if (state == ProfileState::kDone) return Painted(style, Paint::kGreen, name);
  if (state == ProfileState::kFailed) return Painted(style, Paint::kRed, name);
  if (state == ProfileState::kPartial || state == ProfileState::kCancelled)
    return Painted(style, Paint::kYellow, name);
  return name;
}

std::string AboutText(int64_t ns) {
  constexpr int64_t kMinute = 60 * kNsPerSecond;
  constexpr int64_t kStep = 5 * kNsPerSecond;
  if (ns >= kMinute + kMinute / 2) return absl::StrCat((ns + kMinute / 2) / kMinute, " min");
  return absl::StrCat((ns + kStep - 1) / kStep * 5, " s");
}

std::string KnownText(const ProfileStatus& s) {
  const LoopProgress& loops = s.course.loops;
  if (loops.hot <= 0) return "";
  std::string text = absl::StrCat(loops.known, " of ", loops.hot, " hot loops known");
  if (s.spec.until_known && loops.left_ns > 0 && !IsFinal(s.state))
    absl::StrAppend(&text, ", about ", AboutText(loops.left_ns), " to go");
  return text;
}

std::string EndText(EndReason end) {
  switch (end) {
    case EndReason::kNone:
      return "";
    case EndReason::kTime:
      return "its time was over";
    case EndReason::kKnown:
      return "every hot loop is known";
    case EndReason::kNothingLearnt:
      return "nothing more was learnt for long";
    case EndReason::kRanksEnded:
      return "the processes ended";
    case EndReason::kJobEnded:
      return "the scheduler's job ended";
    case EndReason::kCancelled:
      return "it was cancelled";
    case EndReason::kNodesLost:
      return "no agent was left";
  }
  return "";
}

std::string RenderStatus(const ProfileStatus& s, const TextStyle& style) {
  std::string text = Painted(style, Paint::kBold, absl::StrCat("Profile ", Clean(s.id))) + "  ";
  absl::StrAppend(&text, StateText(s.state, style),
                  s.spec.dry_run ? "  (dry run: nothing is altered)\n" : "\n");
  if (!s.name.empty()) absl::StrAppend(&text, "  name       ", Clean(s.name), "\n");
  absl::StrAppend(&text, "  target     ", TargetText(s.spec.target), ", ranks ",
                  FormatRanks(s.spec.ranks), "\n  requester  ", Clean(s.requester.name), " (uid ",
                  s.requester.uid, ")\n  submitted  ", UtcTime(s.submitted_unix_ns),
                  "\n  started    ", UtcTime(s.started_unix_ns));
  if (s.submit_to_first_sample_ns > 0)
    absl::StrAppend(&text, " (first sample after ",
                    Seconds(static_cast<double>(s.submit_to_first_sample_ns) / kNsPerSecond),
                    " s)");
  absl::StrAppend(&text, "\n  finished   ", UtcTime(s.finished_unix_ns), "\n  progress   ",
                  Percent(s.course.progress_ratio), " of ",
                  s.spec.dry_run ? "the look" : LengthText(s.spec), ", ", s.samples, " samples\n");
  if (const std::string known = KnownText(s); !known.empty())
    absl::StrAppend(&text, "  loops      ", known, "\n");
  if (const std::string end = EndText(s.course.end); !end.empty())
    absl::StrAppend(&text, "  ended      ", end, "\n");
  return absl::StrCat(text, NodeTable(s.nodes), RenderNotices(s.notices, style));
}

std::string RenderProfileList(const std::vector<ProfileStatus>& profiles, const TextStyle&) {
  if (profiles.empty()) return "No profiles.\n";
  TextTable table({{"ID"},
                   {"STATE"},
                   {"PROGRESS", true},
                   {"SAMPLES", true},
                   {"USER"},
                   {"SUBMITTED"},
                   {"TARGET"},
                   {"NAME"}});
  for (const ProfileStatus& s : profiles)
    table.Add({s.id, absl::StrCat(ProfileStateName(s.state), s.spec.dry_run ? " (dry run)" : ""),
               Percent(s.course.progress_ratio), absl::StrCat(s.samples), s.requester.name,
               UtcTime(s.submitted_unix_ns), CutEnd(TargetText(s.spec.target), 32),
               CutEnd(Clean(s.name), 32)});
  return table.Render();
}

}  // namespace perfd::client
