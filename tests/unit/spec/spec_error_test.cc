#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/spec.h"

namespace perfd {
namespace {

using ::testing::HasSubstr;

// The error of `text` below a valid target.
std::string ErrorOf(const std::string& text) {
  const auto spec = ParseProfileSpec("target: {pids: [1]}\n" + text);
  if (spec.ok()) return "";
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(spec.status().message());
}

std::string WholeError(absl::string_view text) {
  return std::string(ParseProfileSpec(text).status().message());
}

TEST(SpecErrorTest, UnknownKeysNameTheNearest) {
  EXPECT_EQ(ErrorOf("hotspots:\n  frequncy: 199Hz\n"),
            "line 3, column 3: unknown key 'frequncy' in hotspots; did you mean 'frequency'?");
  EXPECT_EQ(ErrorOf("durration: 60s\n"),
            "line 2, column 1: unknown key 'durration'; did you mean 'duration'?");
  EXPECT_EQ(ErrorOf("frequency: 199Hz\n"),
            "line 2, column 1: unknown key 'frequency'; did you mean 'hotspots.frequency'?");
  EXPECT_EQ(ErrorOf("zzz: 1\n"), "line 2, column 1: unknown key 'zzz'");
  EXPECT_THAT(ErrorOf("hotspots.frequency: 199Hz\n"), HasSubstr("unknown key"));
  EXPECT_THAT(ErrorOf("<<: {a: 1}\n"), HasSubstr("unknown key '<<'"));
}

TEST(SpecErrorTest, AllErrorsAreListedAtOnce) {
  const std::string error =
      ErrorOf("duration: 60\nbudget: {overhead: 0.02}\nhotspots: {max_loops: many, colour: red}\n");
  EXPECT_THAT(error, HasSubstr("line 2, column 11: duration: '60' lacks a unit"));
  EXPECT_THAT(error, HasSubstr("line 3, column 20: budget.overhead: '0.02' lacks a unit"));
  EXPECT_THAT(error, HasSubstr("hotspots.max_loops: 'many' is not a whole number"));
  EXPECT_THAT(error, HasSubstr("unknown key 'colour' in hotspots"));
}

TEST(SpecErrorTest, TheListIsCapped) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "k" + std::to_string(i) + "_______: 1\n";
  EXPECT_THAT(ErrorOf(text), HasSubstr("\nand 10 more"));
}

TEST(SpecErrorTest, DuplicateKeys) {
  EXPECT_EQ(ErrorOf("duration: 60s\nduration: 70s\n"),
            "line 3, column 1: duplicate key 'duration'; first given in line 2");
  EXPECT_THAT(ErrorOf("budget: {}\nbudget: {}\n"), HasSubstr("duplicate key 'budget'"));
}

TEST(SpecErrorTest, WrongTypes) {
  EXPECT_THAT(ErrorOf("duration: [60s]\n"), HasSubstr("expected a single value"));
  EXPECT_THAT(ErrorOf("budget: 2%\n"), HasSubstr("budget: expected a map of keys"));
  EXPECT_THAT(ErrorOf("budget: [2%]\n"), HasSubstr("expected a map of keys"));
  EXPECT_THAT(ErrorOf("variants: {set: LS}\n"), HasSubstr("expected a list"));
  EXPECT_THAT(ErrorOf("variants: {set: [[LS]]}\n"), HasSubstr("expected a name"));
  EXPECT_THAT(ErrorOf("pages: {enabled: 1}\n"), HasSubstr("is not true or false"));
  EXPECT_THAT(ErrorOf("pages: {enabled: 'true'}\n"), HasSubstr("in quotes"));
  EXPECT_THAT(ErrorOf("hotspots: {max_loops: '12'}\n"), HasSubstr("found text in quotes"));
  EXPECT_THAT(ErrorOf("hotspots: {max_loops: 012}\n"), HasSubstr("leading zero"));
  EXPECT_THAT(WholeError("- a\n"), HasSubstr("expected keys"));
  EXPECT_THAT(WholeError("just text"), HasSubstr("expected keys"));
}

TEST(SpecErrorTest, Ranges) {
  EXPECT_THAT(ErrorOf("hotspots: {frequency: 0Hz}\n"),
              HasSubstr("line 2, column 23: hotspots.frequency is out of range 1Hz..10000Hz"));
  EXPECT_THAT(ErrorOf("duration: 8d\n"), HasSubstr("duration is out of range 1s..7d"));
  EXPECT_EQ(ErrorOf("duration: 7d\n"), "");
  EXPECT_THAT(ErrorOf("budget: {overhead: 51%}\n"), HasSubstr("out of range 0%..50%"));
  EXPECT_THAT(ErrorOf("variants: {repetitions: 99999999999}\n"), HasSubstr("3..1000"));
  EXPECT_THAT(ErrorOf("metadata: {name: " + std::string(129, 'x') + "}\n"), HasSubstr("129 bytes"));
  EXPECT_EQ(ErrorOf("metadata: {name: " + std::string(128, 'x') + "}\n"), "");
}

TEST(SpecErrorTest, NullValues) {
  EXPECT_EQ(ErrorOf("duration:\n"),
            "line 2, column 1: duration has no value; give one or remove the key");
  EXPECT_THAT(ErrorOf("budget:\n"), HasSubstr("budget has no value"));
  EXPECT_THAT(ErrorOf("metadata: {name: ~}\n"), HasSubstr("metadata.name has no value"));
}

TEST(SpecErrorTest, Choices) {
  EXPECT_THAT(ErrorOf("hotspots: {callpaths: dwraf}\n"),
              HasSubstr("'dwraf' is not one of auto, off, fp, dwarf; did you mean 'dwarf'?"));
  EXPECT_THAT(ErrorOf("variants: {set: [LS, NODIV]}\n"), HasSubstr("did you mean 'NO_DIV'?"));
  EXPECT_THAT(ErrorOf("variants: {set: [LS, LS]}\n"), HasSubstr("twice"));
  EXPECT_EQ(ErrorOf("variants: {set: [NO_RED+NO_DIV, GROUP(0), GROUP(63), PREFETCH(100)]}\n"), "");
  EXPECT_THAT(ErrorOf("variants: {set: [NO_RED+NO_DIV, NO_DIV+NO_RED]}\n"), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf("variants: {set: [GROUP(64)]}\n"), HasSubstr("0..63"));
  EXPECT_THAT(ErrorOf("variants: {set: [GROUP(k)]}\n"), HasSubstr("0..63"));
  EXPECT_THAT(ErrorOf("variants: {set: [PREFETCH]}\n"), HasSubstr("PREFETCH"));
  EXPECT_THAT(ErrorOf("variants: {set: [REF]}\n"), HasSubstr("'REF' is not one of"));
  EXPECT_THAT(ErrorOf("apiVersion: perfd/v2\n"), HasSubstr("this version reads 'perfd/v1'"));
  EXPECT_THAT(ErrorOf("hotspots: {event: 'a b'}\n"), HasSubstr("not an event name"));
}

TEST(SpecErrorTest, ExactlyOneTarget) {
  EXPECT_THAT(WholeError("duration: 60s"),
              HasSubstr("exactly one of slurm_job, command and pids; 0"));
  EXPECT_THAT(WholeError("target: {}"), HasSubstr("line 1, column 1: target needs exactly one"));
  EXPECT_THAT(WholeError("target: {pids: []}"), HasSubstr("; 0 given"));
  EXPECT_THAT(WholeError("target: {pids: [1], command: x}"), HasSubstr("; 2 given"));
  EXPECT_THAT(WholeError("target: {pids: [1, 1]}"), HasSubstr("twice"));
  EXPECT_THAT(WholeError("target: {pids: [0]}"), HasSubstr("below 1"));
  EXPECT_THAT(WholeError("target: {pids: [1], user: bob}"), HasSubstr("only stand with"));
  EXPECT_THAT(WholeError("target: {command: x, tree: true}"), HasSubstr("only stand with"));
  EXPECT_THAT(WholeError("target: {command: /bin/x}"), HasSubstr("base name"));
  EXPECT_THAT(WholeError("target: {slurm_job: 4294967296}"), HasSubstr("out of range"));
}

TEST(SpecErrorTest, EmptyFiles) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "~\n"})
    EXPECT_THAT(WholeError(text), HasSubstr("empty")) << text;
}

}  // namespace
}  // namespace perfd
