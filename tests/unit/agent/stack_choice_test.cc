#include "agent/pipeline/stack_choice.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/base/clock.h"

namespace perfd::agent {
namespace {

constexpr int64_t kDrainNs = 100 * kNsPerMs;

// The candidates chosen of one drain, as a session would hold them.
std::vector<int> Drain(StackChoice& choice, int64_t now_ns, int candidates) {
  std::vector<int> chosen;
  choice.Begin(now_ns);
  for (int i = 0; i < candidates; ++i) {
    const auto location = choice.Next();
    if (!location.has_value()) continue;
    if (*location == chosen.size())
      chosen.push_back(i);
    else
      chosen.at(*location) = i;
  }
  return chosen;
}

TEST(StackChoice, FewAreAllChosen) {
  StackChoice choice(50);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(Drain(choice, i * kDrainNs, 3).size(), 3u);
}

TEST(StackChoice, NeverMoreThanTheRate) {
  StackChoice choice(50);
  size_t chosen = 0;
  for (int64_t i = 0; i < 100; ++i) chosen += Drain(choice, i * kDrainNs, 1000).size();
  EXPECT_LE(chosen, 500u);
  EXPECT_GE(chosen, 495u);
}

TEST(StackChoice, ALateDrainHasRoomForHalfASecond) {
  StackChoice choice(50);
  Drain(choice, 0, 1000);
  EXPECT_EQ(Drain(choice, 3600 * kNsPerSecond, 1000).size(), 25u);
  EXPECT_EQ(Drain(choice, 3600 * kNsPerSecond, 1000).size(), 0u);
  EXPECT_EQ(Drain(choice, 3599 * kNsPerSecond, 1000).size(), 0u) << "time went back";
}

TEST(StackChoice, EachCandidateHasTheSameChanceWhereverItsRingIs) {
  StackChoice choice(50);
  std::array<int, 160> counts{};
  constexpr int64_t kDrains = 20'000;
  for (int64_t i = 0; i < kDrains; ++i) {
    for (int candidate : Drain(choice, i * kDrainNs, counts.size()))
      ++counts[static_cast<size_t>(candidate)];
  }
  // 625 expected each, standard deviation 25: six of them either way.
  for (size_t i = 0; i < counts.size(); ++i) {
    EXPECT_GT(counts[i], 475) << i;
    EXPECT_LT(counts[i], 775) << i;
  }
}

}  // namespace
}  // namespace perfd::agent
