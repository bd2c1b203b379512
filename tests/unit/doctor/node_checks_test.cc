#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "agent/doctor/injection_check.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

class NodeChecksTest : public testing::Test {
 protected:
  NodeChecksTest() {
    proc_.AddProcess({.pid = 7, .executable = "/usr/bin/perf-agent"});
    SetCapabilities("000001ffffffffff");
    Sysctl("perf_event_paranoid", "1");
    Sysctl("perf_event_mlock_kb", "516");
    Sysctl("perf_event_max_sample_rate", "100000");
    Sysctl("kptr_restrict", "0");
    Sysctl("osrelease", "6.1.0-18-amd64");
    Sysctl("seccomp/actions_avail", "kill_process kill_thread errno");
    proc_.Write("mounts", "none /cg cgroup2 rw 0 0\n");
    proc_.Write("kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    proc_.Write(".build-id/x", "");
    const std::string pmu = "bus/event_source/devices/cpu/";
    proc_.Write(pmu + "type", "4\n");
    proc_.Write(pmu + "format/event", "config:0-7\n");
    proc_.Write(pmu + "events/mem-loads", "event=0xcd\n");
    options_.pid = 7;
    options_.sys_root = options_.debug_root = proc_.root();
    options_.probe = [](const perf_event_attr&) { return 0; };
  }
  void Sysctl(const std::string& name, const std::string& value) {
    proc_.Write("sys/kernel/" + name, value + "\n");
  }
  void SetCapabilities(const std::string& hex) {
    proc_.Write("7/status", "Tgid:\t7\nCapEff:\t" + hex + "\n");
  }
  NodeCheck Check(const std::string& name) {
    for (const NodeCheck& check : RunNodeChecks(ProcFs(proc_.root()), options_)) {
      if (check.name == name) return check;
    }
    ADD_FAILURE() << "no check " << name;
    return {};
  }

  FakeProc proc_;
  NodeCheckOptions options_;
};

TEST_F(NodeChecksTest, AGoodNodePasses) {
  for (const NodeCheck& check : RunNodeChecks(ProcFs(proc_.root()), options_)) {
    if (check.name == "RLIMIT_NOFILE") continue;  // of the machine that runs the test
    EXPECT_TRUE(check.ok) << check.name << ": " << check.found;
    EXPECT_EQ(check.fix, "") << check.name;
  }
}

TEST_F(NodeChecksTest, EveryFailureCarriesALineThatFixesIt) {
  SetCapabilities("0");
  for (const char* name : {"perf_event_paranoid", "kptr_restrict"}) Sysctl(name, "3");
  Sysctl("perf_event_mlock_kb", "515");
  Sysctl("perf_event_max_sample_rate", "9999");
  Sysctl("osrelease", "5.11.99");
  Sysctl("seccomp/actions_avail", "");
  Sysctl("yama/ptrace_scope", "1");
  proc_.Write("mounts", "none / ext4 rw 0 0\n");
  proc_.Write("kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  options_.debug_root = "/nonexistent";
  options_.reader_binary = "/nonexistent/reader";
  options_.tracer_binary = "/nonexistent/tracer";
  options_.probe = [](const perf_event_attr&) { return EACCES; };
  for (const NodeCheck& check : RunNodeChecks(ProcFs(proc_.root()), options_)) {
    if (check.name == "RLIMIT_NOFILE") continue;
    if (check.name == "programs kept from their users") continue;  // nothing to mend
    EXPECT_FALSE(check.ok) << check.name << ": " << check.found;
    EXPECT_NE(check.fix, "") << check.name;
    EXPECT_NE(check.found, "") << check.name;
  }
  EXPECT_EQ(Check("kernel.perf_event_paranoid").fix, "sysctl -w kernel.perf_event_paranoid=1");
  EXPECT_EQ(Check("perf_event_open cpu-clock").fix, "sysctl -w kernel.perf_event_paranoid=1");
  EXPECT_EQ(Check("CAP_PERFMON").fix,
            "setcap "
            "cap_perfmon,cap_sys_ptrace,cap_ipc_lock,cap_dac_read_search,cap_checkpoint_restore+ep "
            "/usr/bin/perf-agent");
  EXPECT_EQ(Check("kernel.yama.ptrace_scope").fix, "sysctl -w kernel.yama.ptrace_scope=0");
}

TEST_F(NodeChecksTest, CapabilitiesExcuseSysctls) {
  Sysctl("perf_event_paranoid", "3");
  EXPECT_TRUE(Check("kernel.perf_event_paranoid").ok);
  EXPECT_THAT(Check("kernel.perf_event_paranoid").found, HasSubstr("3"));
}

TEST_F(NodeChecksTest, BoundariesOfTheSysctls) {
  SetCapabilities("0");
  EXPECT_TRUE(Check("kernel.perf_event_paranoid").ok);
  EXPECT_TRUE(Check("kernel.perf_event_mlock_kb").ok);
  Sysctl("perf_event_paranoid", "2");
  Sysctl("perf_event_max_sample_rate", "10000");
  Sysctl("osrelease", "5.12.0");
  EXPECT_FALSE(Check("kernel.perf_event_paranoid").ok);
  EXPECT_TRUE(Check("kernel.perf_event_max_sample_rate").ok);
  EXPECT_TRUE(Check("kernel version").ok);
}

TEST_F(NodeChecksTest, NoPmuIsOptional) {
  options_.probe = [](const perf_event_attr& a) {
    return a.type == PERF_TYPE_HARDWARE ? ENOENT : 0;
  };
  EXPECT_FALSE(Check("perf_event_open cycles").ok);
  EXPECT_TRUE(Check("perf_event_open cycles").optional);
  EXPECT_TRUE(Check("perf_event_open cpu-clock").ok);
  EXPECT_FALSE(Check("perf_event_open cpu-clock").optional);
}

TEST_F(NodeChecksTest, MemorySamplesAreOptionalAndSayWhatTheyWouldBeMadeOf) {
  EXPECT_EQ(Check("memory samples").found, "PEBS: cpu/mem-loads/, without a threshold of latency");
  options_.probe = [](const perf_event_attr& a) { return a.type == 4 ? EBUSY : 0; };
  const NodeCheck busy = Check("memory samples");
  EXPECT_FALSE(busy.ok);
  EXPECT_TRUE(busy.optional);
  EXPECT_THAT(busy.found, HasSubstr("in use by a watchdog"));
  EXPECT_THAT(busy.fix, HasSubstr("nmi_watchdog"));
  options_.sys_root = "/nowhere";
  EXPECT_THAT(Check("memory samples").found, HasSubstr("no PMU"));
}

TEST_F(NodeChecksTest, UserModeNeedsNoCapabilities) {
  SetCapabilities("0");
  EXPECT_FALSE(Check("CAP_SYS_PTRACE").optional);
  options_.user_mode = true;
  EXPECT_TRUE(Check("CAP_SYS_PTRACE").optional);
}

TEST_F(NodeChecksTest, TheTracerMustRunButSamplingDoesNotNeedIt) {
  options_.tracer_binary = "/bin/true";
  EXPECT_TRUE(Check("perf-agent-tracer").ok);
  EXPECT_TRUE(Check("altering loops").ok);
  options_.tracer_binary = "/bin/false";
  EXPECT_FALSE(Check("perf-agent-tracer").ok);
  EXPECT_TRUE(Check("perf-agent-tracer").optional);
  EXPECT_THAT(Check("altering loops").found, HasSubstr("the tracer does not run: /bin/false"));
  options_.tracer_binary = "/nonexistent/tracer";
  EXPECT_THAT(Check("altering loops").found,
              HasSubstr("/nonexistent/tracer cannot be started: No such"));
  EXPECT_EQ(Check("perf-agent-tracer").fix,
            "install -m 0755 perf-agent-tracer /nonexistent/tracer");
}

TEST_F(NodeChecksTest, SaysWhyNoLoopIsAltered) {
  const auto reason = [this] { return FindObstacle(ProcFs(proc_.root()), options_).reason; };
  EXPECT_EQ(reason(), "");
  options_.steady_clock = false;
  EXPECT_THAT(reason(), HasSubstr("time stamp counter"));
  Sysctl("osrelease", "5.12.99-x");
  EXPECT_THAT(reason(), HasSubstr("the kernel (5.12) is older than 5.13"));
  options_.tracer_binary = "/nonexistent/tracer";
  EXPECT_THAT(reason(), HasSubstr("/nonexistent/tracer"));
  proc_.Write("no-injection", "");
  options_.disable_file = proc_.root() + "/no-injection";
  EXPECT_EQ(reason(), options_.disable_file + " exists");
  EXPECT_EQ(Check("altering loops").fix, "rm " + options_.disable_file);
  options_.inject = false;
  EXPECT_THAT(reason(), HasSubstr("--no-injection"));
}

TEST_F(NodeChecksTest, TheKernelThatCanBeStoppedBegins) {
  const auto ok = [this](const std::string& release) {
    Sysctl("osrelease", release);
    return FindObstacle(ProcFs(proc_.root()), options_).reason.empty();
  };
  EXPECT_TRUE(ok("5.13"));
  EXPECT_TRUE(ok("6.0.0"));
  EXPECT_FALSE(ok("5.12"));
  EXPECT_FALSE(ok("4.19.0"));
  EXPECT_FALSE(ok("unknown"));
}

TEST_F(NodeChecksTest, PtraceNeedsTheRightOrOnesOwnProcesses) {
  const auto ok = [this](const char* capabilities, bool user_mode, const char* scope) {
    SetCapabilities(capabilities);
    options_.user_mode = user_mode;
    Sysctl("yama/ptrace_scope", scope);
    return FindObstacle(ProcFs(proc_.root()), options_).reason.empty();
  };
  constexpr char kPtrace[] = "0000000000080000";  // capability 19
  EXPECT_TRUE(ok(kPtrace, false, "2"));
  EXPECT_FALSE(ok(kPtrace, false, "3"));
  EXPECT_FALSE(ok("0", false, "0"));
  EXPECT_TRUE(ok("0", true, "0"));
  EXPECT_FALSE(ok("0", true, "1"));
}

TEST_F(NodeChecksTest, UserModeIsSummedUp) {
  SetCapabilities("0");
  options_.user_mode = true;
  EXPECT_THAT(Check("user mode").found, HasSubstr("kernel's part included; loops are altered"));
  Sysctl("yama/ptrace_scope", "1");
  EXPECT_THAT(Check("user mode").found, HasSubstr("no loop is altered"));
  SetCapabilities("0000000000080000");  // CAP_SYS_PTRACE: Yama does not count
  EXPECT_THAT(Check("user mode").found, HasSubstr("loops are altered"));
  Sysctl("perf_event_paranoid", "3");
  EXPECT_TRUE(Check("user mode").ok);  // a kernel without that level: the event opens
  options_.probe = [](const perf_event_attr&) { return EACCES; };
  EXPECT_FALSE(Check("user mode").ok);
  EXPECT_TRUE(Check("user mode").optional);
  EXPECT_THAT(Check("user mode").found, HasSubstr("no sampling"));
}

TEST_F(NodeChecksTest, SaysWhichProgramsAreKeptFromTheirUsers) {
  EXPECT_TRUE(Check("programs kept from their users").ok);
  EXPECT_THAT(Check("programs kept from their users").found, HasSubstr("PR_SET_DUMPABLE"));
  options_.user_mode = true;
  EXPECT_THAT(Check("programs kept from their users").found, HasSubstr("user mode"));
}

TEST_F(NodeChecksTest, AnAgentOfTheNodeMustBecomeTheOwnerOfFiles) {
  SetCapabilities("0000000000080040");  // CAP_SETGID alone is not enough
  EXPECT_FALSE(Check("CAP_SETUID, CAP_SETGID").ok);
  EXPECT_FALSE(Check("CAP_SETUID, CAP_SETGID").optional);
  SetCapabilities("00000000000800c0");
  EXPECT_TRUE(Check("CAP_SETUID, CAP_SETGID").ok);
}

TEST_F(NodeChecksTest, TheReaderMustRun) {
  options_.reader_binary = "/bin/true";
  EXPECT_TRUE(Check("perf-agent-reader").ok);
  options_.reader_binary = "/bin/false";
  EXPECT_THAT(Check("perf-agent-reader").found, HasSubstr("code 1"));
}

}  // namespace
}  // namespace perfd::agent
