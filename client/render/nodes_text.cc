#include "client/render/nodes_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/render/text_table.h"
#include "core/base/clock.h"

namespace perfd::client {
namespace {

std::string Ago(int64_t then_ns, int64_t now_ns) {
  const int64_t seconds = std::max<int64_t>(now_ns - then_ns, 0) / kNsPerSecond;
  if (seconds < 120) return absl::StrCat(seconds, " s ago");
  if (seconds < 7200) return absl::StrCat(seconds / 60, " min ago");
  return absl::StrCat(seconds / 3600, " h ago");
}

std::string Mark(const DoctorCheck& check, const TextStyle& style) {
  if (check.ok) return Painted(style, Paint::kGreen, "ok  ");
  if (check.optional) return Painted(style, Paint::kYellow, "note");
  return Painted(style, Paint::kRed, "FAIL");
}

// Agents of before do not say.
const char* InjectionText(const AgentHealth& health) {
  if (health.can_inject) return "yes";
  return health.inject_reason.empty() ? "?" : "no";
}

bool Passes(const DoctorCheck& check) {
  return check.ok || check.optional;
}

}  // namespace

std::string RenderNodes(const std::vector<NodeStatus>& nodes, int64_t now_unix_ns) {
  if (nodes.empty())
    return "No node is connected. Start perf-agent on a node: systemctl start perf-agent\n";
  TextTable table({{"NODE"},
                   {"STATE"},
                   {"SEEN"},
                   {"VERSION"},
                   {"CPUS", true},
                   {"EVENT"},
                   {"MODE"},
                   {"VARIANTS"},
                   {"SESSIONS", true},
                   {"MEMORY", true},
                   {"SPOOL", true},
                   {"KERNEL"}});
  for (const NodeStatus& n : nodes)
    table.Add({n.node, n.connected ? "connected" : "away", Ago(n.last_seen_unix_ns, now_unix_ns),
               n.version, absl::StrCat(n.cpus),
               n.sampling_event.empty() ? "none" : n.sampling_event,
               n.user_mode ? absl::StrCat("user ", n.uid) : "system", InjectionText(n.health),
               absl::StrCat(n.health.sessions), Bytes(n.health.resident_bytes),
               absl::StrCat(n.health.spooled_windows), n.kernel});
  std::string text = table.Render();
  for (const NodeStatus& n : nodes) {
    if (!n.health.can_inject && !n.health.inject_reason.empty())
      absl::StrAppend(&text, "  ", Clean(n.node),
                      ": no loop is altered: ", Clean(n.health.inject_reason), "\n");
  }
  return text;
}

std::string RenderDoctor(const std::vector<DoctorReport>& reports, const TextStyle& style) {
  std::string text;
  for (const DoctorReport& report : reports) {
    absl::StrAppend(&text, Painted(style, Paint::kBold, Clean(report.place)), "\n");
    for (const DoctorCheck& check : report.checks) {
      absl::StrAppend(&text, "  ", Mark(check, style), "  ", Clean(check.name), ": ",
                      Clean(check.found), "\n");
      if (!check.ok && !check.fix.empty())
        absl::StrAppend(&text, "          fix: ", Clean(check.fix), "\n");
    }
  }
  return text + (AllWell(reports) ? "Everything needed is there.\n"
                                  : "Some checks failed; the lines after `fix:` repair them.\n");
}

bool AllWell(const std::vector<DoctorReport>& reports) {
  return std::all_of(reports.begin(), reports.end(), [](const DoctorReport& report) {
    return std::all_of(report.checks.begin(), report.checks.end(), Passes);
  });
}

}  // namespace perfd::client
