#include "client/render/site/nodes_text.h"

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

std::string Heading(const DoctorReport& report) {
  if (report.source != DoctorSource::kUserAgent) return Clean(report.place);
  return absl::StrCat(Clean(report.place), " (agent of user ", report.uid, ")");
}

struct CheckFix {
  absl::string_view check;
  absl::string_view fix;
};

constexpr absl::string_view kUnitGivesIt =
    "systemctl restart perf-agent  # its unit gives the capability: deploy/systemd";
constexpr absl::string_view kReinstall = "install the package of perfd on the node again";

// By the names that the checks of agent/doctor have.
// lint: data table
constexpr CheckFix kFixes[] = {
    {"agent", "systemctl restart perf-agent"},
    {"kernel.perf_event_paranoid", "sysctl -w kernel.perf_event_paranoid=1"},
    {"kernel.perf_event_mlock_kb", "sysctl -w kernel.perf_event_mlock_kb=2048"},
    {"kernel.perf_event_max_sample_rate", "sysctl -w kernel.perf_event_max_sample_rate=100000"},
    {"kernel.kptr_restrict", "sysctl -w kernel.kptr_restrict=0"},
    {"perf_event_open cpu-clock",
     "sysctl -w kernel.perf_event_paranoid=1  # else boot a kernel with CONFIG_PERF_EVENTS=y"},
    {"perf_event_open cycles",
     "virsh edit MACHINE  # <features><pmu state='on'/></features>, when it is a virtual machine"},
    {"memory samples",
     "virsh edit MACHINE  # let it have the PMU with PEBS or IBS, when it is a virtual machine; "
     "where they are not permitted: "
     "sysctl -w kernel.perf_event_paranoid=1"},
    {"CAP_PERFMON", kUnitGivesIt},
    {"CAP_SYS_PTRACE", kUnitGivesIt},
    {"CAP_CHECKPOINT_RESTORE", kUnitGivesIt},
    {"CAP_IPC_LOCK", kUnitGivesIt},
    {"CAP_DAC_READ_SEARCH", kUnitGivesIt},
    {"CAP_SETUID, CAP_SETGID", kUnitGivesIt},
    {"kernel.yama.ptrace_scope",
     "sysctl -w kernel.yama.ptrace_scope=0  # from 3 only with a reboot: /etc/sysctl.d"},
    {"RLIMIT_NOFILE", "LimitNOFILE=65536 in perf-agent.service"},
    {"kernel version", "apt-get install linux-image-amd64  # 5.12 or later, then reboot"},
    {"cgroup for perf", "mount -t cgroup2 cgroup2 /sys/fs/cgroup"},
    {"transparent huge pages", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"},
    {"programs kept from their users", "let an administrator profile them"},
    {"seccomp filters", "boot a kernel with CONFIG_SECCOMP_FILTER=y"},
    {"perf-agent-reader", kReinstall},
    {"perf-agent-tracer", kReinstall},
    {"debug symbols of libc", "apt-get install libc6-dbg"},
    {"user mode", "sysctl -w kernel.perf_event_paranoid=1  # see docs/user_mode.md"},
};

std::string ModeText(const NodeStatus& node) {
  if (!node.user_mode) return "system";
  return absl::StrCat(node.replayed ? "recording, user " : "user ", node.uid);
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
               ModeText(n), InjectionText(n.health),
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
    absl::StrAppend(&text, Painted(style, Paint::kBold, Heading(report)), "\n");
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

std::string FixOf(absl::string_view check) {
  for (const CheckFix& known : kFixes) {
    if (known.check == check) return std::string(known.fix);
  }
  return "perf-agent doctor  # on that node: says what to do";
}

bool AllWell(const std::vector<DoctorReport>& reports) {
  return std::all_of(reports.begin(), reports.end(), Passes);
}

}  // namespace perfd::client
