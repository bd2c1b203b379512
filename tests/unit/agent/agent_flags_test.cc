#include "agent/app/agent_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/app/agent_config.h"
#include "agent/app/agent_life.h"
#include "core/base/log.h"

namespace perfd {
namespace {

using ::testing::HasSubstr;

class AgentFlagsTest : public testing::Test {
 protected:
  AgentFlagsTest()
      : path_(testing::TempDir() + "agent_flags_test_" + std::to_string(::getpid()) + ".yaml") {
    ::unsetenv("PERFD_ADDRESS");
    InitLog("perf-agent", LogLevel::kInfo);
  }
  ~AgentFlagsTest() override {
    ::unsetenv("PERFD_ADDRESS");
    std::filesystem::remove(path_);
  }

  void Write(const std::string& text) {
    std::ofstream(path_) << text;
    ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  }
  // The exit code, or -1 when the program goes on.
  int Parse(std::vector<std::string> words) {
    flags_ = AgentFlags();
    words_ = std::move(words);
    words_.insert(words_.begin(), "perf-agent");
    arguments_.clear();
    for (std::string& word : words_) arguments_.push_back(word.data());
    int code = 0;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const bool goes_on =
        ParseAgentFlags(static_cast<int>(arguments_.size()), arguments_.data(), &flags_, &code);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return goes_on ? -1 : code;
  }
  absl::StatusOr<AgentFlags> Again() {
    return ParseAgentFlagsAgain(static_cast<int>(arguments_.size()), arguments_.data());
  }

  const std::string path_;
  AgentFlags flags_;
  std::vector<std::string> words_;
  std::vector<char*> arguments_;
  std::string out_;
  std::string err_;
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
}

TEST_F(AgentFlagsTest, AReloadChangesTheLogAndNamesTheRest) {
  Write("log: {level: info}\n");
  ASSERT_EQ(Parse({"--config", path_}), -1);
  AgentFlags running = flags_;
  Write("log: {level: debug}\nspool: {limit_mib: 9}\n");
  testing::internal::CaptureStderr();
  Reload([this] { return Again(); }, &running);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(running.log_level, "debug");
  EXPECT_EQ(running.spool_limit_mib, 256);
  EXPECT_THAT(said, HasSubstr("spool.limit_mib: 256 -> 9 needs a restart of perf-agent"));
  Write("log: {level: [");
  testing::internal::CaptureStderr();
  Reload([this] { return Again(); }, &running);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("the configuration stays as it was"));
  EXPECT_EQ(running.log_level, "debug");
}

}  // namespace
}  // namespace perfd
