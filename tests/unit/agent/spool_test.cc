#include "agent/link/spool.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/wire/wire.h"

namespace perfd::agent {
namespace {

class SpoolTest : public testing::Test {
 protected:
  SpoolTest() {
    char pattern[] = "/tmp/spool-test-XXXXXX";
    directory_ = mkdtemp(pattern);
  }
  ~SpoolTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Spool> Open(uint64_t limit = 1 << 20, SpoolUsers users = SpoolUsers::kMany) {
    auto spool = Spool::Create(directory_, limit, users);
    EXPECT_TRUE(spool.ok()) << spool.status();
    return std::move(spool).value();
  }
  static Window Of(const std::string& profile) {
    Window window;
    window.profile_id = profile;
    window.node = "n";
    window.setup.provenance = Provenance::kSampled;
    return window;
  }

  std::string directory_;
};

TEST_F(SpoolTest, KeepsOrderUntilAcknowledged) {
  auto spool = Open();
  EXPECT_EQ(*spool->Append(Of("p-1")), 1u);
  EXPECT_EQ(*spool->Append(Of("p-1")), 2u);
  EXPECT_EQ(spool->Next(0)->sequence, 1u);
  EXPECT_EQ(spool->Next(1)->sequence, 2u);
  EXPECT_FALSE(spool->Next(2).has_value());
  spool->Acknowledge(1);
  EXPECT_EQ(spool->Next(0)->sequence, 2u);
  EXPECT_EQ(spool->windows(), 1u);
  spool->Acknowledge(77);  // never sent: no harm
  EXPECT_EQ(spool->windows(), 1u);
}

// A profile whose windows cannot be sent must not cost the other users of the node theirs.
TEST_F(SpoolTest, OneUsersWindowsLeaveRoomForTheOthers) {
  const auto of = [](uint32_t uid, const std::string& profile) {
    Window window = Of(profile);
    RankInfo rank;
    rank.node = "n";
    rank.pid = 100;
    rank.uid = uid;
    rank.command = std::string(1000, 'x');
    window.ranks = {rank};
    return window;
  };
  auto spool = Open(40'000);
  size_t alices = 0;
  absl::Status full;
  for (; full.ok() && alices < 100; ++alices) full = spool->Append(of(1001, "p-1")).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_NE(full.message().find("uid 1001"), std::string::npos) << full;
  EXPECT_LE(spool->bytes(), 30'000u);
  EXPECT_GT(spool->bytes(), 25'000u);
  ASSERT_TRUE(spool->Append(of(1002, "p-2")).ok());
  // What was there before a restart counts, and what was sent counts no more.
  spool.reset();
  spool = Open(40'000);
  EXPECT_FALSE(spool->Append(of(1001, "p-1")).ok());
  ASSERT_TRUE(spool->Append(of(1002, "p-2")).ok());
  for (uint64_t sequence = 1; sequence <= 5; ++sequence) spool->Acknowledge(sequence);
  EXPECT_TRUE(spool->Append(of(1001, "p-1")).ok());
  // An agent in user mode has one user's only.
  spool.reset();
  spool = Open(40'000, SpoolUsers::kOne);
  while (spool->Append(of(1001, "p-1")).ok()) {
  }
  EXPECT_GT(spool->bytes(), 35'000u);
}

TEST_F(SpoolTest, OnlyAnEmptySpoolIsTakenOffTheDisk) {
  auto spool = Open();
  ASSERT_EQ(*spool->Append(Of("p-1")), 1u);
  EXPECT_FALSE(spool->RemoveEmpty());
  spool->GiveUp(1);
  EXPECT_FALSE(spool->RemoveEmpty()) << "what was set aside is there to be looked at";
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/stream-id")) << "nothing was taken";
  for (const auto& file : std::filesystem::directory_iterator(directory_)) {
    if (file.path().extension() == ".damaged") std::filesystem::remove(file.path());
  }
  const std::string stream = spool->stream_id();
  EXPECT_TRUE(spool->RemoveEmpty());
  EXPECT_FALSE(std::filesystem::exists(directory_));
  spool.reset();
  spool = Open();
  EXPECT_NE(spool->stream_id(), stream) << "sequence 1 was used in it";
  EXPECT_EQ(*spool->Append(Of("p-1")), 1u);
}

TEST_F(SpoolTest, KnowsWhatWaitsOfAProfileAlsoAfterARestart) {
  auto spool = Open();
  for (const char* id : {"p-1", "p-2", "p-1", "p-1"}) {
    Window window = Of(id);
    window.duration_ns = 5;
    ASSERT_TRUE(spool->Append(window).ok());
  }
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(spool->Waiting("p-1", 0).covered_ns, 15);
    EXPECT_EQ(spool->Waiting("p-1", 1).covered_ns, 10) << "what the daemon has is not counted";
    EXPECT_EQ(spool->Waiting("p-1", 1).last_sequence, 4u);
    EXPECT_EQ(spool->Waiting("p-2", 2).covered_ns, 0);
    EXPECT_EQ(spool->Waiting("p-2", 2).last_sequence, 0u);
    spool.reset();
    spool = Open();
  }
}

TEST_F(SpoolTest, TakesOnlyWhatTheDaemonCanRead) {
  auto spool = Open(64 << 20);
  Window window = Of("p-1");
  for (int32_t tid = 1; tid <= 65'536; ++tid) window.threads.push_back({0, 1, tid});
  EXPECT_TRUE(spool->Append(window).ok());
  window.threads.push_back({0, 1, 65'537});
  const auto refused = spool->Append(window);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status())) << refused.status();
  EXPECT_EQ(spool->windows(), 1u);
  window.threads.clear();
  window.rows.push_back({.thread = 5, .location = 0, .samples = 1, .weight = 1});
  EXPECT_FALSE(spool->Append(window).ok());
}

TEST_F(SpoolTest, SurvivesARestartAndNeverReusesASequence) {
  std::string id;
  {
    auto spool = Open();
    id = spool->stream_id();
    ASSERT_TRUE(spool->Append(Of("p-1")).ok());
    ASSERT_TRUE(spool->Append(Of("p-2")).ok());
    spool->Acknowledge(1);
    spool->Acknowledge(2);
    ASSERT_EQ(*spool->Append(Of("p-3")), 3u);
  }
  auto spool = Open();
  spool->ContinueAfter(2);  // less than what is on disk: no step back
  EXPECT_EQ(spool->stream_id(), id);
  EXPECT_EQ(spool->windows(), 1u);
  EXPECT_EQ(spool->profiles(), std::set<std::string>{"p-3"});
  EXPECT_EQ(*spool->Append(Of("p-4")), 4u);
  v1::Window window;
  ASSERT_TRUE(window.ParseFromString(spool->Next(0)->bytes));
  EXPECT_EQ(window.profile_id(), "p-3");
  EXPECT_EQ(window.sequence(), 3u);
  EXPECT_EQ(window.stream_id(), id);
}

TEST_F(SpoolTest, ADamagedFileIsSetAsideAndCounted) {
  auto spool = Open();
  ASSERT_TRUE(spool->Append(Of("p-1")).ok());
  ASSERT_TRUE(spool->Append(Of("p-1")).ok());
  for (const auto& file : std::filesystem::directory_iterator(directory_)) {
    if (file.path().filename().string().find("0001.window") == std::string::npos) continue;
    std::fstream out(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(6);
    out.put('!');
  }
  EXPECT_EQ(spool->Next(0)->sequence, 2u);
  EXPECT_EQ(spool->damaged(), 1u);
  spool.reset();
  EXPECT_EQ(Open()->windows(), 1u);
}

TEST_F(SpoolTest, AFileThatIsGoneDoesNotHoldUpTheOthers) {
  auto spool = Open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(spool->Append(Of("p-1")).ok());
  const uint64_t before = spool->bytes();
  ASSERT_TRUE(std::filesystem::remove(directory_ + "/00000000000000000002.window"));
  EXPECT_EQ(spool->Next(0)->sequence, 1u);
  ASSERT_TRUE(spool->Next(1).has_value());
  EXPECT_EQ(spool->Next(1)->sequence, 3u);
  EXPECT_EQ(spool->damaged(), 1u);
  EXPECT_EQ(spool->windows(), 2u);
  EXPECT_LT(spool->bytes(), before);
}

TEST_F(SpoolTest, RefusesBeyondItsLimit) {
  auto spool = Open(200);
  int taken = 0;
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    status = spool->Append(Of("p-1")).status();
    taken += status.ok() ? 1 : 0;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_GT(taken, 0);
  EXPECT_LE(spool->bytes(), 200u);
  for (uint64_t sequence = 1; sequence <= 100; ++sequence) spool->Acknowledge(sequence);
  EXPECT_EQ(spool->bytes(), 0u);
  EXPECT_TRUE(spool->Append(Of("p-1")).ok());
}

TEST_F(SpoolTest, ANewLimitCountsFromTheNextWindowOn) {
  auto spool = Open(1 << 20);
  ASSERT_TRUE(spool->Append(Of("p-1")).ok());
  spool->SetLimit(spool->bytes());
  EXPECT_TRUE(absl::IsResourceExhausted(spool->Append(Of("p-1")).status()));
  EXPECT_EQ(spool->windows(), 1u);
  spool->SetLimit(1 << 20);
  EXPECT_TRUE(spool->Append(Of("p-1")).ok());
}

TEST_F(SpoolTest, GoesOnAfterWhatTheDaemonHas) {
  auto spool = Open();
  spool->ContinueAfter(41);
  EXPECT_EQ(*spool->Append(Of("p-1")), 42u);
  spool->ContinueAfter(7);
  EXPECT_EQ(*spool->Append(Of("p-1")), 43u);
}

TEST_F(SpoolTest, WindowsOfAnotherStreamAreSetAside) {
  { ASSERT_TRUE(Open()->Append(Of("p-1")).ok()); }
  std::ofstream(directory_ + "/stream-id") << std::string(32, 'a');
  auto spool = Open();
  EXPECT_EQ(spool->windows(), 0u);
  EXPECT_EQ(spool->damaged(), 1u);
}

// After a power cut a file that was not synced can be empty, or hold less than was written.
TEST_F(SpoolTest, ALostStreamIdIsThatOfTheWindowsThatWait) {
  for (const char* left : {"", "0123456789abcdef", "no hexadecimal digits, but of 32", "gone"}) {
    auto spool = Open();
    const std::string id = spool->stream_id();
    const uint64_t first = *spool->Append(Of("p-1"));
    ASSERT_TRUE(spool->Append(Of("p-2")).ok());
    spool.reset();
    if (left == std::string("gone"))
      std::filesystem::remove(directory_ + "/stream-id");
    else
      std::ofstream(directory_ + "/stream-id") << left;
    spool = Open();
    EXPECT_EQ(spool->stream_id(), id) << left;
    EXPECT_EQ(spool->windows(), 2u) << left;
    EXPECT_EQ(spool->damaged(), 0u) << left;
    EXPECT_EQ(spool->Next(0)->sequence, first) << left;
    spool->Acknowledge(first);
    spool->Acknowledge(first + 1);
    spool.reset();
    spool = Open();
    EXPECT_EQ(spool->stream_id(), id) << "it is on the disk again";
  }
}

TEST_F(SpoolTest, AStreamIdThatIsLostWithNothingWaitingIsANewStream) {
  const std::string id = Open()->stream_id();
  std::ofstream(directory_ + "/stream-id") << "";
  auto spool = Open();
  EXPECT_NE(spool->stream_id(), id);
  EXPECT_EQ(spool->stream_id().size(), 32u);
}

TEST_F(SpoolTest, FilesThatOthersMayWriteAreSetAsideAndCounted) {
  {
    auto spool = Open();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(spool->Append(Of("p-1")).ok());
  }
  const std::string first = directory_ + "/00000000000000000001.window";
  ASSERT_EQ(::chmod(first.c_str(), 0666), 0);
  auto spool = Open();
  EXPECT_EQ(spool->windows(), 2u);
  EXPECT_EQ(spool->damaged(), 1u);
  EXPECT_TRUE(std::filesystem::exists(first + ".damaged")) << "it is kept";
  const std::string second = directory_ + "/00000000000000000002.window";
  if (::chown(second.c_str(), 30001, 30001) != 0) GTEST_SKIP() << "needs root to give a file away";
  EXPECT_EQ(spool->Next(0)->sequence, 3u) << "it became another's while it waited";
  EXPECT_EQ(spool->damaged(), 2u);
  spool.reset();
  const std::string id = directory_ + "/stream-id";
  ASSERT_EQ(::chown(id.c_str(), 30001, 30001), 0);
  spool = Open();
  EXPECT_EQ(spool->windows(), 1u) << "the windows know their stream";
  EXPECT_TRUE(std::filesystem::exists(id + ".damaged"));
}

TEST_F(SpoolTest, AFolderOfAnotherOrOpenToOthersIsRefused) {
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  const auto open = Spool::Create(directory_, 1 << 20, SpoolUsers::kMany);
  EXPECT_TRUE(absl::IsPermissionDenied(open.status())) << open.status();
  EXPECT_NE(open.status().message().find("--spool-dir"), std::string::npos) << open.status();
  ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
  EXPECT_TRUE(Spool::Create(directory_, 1 << 20, SpoolUsers::kMany).ok());
  EXPECT_EQ(std::filesystem::status(directory_).permissions(), std::filesystem::perms::owner_all);
  if (::chown(directory_.c_str(), 30001, 30001) != 0)
    GTEST_SKIP() << "needs root to give a file away";
  EXPECT_TRUE(
      absl::IsPermissionDenied(Spool::Create(directory_, 1 << 20, SpoolUsers::kMany).status()));
}

TEST_F(SpoolTest, AnotherFolderInItsPlaceIsNotRead) {
  auto spool = Open();
  ASSERT_TRUE(spool->Append(Of("p-1")).ok());
  const std::string away = directory_ + "-away";
  std::filesystem::rename(directory_, away);
  std::filesystem::create_directory(directory_);
  EXPECT_TRUE(spool->Next(0).has_value());
  EXPECT_TRUE(spool->Append(Of("p-1")).ok());
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
  std::filesystem::remove_all(away);
}

TEST_F(SpoolTest, ASecondAgentIsRefused) {
  auto spool = Open();
  auto second = Spool::Create(directory_, 1 << 20, SpoolUsers::kMany);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
}

}  // namespace
}  // namespace perfd::agent
