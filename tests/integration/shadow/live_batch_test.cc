// Batches of short instances, timed in the rank itself: as long as the program's own clock says, whatever it computes stays as it is.
#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/integration/shadow/injector_fixture.h"

namespace perfd::agent {
namespace {

constexpr int64_t kRows = 20000, kLength = 13;
constexpr uint64_t kTurns = 500;

class LiveBatchTest : public RankInjectorTest {
 protected:
  static PuppetRank Rank(int threads) {
    return PuppetRank({absl::StrCat(threads), absl::StrCat(kRows), absl::StrCat(kLength), "0"},
                      PERFD_ROWS_PUPPET);
  }

  static LoopToInject Loop(const PuppetRank& rank) {
    LoopToInject loop = rank.MakeLoop({"LS"}, 0);
    loop.batch = DecodeBatch(loop.code, rank.BytesOf(1));
    return loop;
  }

  static std::string UndisturbedChecksum(int64_t passes) {
    const std::string command =
        absl::StrCat(PERFD_ROWS_PUPPET, " 1 ", kRows, " ", kLength, " ", passes);
    FILE* out = popen(command.c_str(), "r");
    std::array<char, 256> line{};
    std::string checksum;
    while (fgets(line.data(), line.size(), out) != nullptr) {
      char sum[64] = "";
      if (sscanf(line.data(), "%*d %63s %*f\n", sum) == 1) checksum = sum;
    }
    pclose(out);
    return checksum;
  }
};

double Least(const std::vector<LiveBatch>& batches) {
  double least = HUGE_VAL;
  for (const LiveBatch& batch : batches)
    least = std::min(least, static_cast<double>(batch.ticks) / static_cast<double>(batch.turns));
  return least;
}

TEST_F(LiveBatchTest, TakesAsLongAsTheProgramsOwnClockSays) {
  PuppetRank puppet = Rank(1);
  const std::vector<uint8_t> text = puppet.Text();
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  auto installed = (*injector)->Install({Loop(puppet)});
  ASSERT_TRUE(installed.ok()) << installed.status();
  ASSERT_TRUE(installed->at(0).status.ok()) << installed->at(0).status;
  ASSERT_TRUE(installed->at(0).batches.ok()) << installed->at(0).batches;
  double least = HUGE_VAL;
  for (int i = 0; i < 5; ++i) {
    auto batches = (*injector)->TimeLiveBatches(0, 60, kTurns, 5000 * kMs);
    ASSERT_TRUE(batches.ok()) << batches.status();
    EXPECT_GE(batches->size(), 60u);
    const auto whole = std::count_if(batches->begin(), batches->end(),
                                     [](const LiveBatch& b) { return b.turns == kTurns; });
    EXPECT_GT(whole, 40) << "others end with the loop around";
    least = std::min(least, Least(*batches));
  }
  ASSERT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(puppet.Text(), text);
  const PuppetEnd end = puppet.Stop();
  printf("a row: %.1f ticks, by the program's own clock %.1f\n", least, end.figure);
  EXPECT_GT(least, 0.75 * end.figure);
  EXPECT_LT(least, 1.35 * end.figure);
  EXPECT_EQ(end.checksum, UndisturbedChecksum(end.passes));
}

TEST_F(LiveBatchTest, ThreadsTakeTurns) {
  PuppetRank puppet = Rank(3);
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({Loop(puppet)}).ok());
  for (int i = 0; i < 20; ++i) {
    auto batches = (*injector)->TimeLiveBatches(0, 40, kTurns, 5000 * kMs);
    ASSERT_TRUE(batches.ok()) << batches.status();
    for (const LiveBatch& batch : *batches) {
      EXPECT_GE(batch.turns, 1u);
      EXPECT_LE(batch.turns, kTurns);
      EXPECT_GT(batch.ticks, 0u);
    }
    auto live = (*injector)->TimeLive(0, 20, 5000 * kMs);
    ASSERT_TRUE(live.ok()) << live.status();
    EXPECT_EQ(live->size(), 20u);
  }
  ASSERT_TRUE((*injector)->Uninstall().ok());
  const PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.checksum, UndisturbedChecksum(end.passes));
}

// In the middle of batches, again and again: whoever is in one is sent to the original text.
TEST_F(LiveBatchTest, IsTakenOutWhileThreadsAreInIt) {
  PuppetRank puppet = Rank(2);
  const std::vector<uint8_t> text = puppet.Text();
  for (int i = 0; i < 10; ++i) {
    auto injector = RankInjector::Open(puppet.rank(), options_);
    ASSERT_TRUE(injector.ok()) << injector.status();
    ASSERT_TRUE((*injector)->Install({Loop(puppet)}).ok());
    // More and longer ones than there is time for, so that some thread is in one at the end.
    (void)(*injector)->TimeLiveBatches(0, 400, uint64_t{1} << 40, (1 + i % 4) * kMs);
    ASSERT_TRUE((*injector)->Uninstall().ok());
    ASSERT_EQ(puppet.Text(), text);
  }
  const PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, UndisturbedChecksum(end.passes));
}

TEST_F(LiveBatchTest, WithoutABatchThereIsNone) {
  PuppetRank puppet = Rank(1);
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({"LS"}, 0)}).ok());
  const auto batches = (*injector)->TimeLiveBatches(0, 10, kTurns, 1000 * kMs);
  EXPECT_EQ(batches.status().code(), absl::StatusCode::kFailedPrecondition) << batches.status();
  ASSERT_TRUE((*injector)->Uninstall().ok());
}

}  // namespace
}  // namespace perfd::agent
