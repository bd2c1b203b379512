#include "daemon/policy/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "core/spec/policy.h"

namespace perfd::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using D = HookDecision;

Policy Read(const std::string& text) {
  const auto policy = ParsePolicy(text);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.value_or(Policy());
}

HookJob Job(HookPreference preference = HookPreference::kNone, const std::string& preset = "") {
  HookJob job;
  job.job = "1";
  job.user = "alice";
  job.partition = "batch";
  job.account = "physics";
  job.preference = preference;
  job.preset = preset;
  return job;
}

D DecisionOf(const Policy& policy, const HookJob& job, const PolicyUse& use = {}) {
  return Decide(policy, job, use).answer.decision;
}

// The numbers, of the first `jobs`, that are profiled.
std::vector<int64_t> Chosen(const Policy& policy, int64_t jobs) {
  std::vector<int64_t> chosen;
  int64_t counted = 0;
  for (int64_t i = 0; i < jobs; ++i) {
    const PolicyChoice choice =
        Decide(policy, Job(), {.counted = counted, .active = 0, .today = 0});
    counted = choice.number;
    if (choice.answer.decision == D::kProfile) chosen.push_back(choice.number);
  }
  return chosen;
}

TEST(DecideTest, EveryNthJob) {
  EXPECT_THAT(Chosen(Read("every: 3"), 9), ElementsAre(3, 6, 9));
  EXPECT_THAT(Chosen(Read("every: 1"), 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(Chosen(Read("every: 0"), 9), ElementsAre());
}

TEST(DecideTest, TheSeedShiftsWhichOfThem) {
  EXPECT_THAT(Chosen(Read("{every: 3, seed: 1}"), 9), ElementsAre(2, 5, 8));
  EXPECT_THAT(Chosen(Read("{every: 3, seed: 2}"), 9), ElementsAre(1, 4, 7));
  EXPECT_THAT(Chosen(Read("{every: 3, seed: 3}"), 9), ElementsAre(3, 6, 9));
  // Any thirty in a row have ten of them.
  for (int seed = 0; seed < 7; ++seed) {
    EXPECT_EQ(Chosen(Read("{every: 3, seed: " + std::to_string(seed) + "}"), 30).size(), 10u);
  }
}

TEST(DecideTest, TheReasonIsSaid) {
  const PolicyChoice yes = Decide(Read("every: 3"), Job(), {.counted = 5, .active = 0, .today = 0});
  EXPECT_EQ(yes.answer.reason, "every 3rd job by policy (number 6)");
  EXPECT_EQ(yes.preset, "default");
  const PolicyChoice no = Decide(Read("every: 12"), Job(), {.counted = 5, .active = 0, .today = 0});
  EXPECT_EQ(no.answer.reason, "every 12th job by policy; this is number 6");
  EXPECT_EQ(no.number, 6);
  EXPECT_EQ(no.preset, "");
}

TEST(DecideTest, UsersMayAskAndRefuse) {
  const Policy policy = Read("{every: 1000, presets: {deep: {}}}");
  const PolicyChoice asked = Decide(policy, Job(HookPreference::kOptIn, "deep"), {});
  EXPECT_EQ(asked.answer.decision, D::kProfile);
  EXPECT_EQ(asked.answer.reason, "asked for by its user");
  EXPECT_EQ(asked.preset, "deep");
  EXPECT_EQ(asked.number, 0);  // not one of those of which every 1000th is
  EXPECT_EQ(Decide(policy, Job(HookPreference::kOptIn), {}).preset, "default");
  const PolicyChoice refused = Decide(Read("every: 1"), Job(HookPreference::kOptOut), {});
  EXPECT_EQ(refused.answer.decision, D::kOptedOut);
  EXPECT_EQ(refused.number, 0);
}

// Else it would be a way to refuse where the policy forbids that.
TEST(DecideTest, APresetThatIsNoneIsTheUsualOne) {
  const Policy policy = Read(R"(
every: 1000
users: {opt_out: false}
presets: {deep: {}}
rules:
  - {match: {partition: [gpu]}, preset: deep}
)");
  const PolicyChoice unknown = Decide(policy, Job(HookPreference::kOptIn, "depe"), {});
  EXPECT_EQ(unknown.answer.decision, D::kProfile);
  EXPECT_EQ(unknown.preset, "default");
  EXPECT_EQ(unknown.number, 0);
  EXPECT_EQ(
      unknown.answer.reason,
      "asked for by its user with preset 'depe', which is none of deep, default: 'default' is "
      "taken");
  HookJob job = Job(HookPreference::kOptIn, std::string(300, 'x'));
  job.partition = "gpu";
  const PolicyChoice ruled = Decide(policy, job, {});
  EXPECT_EQ(ruled.preset, "deep");
  EXPECT_THAT(ruled.answer.reason, HasSubstr("'" + std::string(64, 'x') + "...', which is none"));
  job.preset = "a\nb\x1b\xff";  // on one line, in logs too
  EXPECT_THAT(Decide(policy, job, {}).answer.reason, HasSubstr("'a?b?"
                                                               "?', which"));
  // Where nobody may ask, it counts as every other job.
  EXPECT_EQ(Decide(Read("{every: 2, users: {opt_in: false}}"), job, {}).number, 1);
}

TEST(DecideTest, WhereUsersMayNotAskTheirWishDoesNotCount) {
  const Policy policy = Read("{every: 2, users: {opt_in: false, opt_out: false}}");
  EXPECT_EQ(DecisionOf(policy, Job(HookPreference::kOptIn)), D::kNotChosen);
  EXPECT_EQ(
      DecisionOf(policy, Job(HookPreference::kOptOut), {.counted = 1, .active = 0, .today = 0}),
      D::kProfile);
}

TEST(DecideTest, TheFirstRuleThatMatchesCounts) {
  const Policy policy = Read(R"(
every: 0
presets: {deep: {}}
rules:
  - {match: {partition: [debug]}, never: true}
  - {match: {user: [alice], account: [physics]}, profile: true, preset: deep}
  - {match: {user: [alice]}, never: true}
)");
  HookJob job = Job();
  const PolicyChoice both = Decide(policy, job, {});
  EXPECT_EQ(both.answer.decision, D::kProfile);
  EXPECT_EQ(both.preset, "deep");
  EXPECT_EQ(both.answer.reason, "every job by policy, rule 2 for user alice, account physics");
  job.account = "chemistry";
  EXPECT_EQ(DecisionOf(policy, job), D::kNever);
  job.partition = "debug";
  job.preference = HookPreference::kOptIn;  // the site has the last word
  const PolicyChoice debug = Decide(policy, job, {});
  EXPECT_EQ(debug.answer.decision, D::kNever);
  EXPECT_EQ(debug.answer.reason, "never by policy, rule 1 for partition debug");
  job = Job();
  job.user = "bob";
  EXPECT_EQ(DecisionOf(policy, job), D::kNotChosen);
}

TEST(DecideTest, ARuleWithItsOwnEveryCountsApart) {
  const Policy policy = Read(R"(
every: 3
rules:
  - {match: {partition: [batch, long]}, every: 2}
  - {match: {user: [bob]}, preset: default}
)");
  EXPECT_EQ(CounterOf(policy, Job()), "partition=batch,long;user=;account=");
  HookJob other = Job();
  other.partition = "gpu";
  EXPECT_EQ(CounterOf(policy, other), "");
  other.user = "bob";  // a rule without `every` counts with all others
  EXPECT_EQ(CounterOf(policy, other), "");
  EXPECT_EQ(DecisionOf(policy, Job(), {.counted = 1, .active = 0, .today = 0}), D::kProfile);
  EXPECT_EQ(DecisionOf(policy, other, {.counted = 1, .active = 0, .today = 0}), D::kNotChosen);
  // The same rule in another place and another order of names.
  const Policy moved = Read(R"(
rules:
  - {match: {partition: [gpu]}, never: true}
  - {match: {partition: [long, batch]}, every: 2}
)");
  EXPECT_EQ(CounterOf(moved, Job()), CounterOf(policy, Job()));
}

TEST(DecideTest, TheQuotaComesLast) {
  const Policy policy = Read("{every: 1, quota: {active: 2, per_day: 10}}");
  EXPECT_EQ(DecisionOf(policy, Job(), {.counted = 0, .active = 1, .today = 9}), D::kProfile);
  const PolicyChoice active = Decide(policy, Job(), {.counted = 4, .active = 2, .today = 0});
  EXPECT_EQ(active.answer.decision, D::kQuota);
  EXPECT_EQ(active.number, 5);  // it was counted
  EXPECT_THAT(active.answer.reason, HasSubstr("2 profiles of jobs are active, and 2 may be"));
  const PolicyChoice today = Decide(policy, Job(), {.counted = 4, .active = 0, .today = 10});
  EXPECT_EQ(today.answer.decision, D::kQuota);
  EXPECT_THAT(today.answer.reason, HasSubstr("10 may be"));
  EXPECT_EQ(
      DecisionOf(policy, Job(HookPreference::kOptIn), {.counted = 0, .active = 2, .today = 0}),
      D::kQuota);
  EXPECT_EQ(DecisionOf(Read("{every: 1, quota: {active: 0}}"), Job()), D::kQuota);
  EXPECT_EQ(DecisionOf(Read("{every: 2, quota: {active: 0}}"), Job()), D::kNotChosen);
}

TEST(DecideTest, TheSameInputsGiveTheSameDecision) {
  const Policy policy = Read("{every: 7, seed: 4}");
  for (int64_t counted = 0; counted < 50; ++counted) {
    const PolicyUse use{.counted = counted, .active = 1, .today = 1};
    EXPECT_EQ(Decide(policy, Job(), use), Decide(policy, Job(), use));
  }
}

TEST(DecideTest, DaysBeginAtMidnight) {
  constexpr int64_t kSecond = 1'000'000'000;
  constexpr int64_t kDay = 86'400 * kSecond;
  EXPECT_EQ(MidnightNs(19'000 * kDay), 19'000 * kDay);
  EXPECT_EQ(MidnightNs(19'000 * kDay + 1), 19'000 * kDay);
  EXPECT_EQ(MidnightNs(19'001 * kDay - 1), 19'000 * kDay);
}

TEST(JobNumberTest, OfEveryScheduler) {
  EXPECT_EQ(JobNumber("4711"), 4711u);
  EXPECT_EQ(JobNumber("4711.server"), 4711u);
  EXPECT_EQ(JobNumber("4294967295"), 4294967295u);
  EXPECT_EQ(JobNumber(""), std::nullopt);
  EXPECT_EQ(JobNumber("0"), std::nullopt);
  for (const char* text :
       {"f2Lg9kz", "4294967296", "4711x", "4711[3]", "4711[", "4711[]", "\xc6\x92Z"}) {
    ASSERT_TRUE(JobNumber(text).has_value()) << text;
    EXPECT_GE(*JobNumber(text), uint32_t{1} << 31) << text;
  }
  EXPECT_NE(JobNumber("f2Lg9kz"), JobNumber("f2Lg9ky"));
}

TEST(JobNumberTest, EachElementOfAnArrayIsAJobOfItsOwn) {
  // Prologs and ranks may be told with or without the server.
  EXPECT_EQ(JobNumber("4711[3].server"), JobNumber("4711[3]"));
  EXPECT_NE(JobNumber("4711[3]"), JobNumber("4711[4]"));
  EXPECT_NE(JobNumber("4711[3]"), JobNumber("4712[3]"));
  EXPECT_NE(JobNumber("4711[3]"), JobNumber("4711"));
}

}  // namespace
}  // namespace perfd::daemon
