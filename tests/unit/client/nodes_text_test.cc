#include "client/render/site/nodes_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/doctor/node_checks.h"
#include "agent/procfs/procfs.h"
#include "client/render/status_text.h"
#include "tests/unit/client/sample_report.h"

namespace perfd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(NodesTextTest, OneLinePerNode) {
  NodeStatus node;
  node.node = "node1";
  node.connected = true;
  node.version = "0.2.0";
  node.cpus = 64;
  node.kernel = "6.1";
  node.last_seen_unix_ns = 1'000'000'000;
  node.health.resident_bytes = 20'000'000;
  EXPECT_EQ(
      RenderNodes({node}, 4'000'000'000),
      "  NODE   STATE      SEEN     VERSION  CPUS  EVENT  MODE    VARIANTS  SESSIONS   MEMORY  "
      "SPOOL  KERNEL\n"
      "  node1  connected  3 s ago  0.2.0      64  none   system  ?                0  20.0 MB      "
      "0  6.1\n");
  EXPECT_THAT(RenderNodes({}, 0), HasSubstr("systemctl start perf-agent"));
}

TEST(NodesTextTest, SaysWhereAndWhyNoLoopIsAltered) {
  NodeStatus able;
  able.node = "node1";
  able.health.can_inject = true;
  NodeStatus unable;
  unable.node = "node2";
  unable.health.inject_reason = "/etc/perfd/no-injection exists\x1b";
  const std::string text = RenderNodes({able, unable}, 0);
  EXPECT_THAT(text, HasSubstr("system  yes"));
  EXPECT_THAT(text, HasSubstr("system  no "));
  EXPECT_THAT(text, HasSubstr("\n  node2: no loop is altered: /etc/perfd/no-injection exists"));
  EXPECT_THAT(text, Not(HasSubstr("node1: no loop")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(NodesTextTest, DoctorPrintsTheFixBelowTheFailure) {
  const std::vector<DoctorReport> reports = {
      {"node1",
       {{"perf_event_paranoid", false, false, "4", "sysctl kernel.perf_event_paranoid=2"},
        {"pmu", false, true, "none", ""},
        {"libdw", true, false, "0.188", ""}}}};
  EXPECT_EQ(RenderDoctor(reports, {}),
            "node1\n"
            "  FAIL  perf_event_paranoid: 4\n"
            "          fix: sysctl kernel.perf_event_paranoid=2\n"
            "  note  pmu: none\n"
            "  ok    libdw: 0.188\n"
            "Some checks failed; the lines after `fix:` repair them.\n");
  EXPECT_FALSE(AllWell(reports));
}

// The checks that this host's agent makes, whatever it finds here.
TEST(NodesTextTest, EveryCheckOfAnAgentHasALineOfOurOwn) {
  agent::NodeCheckOptions options;
  options.reader_binary = options.tracer_binary = "/nonexistent/program";
  options.user_mode = true;
  const auto checks = agent::RunNodeChecks(agent::ProcFs(), options);
  EXPECT_GT(checks.size(), 20u);
  for (const agent::NodeCheck& check : checks) {
    if (check.name == "altering loops") continue;  // what stands against it is known there
    EXPECT_THAT(FixOf(check.name), Not(HasSubstr("on that node"))) << check.name;
  }
  EXPECT_EQ(FixOf("$(reboot)"), "perf-agent doctor  # on that node: says what to do");
}

TEST(StatusTextTest, Status) {
  EXPECT_EQ(RenderStatus(SampleReport().status, {}),
            "Profile p-000042  DONE\n"
            "  name       demo\n"
            "  target     command lulesh2.0, ranks all\n"
            "  requester  alice (uid 1000)\n"
            "  submitted  2023-11-14 22:13:20 UTC\n"
            "  started    2023-11-14 22:13:21 UTC (first sample after 0.80 s)\n"
            "  finished   2023-11-14 22:14:21 UTC\n"
            "  progress   100.0% of 1m, 1000 samples\n"
            "\n"
            "  NODE   PHASE     RANKS  THREADS  COVERED S  WINDOWS\n"
            "  node1  finished      1        2      60.00       12\n"
            "warning: node2: pid 77: rank ended early\n"
            "note: no PMU here\n");
}

TEST(StatusTextTest, Targets) {
  TargetSpec target;
  target.pids = {1};
  target.node = "n";
  EXPECT_EQ(TargetText(target), "pid 1 on n");
  target.pids.assign(10, 7);
  EXPECT_EQ(TargetText(target), "pids 7, 7, 7, 7, 7, 7, 7, 7 and 2 more on n");
  target = {};
  target.slurm_job = 4711;
  EXPECT_EQ(TargetText(target), "job 4711");
}

TEST(StatusTextTest, List) {
  EXPECT_EQ(RenderProfileList({}, {}), "No profiles.\n");
  EXPECT_THAT(RenderProfileList({SampleReport().status}, {}),
              HasSubstr("p-000042  DONE     100.0%     1000  alice"));
}

}  // namespace
}  // namespace perfd::client
