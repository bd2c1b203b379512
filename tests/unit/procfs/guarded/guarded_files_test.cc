// Reads of a process that never answers, by a helper that is forked here: it hangs over paths that end in "hangs".
#include "agent/procfs/guarded/guarded_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/procfs/guarded/file_server.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
using What = SlowRead::What;

absl::StatusOr<std::string> ReadOrHang(const SlowRead& read) {
  while (absl::EndsWith(read.path, "hangs")) ::pause();
  return ReadSlowFile(read);
}

struct FixedClock final : Clock {
  int64_t MonotonicNs() const override { return now_ns; }
  int64_t UnixNs() const override { return now_ns; }
  int64_t now_ns = 1;
};

class GuardedFilesTest : public testing::Test {
 protected:
  GuardedFilesTest()
      : files_([this](int socket) { return Start(socket); }, clock_, proc_.root(),
               {.read = absl::Milliseconds(400), .start = absl::Seconds(30)}) {
    for (int32_t pid = 1; pid <= 9; ++pid) proc_.AddProcess({.pid = pid});
  }

  absl::StatusOr<pid_t> Start(int socket) {
    if (refuse_) return absl::FailedPreconditionError("there is no such program");
    const pid_t pid = ::fork();
    if (pid == 0) {
      ServeSlowFiles(socket, ReadOrHang);
      ::_exit(0);
    }
    AdoptHelper(pid);
    helpers_.push_back(pid);
    return pid;
  }
  absl::StatusOr<std::string> Read(int32_t pid, const std::string& file, What what = What::kWhole,
                                   size_t limit = 100) {
    return files_.Read(pid, {what, limit, absl::StrCat(proc_.root(), "/", pid, "/", file)});
  }
  void Hangs(int32_t pid) {
    const absl::Status status = Read(pid, "hangs").status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("process ", pid, " ")));
  }

  FakeProc proc_;
  FixedClock clock_;
  bool refuse_ = false;
  std::vector<pid_t> helpers_;
  GuardedFiles files_;
};

TEST_F(GuardedFilesTest, OneHelperReadsForAllAndItsErrorsComeThrough) {
  proc_.Write("1/file", "contents");
  EXPECT_EQ(Read(1, "file").value(), "contents");
  EXPECT_EQ(Read(1, "file", What::kHead, 3).value(), "con");
  EXPECT_EQ(Read(1, "file", What::kIdentity).value(),
            ReadSlowFile({What::kIdentity, 0, absl::StrCat(proc_.root(), "/1/file")}).value());
  EXPECT_TRUE(absl::IsResourceExhausted(Read(1, "file", What::kWhole, 3).status()));
  EXPECT_TRUE(absl::IsNotFound(Read(1, "none").status()));
  EXPECT_TRUE(absl::IsNotFound(Read(1, "none", What::kIdentity).status()));
  EXPECT_EQ(helpers_.size(), 1u);
}

TEST_F(GuardedFilesTest, WhoDoesNotAnswerIsNamedAndLetAloneAndItsHelperKilled) {
  Hangs(1);
  ASSERT_EQ(helpers_.size(), 1u);
  EXPECT_EQ(::waitpid(helpers_[0], nullptr, WNOHANG), -1) << "it has been reaped";
  proc_.Write("1/file", "contents");
  EXPECT_TRUE(absl::IsUnavailable(Read(1, "file").status()));
  EXPECT_EQ(helpers_.size(), 1u) << "not asked";
  proc_.Write("2/file", "contents");
  EXPECT_TRUE(Read(2, "file").ok()) << "another one is";
  EXPECT_EQ(helpers_.size(), 2u);
}

TEST_F(GuardedFilesTest, ItIsAskedAgainLaterAndAnotherProcessOfItsNumberAtOnce) {
  proc_.Write("1/file", "contents");
  Hangs(1);
  clock_.now_ns += absl::ToInt64Nanoseconds(GuardedFiles::kForget) - 1;
  EXPECT_FALSE(Read(1, "file").ok());
  clock_.now_ns += 1;
  EXPECT_TRUE(Read(1, "file").ok());
  Hangs(1);
  proc_.AddProcess({.pid = 1, .start_ticks = 101});
  EXPECT_TRUE(Read(1, "file").ok());
}

TEST_F(GuardedFilesTest, AUserOfManyThatHangIsNotAskedForMore) {
  for (int32_t pid = 1; pid <= GuardedFiles::kMostOfUser; ++pid) Hangs(pid);
  const size_t before = helpers_.size();
  proc_.Write("8/file", "contents");
  const absl::Status status = Read(8, "file").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("4 other processes of its user"));
  EXPECT_EQ(helpers_.size(), before);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(absl::StrCat(proc_.root(), "/8").c_str(), 4000001, 4000001), 0);
    EXPECT_TRUE(Read(8, "file").ok()) << "of another user";
  }
  clock_.now_ns += absl::ToInt64Nanoseconds(GuardedFiles::kForget);
  EXPECT_TRUE(Read(8, "file").ok());
}

TEST_F(GuardedFilesTest, AHelperThatWasKilledMeanwhileSaysNothingAboutTheProcess) {
  proc_.Write("1/file", "contents");
  ASSERT_TRUE(Read(1, "file").ok());
  ASSERT_EQ(::kill(helpers_[0], SIGKILL), 0);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(helpers_[0]), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(Read(1, "file").ok());
  EXPECT_EQ(helpers_.size(), 2u);
}

TEST_F(GuardedFilesTest, WithoutAHelperNothingIsReadAndTheReasonIsTold) {
  refuse_ = true;
  proc_.Write("1/file", "contents");
  const absl::Status status = Read(1, "file").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("there is no such program"));
}

TEST(FileServerTest, DamagedMessagesAreRefused) {
  for (const char* message : {"", "0", "0 1", "3 1 /x", "-1 1 /x", "x 1 /x", "0 x /x"})
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeRead(message).status())) << message;
  EXPECT_EQ(DecodeRead(EncodeRead({What::kHead, 7, "/a b"}))->path, "/a b");
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeAnswer("").status()));
  EXPECT_EQ(DecodeAnswer(EncodeAnswer(absl::NotFoundError("gone"))).status(),
            absl::NotFoundError("gone"));
}

}  // namespace
}  // namespace perfd::agent
