#include "core/spec/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace perfd {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kWholeFile[] = R"(# every key
apiVersion: perfd/v1
kind: Profile
metadata: { name: lulesh-hot-loops }
target:
  slurm_job: 4711
ranks: "0-7,9"
duration: 2m
budget: { overhead: 1%, stop: 10ms, shadow: 250ms }
hotspots: { event: cpu-clock, frequency: 99Hz, coverage: 90%, max_loops: 5, callpaths: dwarf }
variants: { set: [LS, CTRL], repetitions: 11 }
memory: { latency_threshold: 50, dtlb: no, trace: off }
coherence: { enabled: off }
pages: { enabled: true, apply: true }
)";

TEST(SpecTest, ReadsEveryKey) {
  const auto spec = ParseProfileSpec(kWholeFile);
  ASSERT_TRUE(spec.ok()) << spec.status();
  ProfileSpec want;
  want.name = "lulesh-hot-loops";
  want.target.slurm_job = 4711;
  want.ranks = {{0, 7}, {9, 9}};
  want.duration_ns = 120'000'000'000;
  want.until_known = false;
  want.budget = {0.01, 10'000'000, 250'000'000};
  want.hotspots = {"cpu-clock", 99, 0.9, 5, CallPaths::kDwarf};
  want.variants = {{"LS", "CTRL"}, 11};
  want.memory = {50, false, "off"};
  want.coherence_enabled = false;
  want.pages = {true, true};
  EXPECT_EQ(*spec, want);
}

TEST(SpecTest, EveryKeyButTheTargetHasADefault) {
  const auto spec = ParseProfileSpec("target: { command: lulesh2.0 }");
  ASSERT_TRUE(spec.ok()) << spec.status();
  ProfileSpec want;
  want.target.command = "lulesh2.0";
  EXPECT_EQ(*spec, want);
}

TEST(SpecTest, OffIsAChoiceInEverySpelling) {
  for (const char* word : {"off", "\"off\"", "'off'", "false"}) {
    const auto spec = ParseProfileSpec(std::string("target: {pids: [1]}\nhotspots: {callpaths: ") +
                                       word + "}\nmemory: {trace: " + word + "}\n");
    ASSERT_TRUE(spec.ok()) << word << spec.status();
    EXPECT_EQ(spec->hotspots.callpaths, CallPaths::kOff);
    EXPECT_EQ(spec->memory.trace, "off");
  }
}

TEST(SpecTest, FormatAndParseAreInverse) {
  std::vector<ProfileSpec> specs(4, *ParseProfileSpec(kWholeFile));
  specs[1] = ProfileSpec();
  specs[1].name = "quotes \" and \\ and # and \xC3\xA4: yes";
  specs[1].target.command = "null";
  specs[1].target.user = "0123";
  specs[1].target.node = "~";
  specs[2].target = {};
  specs[2].target.pids = {1, 2147483647};
  specs[2].target.tree = true;
  specs[2].variants.set.clear();
  specs[2].budget.overhead_ratio = 1.0 / 3;
  specs[2].duration_ns = 1'000'000'001;
  specs[3].hotspots.callpaths = CallPaths::kFramePointer;
  specs[3].variants.mode = "recovery";
  for (const ProfileSpec& spec : specs) {
    ASSERT_EQ(ValidateProfileSpec(spec), absl::OkStatus());
    const auto again = ParseProfileSpec(FormatProfileSpec(spec));
    ASSERT_TRUE(again.ok()) << again.status() << FormatProfileSpec(spec);
    EXPECT_EQ(*again, spec) << FormatProfileSpec(spec);
  }
}

TEST(SpecTest, VariantsRunInShadowsUnlessRecoveryIsAskedFor) {
  EXPECT_FALSE(ParseProfileSpec("target: {pids: [1]}\n")->variants.recovery());
  EXPECT_FALSE(
      ParseProfileSpec("target: {pids: [1]}\nvariants: {mode: shadow}\n")->variants.recovery());
  EXPECT_TRUE(
      ParseProfileSpec("target: {pids: [1]}\nvariants: {mode: recovery}\n")->variants.recovery());
  for (const char* word : {"Recovery", "recover", "''", "true", "[recovery]"}) {
    EXPECT_FALSE(
        ParseProfileSpec(std::string("target: {pids: [1]}\nvariants: {mode: ") + word + "}\n").ok())
        << word;
  }
  ProfileSpec spec;
  spec.target.pids = {1};
  spec.variants.mode = "both";
  EXPECT_FALSE(ValidateProfileSpec(spec).ok());
}

TEST(SpecTest, DurationIsATimeOrAuto) {
  const std::string target = "target: {pids: [1]}\n";
  const ProfileSpec none = *ParseProfileSpec(target);
  EXPECT_TRUE(none.until_known);
  EXPECT_EQ(none.duration_ns, kLongestUntilKnownNs);
  const ProfileSpec fixed = *ParseProfileSpec(target + "duration: 90s\n");
  EXPECT_FALSE(fixed.until_known);
  EXPECT_EQ(fixed.duration_ns, 90'000'000'000);
  for (const char* text : {"duration: auto\nmax_duration: 3m\n",
                           "max_duration: 3m\nduration: auto\n", "max_duration: 3m\n"}) {
    const ProfileSpec known = *ParseProfileSpec(target + text);
    EXPECT_TRUE(known.until_known) << text;
    EXPECT_EQ(known.duration_ns, 180'000'000'000) << text;
    EXPECT_EQ(*ParseProfileSpec(FormatProfileSpec(known)), known);
  }
  EXPECT_EQ(*ParseProfileSpec(FormatProfileSpec(fixed)), fixed);
  EXPECT_THAT(FormatProfileSpec(fixed), testing::Not(HasSubstr("max_duration")));
  for (const char* text :
       {"duration: 90s\nmax_duration: 3m\n", "max_duration: 3m\nduration: 90s\n"}) {
    EXPECT_THAT(std::string(ParseProfileSpec(target + text).status().message()),
                HasSubstr("max_duration can only stand with duration: auto"));
  }
  EXPECT_THAT(std::string(ParseProfileSpec(target + "max_duration: 8d\n").status().message()),
              HasSubstr("max_duration is out of range 1s..7d"));
  EXPECT_FALSE(ParseProfileSpec(target + "duration: automatic\n").ok());
  EXPECT_FALSE(ParseProfileSpec(target + "max_duration: auto\n").ok());
}

TEST(SpecTest, ValidateChecksRangesOfADecodedSpec) {
  ProfileSpec spec;
  spec.target.pids = {1};
  ASSERT_EQ(ValidateProfileSpec(spec), absl::OkStatus());
  spec.hotspots.frequency_hz = 10001;
  spec.duration_ns = 999'999'999;
  spec.target.user = "a\nb";
  spec.ranks = {{5, 2}};
  const auto status = ValidateProfileSpec(spec);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("hotspots.frequency is out of range 1Hz..10000Hz"),
            HasSubstr("duration is out of range 1s..7d"),
            HasSubstr("target.user has control characters"),
            HasSubstr("target.user can only stand with target.command"), HasSubstr("range 5-2")));
}

TEST(SpecTest, ValidateAcceptsTheBounds) {
  ProfileSpec spec;
  spec.target.slurm_job = 4294967295u;
  for (const int32_t hz : {1, 10000}) {
    spec.hotspots.frequency_hz = hz;
    EXPECT_TRUE(ValidateProfileSpec(spec).ok());
  }
  for (const double ratio : {0.0, 0.5}) {
    spec.budget.overhead_ratio = ratio;
    EXPECT_TRUE(ValidateProfileSpec(spec).ok());
  }
  spec.budget.overhead_ratio = 0.5000001;
  EXPECT_FALSE(ValidateProfileSpec(spec).ok());
  spec.budget.overhead_ratio = std::nan("");
  EXPECT_FALSE(ValidateProfileSpec(spec).ok());
}

TEST(SpecTest, ListsWhatIsNotMeasured) {
  ProfileSpec spec;
  EXPECT_EQ(ListUnmeasured(spec).size(), 3u);
  spec.memory.trace = "off";
  spec.coherence_enabled = false;
  spec.pages.enabled = false;
  EXPECT_THAT(ListUnmeasured(spec), IsEmpty());
}

TEST(SpecTest, TheExamplesAreValid) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("deploy/examples")) {
    if (entry.path().extension() != ".yaml") continue;
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    EXPECT_TRUE(ParseProfileSpec(text).ok()) << entry.path() << ParseProfileSpec(text).status();
    ++count;
  }
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace perfd
