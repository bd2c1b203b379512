#include "core/spec/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perfd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Policy Read(const std::string& text) {
  const auto policy = ParsePolicy(text);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.value_or(Policy());
}

std::string ErrorOf(const std::string& text) {
  const auto policy = ParsePolicy(text);
  if (policy.ok()) return "";
  EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(policy.status().message());
}

constexpr char kWhole[] = R"(apiVersion: perfd/v1
kind: Policy
every: 3
seed: 1
quota: { active: 2, per_day: 50 }
users: { opt_in: true, opt_out: false }
wait: 10m
preset: light
presets:
  light: { duration: 30s, variants: { set: [] } }
  deep:
    duration: 5m
    budget: { overhead: 1% }
rules:
  - match: { partition: [debug, short] }
    never: true
  - match: { user: [alice], account: [physics] }
    every: 10
    preset: deep
  - match: { account: [perf] }
    profile: true
)";

TEST(PolicyTest, PresetsHaveAFixedLengthUnlessTheySayAuto) {
  const Policy policy = Read(
      "presets:\n  none: {}\n  quick: {budget: {overhead: 1%}}\n  known: {duration: auto}\n"
      "  soon: {max_duration: 4m, duration: auto}\n");
  for (const char* name : {"default", "none", "quick"}) {
    EXPECT_FALSE(policy.presets.at(name).until_known) << name;
    EXPECT_EQ(policy.presets.at(name).duration_ns, kFixedDurationNs) << name;
  }
  EXPECT_TRUE(policy.presets.at("known").until_known);
  EXPECT_EQ(policy.presets.at("known").duration_ns, kLongestUntilKnownNs);
  EXPECT_TRUE(policy.presets.at("soon").until_known);
  EXPECT_EQ(policy.presets.at("soon").duration_ns, 240'000'000'000);
  EXPECT_THAT(ErrorOf("presets:\n  a: {max_duration: 4m}\n"),
              HasSubstr("max_duration can only stand with duration: auto"));
}

TEST(PolicyTest, EveryKey) {
  const Policy policy = Read(kWhole);
  EXPECT_EQ(policy.every, 3);
  EXPECT_EQ(policy.seed, 1);
  EXPECT_EQ(policy.quota_active, 2);
  EXPECT_EQ(policy.quota_per_day, 50);
  EXPECT_TRUE(policy.users_opt_in);
  EXPECT_FALSE(policy.users_opt_out);
  EXPECT_EQ(policy.wait_ns, 600'000'000'000);
  EXPECT_EQ(policy.preset, "light");
  ASSERT_EQ(policy.presets.size(), 3u);  // and the default
  EXPECT_EQ(policy.presets.at("light").duration_ns, 30'000'000'000);
  EXPECT_FALSE(policy.presets.at("light").until_known);
  EXPECT_EQ(policy.presets.at("default"), FixedLengthSpec());
  EXPECT_TRUE(policy.presets.at("light").variants.set.empty());
  EXPECT_DOUBLE_EQ(policy.presets.at("deep").budget.overhead_ratio, 0.01);
  ASSERT_EQ(policy.rules.size(), 3u);
  EXPECT_THAT(policy.rules[0].match.partitions, ElementsAre("debug", "short"));
  EXPECT_EQ(policy.rules[0].action, PolicyRule::Action::kNever);
  EXPECT_EQ(policy.rules[1].action, PolicyRule::Action::kCount);
  EXPECT_EQ(policy.rules[1].every, 10);
  EXPECT_EQ(policy.rules[1].preset, "deep");
  EXPECT_EQ(policy.rules[2].action, PolicyRule::Action::kProfile);
}

TEST(PolicyTest, WhatIsNotGivenHasItsDefault) {
  EXPECT_EQ(Read("every: 0\n"), Policy());
  const Policy policy = Read("every: 3\n");
  EXPECT_EQ(policy.quota_active, 4);
  EXPECT_EQ(policy.wait_ns, 1'800'000'000'000);
  EXPECT_EQ(policy.presets.at("default"), FixedLengthSpec());
  EXPECT_EQ(Read("presets: {default: {duration: 10s}}\n").presets.at("default").duration_ns,
            10'000'000'000);
}

TEST(PolicyTest, UnknownAndDuplicateKeys) {
  EXPECT_EQ(ErrorOf("evry: 3\n"), "line 1, column 1: unknown key 'evry'; did you mean 'every'?");
  EXPECT_EQ(ErrorOf("quota: {per_dy: 1}\n"),
            "line 1, column 9: unknown key 'per_dy' in quota; did you mean 'per_day'?");
  EXPECT_THAT(ErrorOf("every: 3\nevery: 4\n"),
              HasSubstr("line 2, column 1: duplicate key 'every'"));
  EXPECT_THAT(ErrorOf("presets: {a: {}, a: {}}\n"), HasSubstr("duplicate preset 'a'"));
  EXPECT_THAT(ErrorOf("rules: [{match: {host: [a]}, never: true}]\n"),
              HasSubstr("unknown key 'host' in match"));
  EXPECT_THAT(ErrorOf("every:\n"), HasSubstr("every has no value"));
}

TEST(PolicyTest, WrongTypesAndRanges) {
  EXPECT_THAT(ErrorOf("every: -1\n"), HasSubstr("line 1, column 8: every: -1 is out of range 0.."));
  EXPECT_THAT(ErrorOf("every: 1000000001\n"), HasSubstr("out of range"));
  EXPECT_EQ(ErrorOf("every: 1000000000\n"), "");
  EXPECT_THAT(ErrorOf("every: often\n"), HasSubstr("not a whole number"));
  EXPECT_THAT(ErrorOf("every: [3]\n"), HasSubstr("expected a single value"));
  EXPECT_THAT(ErrorOf("users: {opt_in: maybe}\n"), HasSubstr("'maybe' is not true or false"));
  EXPECT_THAT(ErrorOf("wait: 30\n"), HasSubstr("lacks a unit"));
  EXPECT_THAT(ErrorOf("wait: 8d\n"), HasSubstr("out of range 1s..7d"));
  EXPECT_EQ(ErrorOf("wait: 7d\n"), "");
  EXPECT_THAT(ErrorOf("rules: {never: true}\n"), HasSubstr("expected a list of rules"));
  EXPECT_THAT(ErrorOf("rules: [never]\n"), HasSubstr("expected a map of keys"));
  EXPECT_THAT(ErrorOf("rules: [{match: {user: alice}, never: true}]\n"),
              HasSubstr("expected a list such as"));
  EXPECT_THAT(ErrorOf("rules: [{match: {user: []}, never: true}]\n"), HasSubstr("has 0 names"));
  EXPECT_THAT(ErrorOf("quota: 4\n"), HasSubstr("expected a map of keys"));
  EXPECT_THAT(ErrorOf("kind: Profile\n"), HasSubstr("'Profile' is not supported"));
  EXPECT_THAT(ErrorOf("- every\n"), HasSubstr("expected a map of keys"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("the file is empty"));
}

TEST(PolicyTest, ARuleSaysOneThing) {
  EXPECT_THAT(ErrorOf("rules: [{never: true, every: 3}]\n"), HasSubstr("only one of never"));
  EXPECT_THAT(ErrorOf("rules: [{match: {user: [a]}}]\n"), HasSubstr("needs one of never"));
  EXPECT_THAT(ErrorOf("rules: [{never: false}]\n"), HasSubstr("can only be true"));
  EXPECT_THAT(ErrorOf("rules: [{never: true, preset: default}]\n"), HasSubstr("needs no preset"));
  EXPECT_EQ(ErrorOf("rules: [{preset: default}]\n"), "");
}

TEST(PolicyTest, PresetsAreProfilesWithoutATarget) {
  EXPECT_THAT(ErrorOf("presets:\n  a:\n    target: {pids: [1]}\n"),
              HasSubstr("line 3, column 5: a preset has no target"));
  EXPECT_THAT(ErrorOf("presets:\n  a: {duration: 30}\n"),
              HasSubstr("line 2, column 17: duration: '30' lacks a unit"));
  EXPECT_THAT(ErrorOf("presets:\n  a: {durration: 30s}\n"), HasSubstr("did you mean 'duration'?"));
  EXPECT_THAT(ErrorOf("presets: {a b: {}}\n"), HasSubstr("the name of a preset"));
  EXPECT_THAT(ErrorOf("presets: {a: [1]}\n"), HasSubstr("expected keys of a profile"));
  EXPECT_EQ(ErrorOf("presets: {a: {}, b: ~}\n"), "");
}

TEST(PolicyTest, APresetThatIsNamedExists) {
  EXPECT_EQ(ErrorOf("preset: deap\npresets: {deep: {}}\n"),
            "line 1, column 9: there is no preset 'deap'; did you mean 'deep'?");
  EXPECT_THAT(ErrorOf("rules: [{preset: zzzzzz}]\n"), HasSubstr("there is no preset 'zzzzzz'"));
}

}  // namespace
}  // namespace perfd
