#include "agent/app/agent_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "agent/app/agent_config.h"
#include "agent/app/agent_life.h"
#include "core/base/log.h"
#include "tests/unit/core/service/flags_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AgentFlagsTest : public FlagsFixture<AgentFlags> {
 protected:
  AgentFlagsTest() : FlagsFixture("perf-agent", ParseAgentFlags, ParseAgentFlagsAgain) {
    ::unsetenv("PERFD_ADDRESS");
    InitLog("perf-agent", LogLevel::kInfo);
  }
  ~AgentFlagsTest() override { ::unsetenv("PERFD_ADDRESS"); }

  // What the log says of it.
  std::string ReloadInto(AgentFlags* running) {
    testing::internal::CaptureStderr();
    Reload([this] { return Again(); },
           [this](const AgentOptions& options) { applied_.push_back(options); }, running);
    return testing::internal::GetCapturedStderr();
  }

  std::vector<AgentOptions> applied_;
};

TEST_F(AgentFlagsTest, TheCommandLineWinsOverTheFileOverTheEnvironment) {
  ASSERT_EQ(::setenv("PERFD_ADDRESS", "unix:/of/the/environment", 1), 0);
  ASSERT_EQ(Parse({}), -1);
  EXPECT_EQ(flags_.options.dial.address, "unix:/of/the/environment");
  Write(
      "daemon: {address: \"unix:/of/the/file\", user: root}\nspool: {limit_mib: 7}\ninjection: "
      "{allowed: false}\n");
  ASSERT_EQ(Parse({"--config", path_}), -1) << err_;
  EXPECT_EQ(flags_.options.dial.address, "unix:/of/the/file");
  EXPECT_EQ(flags_.options.dial.daemon_uid, 0u);
  EXPECT_EQ(flags_.options.spool_limit_bytes, uint64_t{7} << 20);
  EXPECT_FALSE(flags_.options.inject);
  ASSERT_EQ(Parse({"--config", path_, "--address", "unix:/of/the/flag"}), -1);
  EXPECT_EQ(flags_.options.dial.address, "unix:/of/the/flag");
}

// Below /tmp another user could have made the folder before.
TEST_F(AgentFlagsTest, TheSpoolOfAUserIsWhereTheUserHasFolders) {
  const char* kNames[] = {"XDG_STATE_HOME", "HOME", "XDG_RUNTIME_DIR"};
  std::vector<std::string> before;
  for (const char* name : kNames) {
    const char* value = std::getenv(name);
    before.emplace_back(value == nullptr ? "" : value);
    ::setenv(name, (std::string("/of/") + name).c_str(), 1);
  }
  const auto spool = [this] {
    EXPECT_EQ(Parse({"--user-mode", "--node", "n1"}), -1);
    return flags_.options.spool_directory;
  };
  EXPECT_EQ(spool(), "/of/XDG_STATE_HOME/perf-agent/spool-n1");
  ::setenv("XDG_STATE_HOME", "relative", 1);
  EXPECT_EQ(spool(), "/of/HOME/.local/state/perf-agent/spool-n1");
  ::unsetenv("HOME");
  EXPECT_EQ(spool(), "/of/XDG_RUNTIME_DIR/perf-agent/spool-n1");
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(spool(), "");
  flags_.options.reader_binary = flags_.options.tracer_binary = "/bin/true";
  const auto agent = NodeAgent::Create(flags_.options);
  EXPECT_TRUE(absl::IsInvalidArgument(agent.status())) << agent.status();
  EXPECT_THAT(std::string(agent.status().message()), HasSubstr("give --spool-dir"));
  EXPECT_EQ(NodeAgent::HealingOf(flags_.options).journal_directory, "");
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i].empty())
      ::unsetenv(kNames[i]);
    else
      ::setenv(kNames[i], before[i].c_str(), 1);
  }
}

TEST_F(AgentFlagsTest, SubcommandsKeepTheirWords) {
  Write("log: {level: warning}\n");
  ASSERT_EQ(Parse({"--config", path_, "exec", "--", "mpirun", "-n", "4", "./app"}), -1) << err_;
  EXPECT_EQ(flags_.command, AgentCommand::kExec);
  EXPECT_THAT(flags_.program, testing::ElementsAre("mpirun", "-n", "4", "./app"));
  ASSERT_EQ(Parse({"--config", path_, "heal", "17", "18"}), -1);
  EXPECT_EQ(flags_.command, AgentCommand::kHeal);
  EXPECT_THAT(flags_.heal.pids, testing::ElementsAre(17, 18));
}

TEST_F(AgentFlagsTest, ErrorsSayWhatToDo) {
  Write("injection:\n  alowed: false\n");
  EXPECT_EQ(Parse({"--config", path_}), 5);
  EXPECT_THAT(
      err_,
      HasSubstr("line 2, column 3: unknown key 'alowed' in injection; did you mean 'allowed'?"));
  Write("daemon: {user: no-such-user-here}\n");
  EXPECT_EQ(Parse({"--config", path_}), 5);
  EXPECT_THAT(err_, HasSubstr("knows no user 'no-such-user-here'"));
  EXPECT_EQ(Parse({"--daemon-uid", "no-such-user-here"}), 2);
  EXPECT_EQ(Parse({"--spool-limit-mib", "0"}), 2);
  EXPECT_EQ(Parse({"--spool-limit-mib", "1"}), -1);
  EXPECT_EQ(Parse({"--frob"}), 2);
}

TEST_F(AgentFlagsTest, TheConfigurationIsPrintedAndReadsTheSame) {
  EXPECT_EQ(Parse({"--node", "n1", "--spool-dir", "/s", "--no-injection", "--check-config"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("node: \"n1\""), HasSubstr("allowed: false")));
  const std::string printed = out_;
  Write(printed);
  EXPECT_EQ(Parse({"--config", path_, "--check-config"}), 0) << err_;
  EXPECT_EQ(out_, printed);
}

TEST_F(AgentFlagsTest, TheExampleFileHoldsTheDefaults) {
  std::filesystem::copy_file("deploy/config/agent.yaml", path_,
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  AgentFlags example;
  ASSERT_EQ(Parse({"--config", path_, "--spool-dir", "/s"}), -1) << err_;
  example = flags_;
  ASSERT_EQ(Parse({"--spool-dir", "/s"}), -1);
  EXPECT_EQ(FormatConfig(AgentConfig(example)), FormatConfig(AgentConfig(flags_)));
  EXPECT_THAT(NotShown("deploy/config/agent.yaml", AgentConfig(flags_)), testing::IsEmpty());
}

TEST_F(AgentFlagsTest, AReloadAppliesWhatMayChangeAndNamesTheRest) {
  Write("log: {level: info}\n");
  ASSERT_EQ(Parse({"--config", path_}), -1);
  AgentFlags running = flags_;
  Write(
      "log: {level: debug}\nspool: {limit_mib: 9, directory: /elsewhere}\n"
      "injection: {allowed: false, allow_recovery: true}\ntls: {ca: /new/ca.crt}\n");
  const std::string said = ReloadInto(&running);
  EXPECT_EQ(running.log_level, "debug");
  ASSERT_EQ(applied_.size(), 1u);
  EXPECT_EQ(applied_[0].spool_limit_bytes, uint64_t{9} << 20);
  EXPECT_FALSE(applied_[0].inject);
  EXPECT_EQ(applied_[0].dial.tls_ca, "/new/ca.crt");
  EXPECT_FALSE(applied_[0].allow_recovery);
  EXPECT_EQ(applied_[0].spool_directory, flags_.options.spool_directory);
  EXPECT_THAT(
      said,
      AllOf(HasSubstr("reload: log.level: \"info\" -> \"debug\""),
            HasSubstr("reload: spool.limit_mib: 256 -> 9"),
            HasSubstr("reload: injection.allowed: true -> false"),
            HasSubstr("injection.allow_recovery: false -> true needs a restart of perf-agent"),
            HasSubstr("-> \"/elsewhere\" needs a restart of perf-agent"),
            Not(HasSubstr("limit_mib: 256 -> 9 needs"))));
  // What was refused is said again at every reload, until the file and the agent agree.
  const std::string again = ReloadInto(&running);
  EXPECT_THAT(again, AllOf(HasSubstr("allow_recovery"), Not(HasSubstr("limit_mib"))));
  EXPECT_EQ(applied_.size(), 1u);
}

TEST_F(AgentFlagsTest, AFileThatIsBrokenOrNotOursAloneChangesNothing) {
  Write("log: {level: warning}\nspool: {limit_mib: 9}\n");
  ASSERT_EQ(Parse({"--config", path_}), -1);
  AgentFlags running = flags_;
  const auto kept = [&] { return FormatConfig(AgentConfig(running)); };
  const std::string before = kept();
  for (const char* text :
       {"log: {level: [", "spool: {limit_mib: 7}\nlog: {levle: debug}\n", "spool: {limit_mib: 0}\n",
        "spool: {limit_mib: 7}\ndaemon: {user: no-such-user-here}\n"}) {
    Write(text);
    EXPECT_THAT(ReloadInto(&running), HasSubstr("the configuration stays as it was: ")) << text;
    EXPECT_EQ(kept(), before) << text;
  }
  Write("spool: {limit_mib: 7}\n");
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  EXPECT_THAT(ReloadInto(&running), HasSubstr("the configuration stays as it was: "));
  std::filesystem::remove(path_);
  EXPECT_THAT(ReloadInto(&running), HasSubstr("the configuration stays as it was: "));
  EXPECT_EQ(kept(), before);
  EXPECT_TRUE(applied_.empty());
}

TEST_F(AgentFlagsTest, TheCommandLineWinsAtAReloadToo) {
  Write("spool: {limit_mib: 7}\n");
  ASSERT_EQ(Parse({"--config", path_, "--spool-limit-mib", "5"}), -1);
  AgentFlags running = flags_;
  Write("spool: {limit_mib: 8}\n");
  EXPECT_THAT(ReloadInto(&running), HasSubstr("reloaded"));
  EXPECT_EQ(running.spool_limit_mib, 5);
  EXPECT_TRUE(applied_.empty());
}

}  // namespace
}  // namespace perfd::agent
