#include "core/analysis/hot/hot_phases.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace perfd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecond = 1'000'000'000;

// In samples of 5 ms.
constexpr uint64_t kEach = 5'000'000;
LoopHeat Heat(const std::string& id, uint64_t recent, uint64_t whole = 0) {
  return {.id = id,
          .whole_ns = std::max(whole, recent) * kEach,
          .recent_ns = recent * kEach,
          .recent_samples = recent};
}

std::vector<PhaseLoop> Active(const std::vector<std::string>& ids) {
  std::vector<PhaseLoop> loops;
  for (const std::string& id : ids) loops.push_back({.id = id});
  return loops;
}

// A profile that is asked every two seconds.
struct Profile {
  explicit Profile(std::vector<PhaseLoop> first, int32_t max_loops = 12)
      : loops(std::move(first)), limits{.coverage_ratio = 0.8, .max_loops = max_loops} {}

  PhaseStep Ask(const std::vector<LoopHeat>& heat, int64_t passed = 2 * kSecond) {
    now_ns += passed;
    PhaseStep step = NextPhase(heat, loops, limits, now_ns);
    loops = step.loops;
    changes += step.taken.size() + step.given_up.size();
    const auto active = std::count_if(loops.begin(), loops.end(),
                                      [](const PhaseLoop& loop) { return loop.active; });
    EXPECT_LE(active, limits.max_loops);
    EXPECT_LE(static_cast<int32_t>(loops.size()), MostLoops(limits.max_loops));
    return step;
  }
  bool IsActive(const std::string& id) const {
    return std::any_of(loops.begin(), loops.end(),
                       [&](const PhaseLoop& loop) { return loop.id == id && loop.active; });
  }

  std::vector<PhaseLoop> loops;
  PhaseLimits limits;
  int64_t now_ns = 100 * kSecond;
  size_t changes = 0;
};

TEST(HotPhases, NothingChangesWhileTheSameLoopsAreHot) {
  Profile profile(Active({"a", "b"}));
  for (int i = 0; i < 100; ++i) {
    const PhaseStep step = profile.Ask({Heat("a", 600), Heat("b", 300), Heat("c", 40)});
    EXPECT_THAT(step.taken, IsEmpty());
    EXPECT_THAT(step.given_up, IsEmpty());
  }
  EXPECT_EQ(profile.loops, Active({"a", "b"}));
}

TEST(HotPhases, TheLoopsOfTheNextPhaseAreTakenUpAndThoseOfTheLastGiveTheirPlacesBack) {
  Profile profile(Active({"a"}));
  EXPECT_THAT(profile.Ask({Heat("a", 900, 9000), Heat("b", 100)}).taken, IsEmpty());
  EXPECT_THAT(profile.Ask({Heat("a", 700, 9000), Heat("b", 300)}).taken, ElementsAre("b"));
  const std::vector<LoopHeat> second = {Heat("a", 0, 9000), Heat("b", 1000)};
  // Cold for no time, 2 s ... 14 s: not long enough.
  for (int i = 0; i < 8; ++i) EXPECT_THAT(profile.Ask(second).given_up, IsEmpty()) << i;
  EXPECT_THAT(profile.Ask(second).given_up, ElementsAre("a"));
  EXPECT_FALSE(profile.IsActive("a"));
  EXPECT_TRUE(profile.IsActive("b"));
}

TEST(HotPhases, TheHeaviestComeFirst) {
  Profile profile(Active({"a"}));
  EXPECT_THAT(profile.Ask({Heat("a", 100), Heat("b", 300), Heat("c", 600)}).taken,
              ElementsAre("c", "b"));
}

TEST(HotPhases, EdgesOfComingIn) {
  const auto taken = [](uint64_t own, uint64_t others) {
    Profile profile(Active({"a"}));
    return !profile.Ask({Heat("a", others, 100'000), Heat("b", own)}).taken.empty();
  };
  // Two hot loops at a coverage of 0.8: b is in the recent hot set only with a below 0.8, or ...
  EXPECT_TRUE(taken(250, 750));
  EXPECT_FALSE(taken(150, 850));  // ... it is not needed to cover the time
  const auto split = [](uint64_t own) {
    Profile profile(Active({"a", "c"}));
    profile.limits.coverage_ratio = 0.99;
    const auto step =
        profile.Ask({Heat("a", 500, 1'000'000), Heat("c", 500 - own), Heat("b", own)});
    return !step.taken.empty();
  };
  EXPECT_TRUE(split(50));  // 5 %
  EXPECT_FALSE(split(49));
}

TEST(HotPhases, AFewSamplesDecideNothing) {
  Profile profile(Active({"a"}));
  EXPECT_THAT(profile.Ask({Heat("b", kLeastRecent - 1)}).taken, IsEmpty());
  EXPECT_THAT(profile.Ask({Heat("b", kLeastRecent)}).taken, ElementsAre("b"));
  Profile other(Active({"a"}));
  other.limits.coverage_ratio = 1;
  EXPECT_THAT(other.Ask({Heat("a", 91), Heat("b", 9)}).taken, IsEmpty());
  EXPECT_THAT(other.Ask({Heat("a", 90), Heat("b", 10)}).taken, ElementsAre("b"));
}

TEST(HotPhases, NobodyGetsColdWhileNothingIsKnown) {
  Profile profile(Active({"a"}));
  profile.Ask({Heat("a", 0), Heat("b", 1000)});  // cold from here
  for (int i = 0; i < 6; ++i) profile.Ask({Heat("a", 0), Heat("b", 1000)});
  profile.Ask({});  // the job waits for its messages
  for (int i = 0; i < 20; ++i) EXPECT_THAT(profile.Ask({}).given_up, IsEmpty());
  EXPECT_THAT(profile.Ask({Heat("a", 0), Heat("b", 1000)}).given_up, IsEmpty());
}

TEST(HotPhases, AWarmLoopOfTheWholeProfileComesInWithLess) {
  const auto taken = [](uint64_t recent, uint64_t whole) {
    Profile profile(Active({"a"}));
    return !profile.Ask({Heat("a", 1000 - recent, 10'000), Heat("b", recent, whole)}).taken.empty();
  };
  EXPECT_TRUE(taken(20, 9'000));  // 2 %
  EXPECT_FALSE(taken(19, 9'000));
  EXPECT_FALSE(taken(20, 100));
}

// How hot is a question of time, how much is known one of samples.
TEST(HotPhases, TimeDecidesOnceThereAreEnoughSamples) {
  const auto loop = [](const std::string& id, uint64_t samples, uint64_t each_ns) {
    LoopHeat heat = Heat(id, 0);
    heat.recent_ns = heat.whole_ns = samples * each_ns;
    heat.recent_samples = samples;
    return heat;
  };
  Profile seldom(Active({"a"}));  // b runs on a node that is sampled seldom
  EXPECT_THAT(seldom.Ask({loop("a", 1000, kEach), loop("b", 49, 20 * kEach)}).taken,
              ElementsAre("b"));
  Profile often(Active({"a"}));
  EXPECT_THAT(often.Ask({loop("a", 1000, 20 * kEach), loop("b", 800, kEach)}).taken, IsEmpty());
  Profile few(Active({"a"}));
  EXPECT_THAT(few.Ask({loop("a", 50, kEach), loop("b", 49, 20 * kEach)}).taken, IsEmpty());
  EXPECT_THAT(few.Ask({loop("a", 51, kEach), loop("b", 49, 20 * kEach)}).taken, ElementsAre("b"));
  Profile own(Active({"a"}));
  EXPECT_THAT(own.Ask({loop("a", 1000, kEach), loop("b", 9, 200 * kEach)}).taken, IsEmpty());
}

TEST(HotPhases, NeverMoreThanMaxLoopsAtATime) {
  Profile profile(Active({"a", "b"}), 2);
  const std::vector<LoopHeat> all = {Heat("a", 300), Heat("b", 300), Heat("c", 400)};
  for (int i = 0; i < 30; ++i) EXPECT_THAT(profile.Ask(all).taken, IsEmpty());
}

TEST(HotPhases, AColdLoopMakesRoomSoonerWhenItsPlaceIsNeeded) {
  Profile profile(Active({"a", "b"}), 2);
  const std::vector<LoopHeat> next = {Heat("a", 500), Heat("b", 0), Heat("c", 500)};
  EXPECT_THAT(profile.Ask(next).taken, IsEmpty());                  // cold from here
  EXPECT_THAT(profile.Ask(next, kPressedNs - 1).taken, IsEmpty());  // not quite
  const PhaseStep step = profile.Ask(next, 1);
  EXPECT_THAT(step.taken, ElementsAre("c"));
  EXPECT_THAT(step.given_up, ElementsAre("b"));
}

TEST(HotPhases, OfTwoColdLoopsTheLongerColdMakesRoom) {
  Profile profile(Active({"a", "b", "c"}), 3);
  profile.Ask({Heat("a", 500), Heat("b", 500), Heat("c", 0)});
  profile.Ask({Heat("a", 500), Heat("b", 0), Heat("c", 0)});
  EXPECT_THAT(profile.Ask({Heat("a", 500), Heat("d", 500)}, 8 * kSecond).given_up,
              ElementsAre("c"));
}

TEST(HotPhases, WhatIsSettledMakesRoomAtOnceAndDoesNotComeBack) {
  Profile profile(Active({"a", "b"}), 2);
  LoopHeat done = Heat("b", 300);
  done.settled = true;
  const std::vector<LoopHeat> heat = {Heat("a", 300), done, Heat("c", 400)};
  const PhaseStep step = profile.Ask(heat);
  EXPECT_THAT(step.given_up, ElementsAre("b"));
  EXPECT_THAT(step.taken, ElementsAre("c"));
  for (int i = 0; i < 30; ++i) EXPECT_THAT(profile.Ask(heat).taken, IsEmpty());
}

TEST(HotPhases, WhatIsSettledStaysWhileNobodyNeedsItsPlace) {
  Profile profile(Active({"a", "b"}), 3);
  LoopHeat done = Heat("b", 300);
  done.settled = true;
  EXPECT_THAT(profile.Ask({Heat("a", 300), done, Heat("c", 400)}).given_up, IsEmpty());
}

TEST(HotPhases, ALoopComesBackWithItsPhaseButNotForEver) {
  Profile profile(Active({"a"}), 1);
  int returns = 0;
  for (int round = 0; round < 20; ++round) {
    for (const std::string id : {"b", "a"}) {
      for (int i = 0; i < 15; ++i)
        returns += static_cast<int>(profile.Ask({Heat(id, 1000)}).taken.size());
    }
  }
  EXPECT_EQ(returns, 1 + 2 * kMostReturns);  // b once, then both again
  EXPECT_THAT(profile.loops, SizeIs(2));
}

TEST(HotPhases, ShareThatWaversAroundAnEdgeChangesNothing) {
  // Below 1 % every other time: never cold for long.
  Profile low(Active({"a", "b"}));
  for (int i = 0; i < 200; ++i) low.Ask({Heat("a", 990), Heat("b", i % 2 == 0 ? 5 : 15)});
  EXPECT_EQ(low.changes, 0u);
  // Around 5 %: taken up once, and kept.
  Profile high(Active({"a", "c"}));
  high.limits.coverage_ratio = 1;
  for (int i = 0; i < 200; ++i)
    high.Ask({Heat("a", 500), Heat("c", 450), Heat("b", i % 2 == 0 ? 60 : 40)});
  EXPECT_EQ(high.changes, 1u);
}

TEST(HotPhases, TheNumberOfLoopsOfAProfileIsBounded) {
  EXPECT_EQ(MostLoops(1), 3);
  EXPECT_EQ(MostLoops(12), 32);
  EXPECT_EQ(MostLoops(100), 100);
  Profile profile(Active({"first"}), 2);
  for (int phase = 0; phase < 50; ++phase) {
    for (int i = 0; i < 15; ++i) profile.Ask({Heat(absl::StrCat("loop", phase), 1000)});
  }
  EXPECT_THAT(profile.loops, SizeIs(6));
}

TEST(HotPhases, LoopsThatAreGoneFromTheHeatAreCold) {
  Profile profile(Active({"a"}));
  for (int i = 0; i < 9; ++i) profile.Ask({Heat("b", 1000)});
  EXPECT_FALSE(profile.IsActive("a"));
}

TEST(HotPhases, NoHeatAndNoLoops) {
  Profile profile({});
  const PhaseStep step = profile.Ask({});
  EXPECT_THAT(step.loops, IsEmpty());
  EXPECT_THAT(profile.Ask({Heat("a", 1000)}).taken, ElementsAre("a"));
}

}  // namespace
}  // namespace perfd
