// Loops that are added to a rank which is measured already, and waits that are cut short.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/integration/shadow/injector_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

TEST_F(RankInjectorTest, ALoopThatComesLaterIsMeasuredBesideTheFirstAndNothingIsLeft) {
  PuppetRank puppet({"2", "2000", "0", "two"});
  const std::vector<uint8_t> text = puppet.Text();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its threads begin
  const std::vector<std::string> maps = puppet.Maps();
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({"LS"})}).ok());
  const std::vector<uint8_t> first = puppet.Text();
  ASSERT_TRUE(Shadow(**injector, Request({{.variant = 0}, {.variant = 1}}, 2)).ok());
  auto added = (*injector)->Add({puppet.MakeLoop({"FP"}, 1)});
  ASSERT_TRUE(added.ok()) << added.status();
  ASSERT_TRUE(added->at(0).status.ok()) << added->at(0).status;
  EXPECT_EQ(puppet.Text(), first);  // its jump is not in yet
  EXPECT_FALSE((*injector)->CountEntries(1, 10 * kMs).ok());
  ASSERT_TRUE((*injector)->SetPatched(1, true).ok());
  EXPECT_NE(puppet.Text(), first);
  auto entry_count = (*injector)->CountEntries(1, 100 * kMs);
  ASSERT_TRUE(entry_count.ok()) << entry_count.status();
  EXPECT_GT(entry_count->team, 0);
  ShadowRequest later = Request({{.variant = 0}, {.variant = 1}}, entry_count->team);
  later.loop = 1;
  auto answer = Shadow(**injector, later);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->outcome, "done");
  EXPECT_EQ(answer->runs.at(answer->runs.size() - 1).iterations, 2000u);
  auto again = Shadow(**injector, Request({{.variant = 0}, {.variant = 1}}, 2));
  ASSERT_TRUE(again.ok()) << again.status();  // the first goes on
  ASSERT_TRUE((*injector)->SetPatched(1, false).ok());
  EXPECT_EQ(puppet.Text(), first);  // given up: exactly what was there
  ASSERT_TRUE((*injector)->SetPatched(1, true).ok());
  ASSERT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(puppet.Text(), text);
  EXPECT_EQ(puppet.Maps(), maps);
  EXPECT_EQ(Journals(), 0u);
  EXPECT_FALSE((*injector)->Add({puppet.MakeLoop({}, 1)}).ok());  // it is over
  EXPECT_EQ(puppet.Text(), text);
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 2000, end.passes, "two"));
}

TEST_F(RankInjectorTest, ALoopThatSharesCodeWithAnEarlierOneIsRefusedAndTheOthersGoOn) {
  PuppetRank puppet({"1", "2000", "0", "two"});
  const std::vector<uint8_t> text = puppet.Text();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its threads begin
  const std::vector<std::string> maps = puppet.Maps();
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  auto added = (*injector)->Add({puppet.MakeLoop({}), puppet.MakeLoop({}, 1)});
  ASSERT_TRUE(added.ok()) << added.status();
  ASSERT_EQ(added->size(), 2u);
  EXPECT_THAT(std::string(added->at(0).status.message()), HasSubstr("shares code"));
  EXPECT_TRUE(added->at(1).status.ok()) << added->at(1).status;
  // Nothing at all is mapped for loops that are all refused.
  const std::vector<std::string> before = puppet.Maps();
  auto refused = (*injector)->Add({puppet.MakeLoop({}, 1)});
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_FALSE(refused->at(0).status.ok());
  EXPECT_EQ(puppet.Maps(), before);
  ASSERT_TRUE((*injector)->SetPatched(2, true).ok());
  ShadowRequest request = Request({{.variant = 0}}, 1);
  request.loop = 2;
  EXPECT_TRUE(Shadow(**injector, request).ok());
  ASSERT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(puppet.Text(), text);
  EXPECT_EQ(puppet.Maps(), maps);
}

TEST_F(RankInjectorTest, WhatWasAddedIsHealedByTheRegionAlone) {
  PuppetRank puppet({"2", "2000", "0", "two"});
  const std::vector<uint8_t> text = puppet.Text();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // its threads begin
  const std::vector<std::string> maps = puppet.Maps();
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  ASSERT_TRUE((*injector)->Add({puppet.MakeLoop({}, 1)}).ok());
  ASSERT_TRUE((*injector)->SetPatched(1, true).ok());
  std::filesystem::remove_all(directory_);  // the journal is lost
  const HealReport report = HealRank(puppet.pid(), options_);
  EXPECT_TRUE(report.status.ok()) << report.status;
  EXPECT_THAT(report.done, HasSubstr("restored 2 loops"));
  EXPECT_EQ(puppet.Text(), text);
  EXPECT_EQ(puppet.Maps(), maps);
  PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(2, 2000, end.passes, "two"));
}

// The second loop never runs: everything that waits for it would wait for half a minute.
TEST_F(RankInjectorTest, WaitsEndWhenTheyAreCancelled) {
  PuppetRank puppet({"1", "2000", "0"});
  std::atomic<bool> cancelled = false;
  options_.cancelled = [&] { return cancelled.load(); };
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({}), puppet.MakeLoop({}, 1)}).ok());
  const auto takes_long = [&](const std::function<absl::Status()>& wait) {
    cancelled = false;
    const auto begin = std::chrono::steady_clock::now();
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      cancelled = true;
    });
    wait().IgnoreError();
    canceller.join();
    return std::chrono::steady_clock::now() - begin > std::chrono::seconds(15);
  };
  constexpr int64_t kLong = 30'000 * kMs;
  EXPECT_FALSE(takes_long([&] { return (*injector)->CountEntries(1, kLong).status(); }));
  EXPECT_FALSE(takes_long([&] { return (*injector)->TimeLive(1, 20, kLong).status(); }));
  ShadowRequest request = Request({{.variant = 0}}, 1);
  request.loop = 1;
  request.timeout_ns = kLong;
  EXPECT_FALSE(takes_long([&] { return (*injector)->RunShadow(request).status(); }));
  EXPECT_TRUE((*injector)->Uninstall().ok());
}

}  // namespace
}  // namespace perfd::agent
