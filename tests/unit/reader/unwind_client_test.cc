#include "agent/reader/unwind_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "agent/reader/arguments.h"
#include "tests/unit/binary/stack_dump.h"
#include "tests/unit/reader/confined_test.h"

namespace perfd::agent {
namespace {

using UnwindClientTest = ConfinedTest;

using ::testing::HasSubstr;

constexpr absl::Duration kPlenty = absl::Seconds(30);

UnwindProcess Self() {
  return {.pid = ::getpid(), .uid = ::geteuid(), .gid = ::getegid()};
}

ReaderOptions Options() {
  return {.reader_binary = PERFD_READER};
}

std::string StatusField(int32_t pid, const std::string& key) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.rfind(key + ":", 0) == 0) return line.substr(key.size() + 2);
  return "";
}

TEST_F(UnwindClientTest, AnswersLikeTheUnwinderInThisProcess) {
  for (const char* arguments : {"recurse 30", "qsort", "signal"}) {
    const StackDump dump = DumpOf("stacks-gcc", arguments);
    auto client = UnwindClient::Start(Self(), dump.mappings, Options());
    ASSERT_TRUE(client.ok()) << client.status();
    auto here = StackUnwinder::Create(ModulesOf(dump));
    ASSERT_TRUE(here.ok()) << here.status();
    for (int round = 0; round < 2; ++round) {
      const auto path = (*client)->Unwind(dump.copy, kPlenty);
      ASSERT_TRUE(path.ok()) << path.status();
      EXPECT_EQ(*path, (*here)->Unwind(dump.copy));
      EXPECT_TRUE(path->complete);
    }
    EXPECT_GT((*client)->CpuNs(), 0u);
  }
}

TEST_F(UnwindClientTest, ReaderIsConfinedBeforeItAnswers) {
  const StackDump dump = DumpOf("stacks-gcc", "recurse 1");
  UnwindProcess process = Self();
  if (::geteuid() == 0) process.uid = process.gid = 65534;
  auto client = UnwindClient::Start(process, dump.mappings, Options());
  ASSERT_TRUE(client.ok()) << client.status();
  const std::string uid = std::to_string(process.uid);
  EXPECT_EQ(StatusField((*client)->pid(), "Seccomp"), "2");
  EXPECT_EQ(StatusField((*client)->pid(), "NoNewPrivs"), "1");
  EXPECT_EQ(StatusField((*client)->pid(), "Threads"), "1");
  EXPECT_EQ(StatusField((*client)->pid(), "Uid"), uid + "\t" + uid + "\t" + uid + "\t" + uid);
}

TEST_F(UnwindClientTest, AFileThatWasReplacedIsNotRead) {
  StackDump dump = DumpOf("stacks-gcc", "recurse 1");
  for (CodeMapping& mapping : dump.mappings) ++mapping.inode;
  const auto client = UnwindClient::Start(Self(), dump.mappings, Options());
  EXPECT_EQ(client.status().code(), absl::StatusCode::kNotFound) << client.status();
  EXPECT_EQ(UnwindClient::Start(Self(), {}, Options()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(UnwindClientTest, DeathAndSlownessAreStatuses) {
  const StackDump dump = DumpOf("stacks-gcc", "recurse 1");
  for (const int signal : {SIGKILL, SIGSTOP}) {
    auto client = UnwindClient::Start(Self(), dump.mappings, Options());
    ASSERT_TRUE(client.ok()) << client.status();
    const int32_t pid = (*client)->pid();
    ASSERT_EQ(::kill(pid, signal), 0);
    const auto path =
        (*client)->Unwind(dump.copy, signal == SIGKILL ? kPlenty : absl::Milliseconds(50));
    EXPECT_EQ(path.status().code(), signal == SIGKILL ? absl::StatusCode::kInternal
                                                      : absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(path.status().message()), HasSubstr("stacks of process"));
    EXPECT_EQ(::kill(pid, 0), -1) << "reaped";
    EXPECT_EQ((*client)->Unwind(dump.copy, kPlenty).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
}

TEST(UnwindArgumentsTest, RoundTrip) {
  const UnwindArguments arguments{{7, 4294967294U, 100}, 123};
  const auto parsed = ParseUnwindArguments(FormatArguments(arguments));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(FormatArguments(*parsed), FormatArguments(arguments));
  EXPECT_EQ(parsed->process.uid, 4294967294U);
  EXPECT_FALSE(ParseUnwindArguments({"unwind", "1", "2", "3"}).ok());
  EXPECT_FALSE(ParseUnwindArguments({"unwind", "1", "2", "-3", "4"}).ok());
  EXPECT_FALSE(ParseUnwindArguments({}).ok());
}

}  // namespace
}  // namespace perfd::agent
