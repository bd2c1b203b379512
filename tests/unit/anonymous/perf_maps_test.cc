#include "agent/anonymous/perf_maps.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

class SetClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return now_ns; }
  int64_t UnixNs() const override { return now_ns; }
  int64_t now_ns = 1;
};

const ProcessId kProcess{7, 100, 0};

class PerfMapsTest : public testing::Test {
 protected:
  std::string Name(uint64_t address) {
    maps_.Learn(kProcess, 1000, {address});
    const PerfMap::Symbol* symbol = maps_.At(kProcess, address);
    return symbol == nullptr ? "-" : symbol->name;
  }

  SetClock clock_;
  int reads_ = 0;
  absl::StatusOr<std::string> file_ = "1000 10 first\n";
  PerfMaps maps_{[this](const ProcessId&, uint32_t) {
                   ++reads_;
                   return file_;
                 },
                 clock_};
};

TEST_F(PerfMapsTest, IsReadAgainForWhatItLacksButNotOften) {
  EXPECT_EQ(Name(0x1000), "first");
  EXPECT_EQ(Name(0x100f), "first");
  EXPECT_EQ(reads_, 1);
  file_ = "1000 10 first\n2000 10 second\n";
  EXPECT_EQ(Name(0x2000), "-");
  clock_.now_ns += PerfMaps::kRereadNs;
  EXPECT_EQ(Name(0x2000), "second");
  EXPECT_EQ(reads_, 2);
}

TEST_F(PerfMapsTest, AMapThatNamesNothingIsReadEverMoreSeldom) {
  file_ = absl::NotFoundError("none");
  for (int second = 0; second < 300; ++second, clock_.now_ns += kNsPerSecond) Name(0x1000);
  EXPECT_GE(reads_, 6);
  EXPECT_LE(reads_, 10);
}

TEST_F(PerfMapsTest, WhatWasKnownStaysWhereItCannotBeRead) {
  EXPECT_EQ(Name(0x1000), "first");
  file_ = absl::UnavailableError("it hangs");
  clock_.now_ns += PerfMaps::kRereadNs;
  EXPECT_EQ(Name(0x2000), "-");
  EXPECT_EQ(Name(0x1000), "first");
}

TEST_F(PerfMapsTest, AnotherProgramOfThePidHasAnotherMap) {
  EXPECT_EQ(Name(0x1000), "first");
  EXPECT_EQ(maps_.At({7, 100, 1}, 0x1000), nullptr);
  EXPECT_EQ(maps_.At({7, 101, 0}, 0x1000), nullptr);
}

// This process's own, in /tmp as it sees it.
class ReadPerfMapTest : public testing::Test {
 protected:
  void TearDown() override { ::unlink(path_.c_str()); }
  absl::StatusOr<std::string> Read(uint32_t uid = ::getuid()) {
    return ReadPerfMap(procfs_, clock_, {::getpid(), *procfs_.StartTicks(::getpid()), 0}, uid);
  }
  void Write(const std::string& path) { std::ofstream(path) << "1000 10 f\n"; }

  const SystemClock clock_{};
  const ProcFs procfs_{};
  const std::string path_ = absl::StrCat("/tmp/perf-", ::getpid(), ".map");
};

TEST_F(ReadPerfMapTest, IsTheProcesssOwn) {
  EXPECT_TRUE(absl::IsNotFound(Read().status()));
  Write(path_);
  const auto text = Read();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "1000 10 f\n");
  EXPECT_TRUE(absl::IsPermissionDenied(Read(::getuid() + 1).status()));
}

TEST_F(ReadPerfMapTest, IsNotOfAnEarlierProcess) {
  Write(path_);
  const timespec old[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path_.c_str(), old, 0), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(Read().status()));
}

TEST_F(ReadPerfMapTest, IsNoLinkAndNoPipe) {
  const std::string elsewhere = path_ + ".elsewhere";
  Write(elsewhere);
  ASSERT_EQ(::symlink(elsewhere.c_str(), path_.c_str()), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(Read().status()));
  ::unlink(path_.c_str());
  ::unlink(elsewhere.c_str());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(Read().status()));
}

TEST_F(ReadPerfMapTest, IsBounded) {
  Write(path_);
  ASSERT_EQ(::truncate(path_.c_str(), PerfMaps::kMaxBytes + 1), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(Read().status()));
}

}  // namespace
}  // namespace perfd::agent
