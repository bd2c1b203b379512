// A loop that calls a leaf, on a real process: it is measured like any other loop, and the process does not notice.
#include <algorithm>
#include <array>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "tests/integration/shadow/injector_fixture.h"

namespace perfd::agent {
namespace {

constexpr int64_t kN = 20000;

std::string UndisturbedChecksum(const char* puppet, int64_t passes) {
  const std::string command = absl::StrCat(puppet, " ", kN, " ", passes);
  FILE* out = popen(command.c_str(), "r");
  std::array<char, 256> line{};
  std::string checksum;
  while (fgets(line.data(), line.size(), out) != nullptr) {
    char sum[64] = "";
    if (sscanf(line.data(), "%*d %63s\n", sum) == 1) checksum = sum;
  }
  pclose(out);
  return checksum;
}

class CallingTest : public RankInjectorTest {
 protected:
  explicit CallingTest(const char* puppet = PERFD_CALLING_PUPPET)
      : puppet_({absl::StrCat(kN), "0"}, puppet) {}

  int32_t IndexOf(const InstalledLoop& loop, const std::string& variant) {
    const auto found =
        std::find_if(loop.names.begin(), loop.names.end(),
                     [&](const VariantName& name) { return name.Text() == variant; });
    return found == loop.names.end() ? -1 : static_cast<int32_t>(found - loop.names.begin());
  }

  static bool IsWhole(const ShadowAnswer& answer) {
    return std::all_of(answer.runs.begin(), answer.runs.end(), [](const ShadowRun& run) {
      return run.run == 0 || run.iterations == static_cast<uint64_t>(kN);
    });
  }

  PuppetRank puppet_;
};

// Of its own module, and of libm, from whose rare paths it comes back into the original text: one without a frame, and one with a
// frame that calls another.
struct Callee {
  const char* puppet;
  int loop;
};
class CalleesTest : public CallingTest, public testing::WithParamInterface<Callee> {
 protected:
  CalleesTest() : CallingTest(GetParam().puppet) {}
};

TEST_P(CalleesTest, ALoopThatCallsALeafIsMeasuredAndTheRankIsUnharmed) {
  const std::vector<uint8_t> text = puppet_.Text();
  auto injector = RankInjector::Open(puppet_.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  auto installed = (*injector)->Install({puppet_.MakeLoop({"LS", "FP", "DL1"}, GetParam().loop)});
  ASSERT_TRUE(installed.ok()) << installed.status();
  const InstalledLoop& loop = installed->at(0);
  ASSERT_TRUE(loop.status.ok()) << loop.status;
  auto entry_count = (*injector)->CountEntries(0, 100 * kMs);
  ASSERT_TRUE(entry_count.ok()) << entry_count.status();
  EXPECT_EQ(entry_count->team, 1);
  auto live = (*injector)->TimeLive(0, 20, 5000 * kMs);
  ASSERT_TRUE(live.ok()) << live.status();
  EXPECT_EQ(live->size(), 20u) << "instances, not passes";
  std::vector<RunSpec> runs = {{.variant = 0}};
  for (const char* variant : {"COUNT", "COUNT+LS", "COUNT+FP", "COUNT+DL1"}) {
    const int32_t index = IndexOf(loop, variant);
    ASSERT_GE(index, 0) << variant;
    runs.push_back({.variant = index});
  }
  auto answer = Shadow(**injector, Request(runs, 1));
  // Of instances with a rare value, one has the passes before it and another those behind it.
  for (int i = 0; i < 20 && answer.ok() && !IsWhole(*answer); ++i)
    answer = Shadow(**injector, Request(runs, 1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->outcome, "done");
  for (const ShadowRun& run : answer->runs) {
    EXPECT_TRUE(run.ok) << run.failure;
    if (run.run > 0) {
      EXPECT_EQ(run.iterations, static_cast<uint64_t>(kN));
    }
  }
  ASSERT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(puppet_.Text(), text);
  const PuppetEnd end = puppet_.Stop();
  EXPECT_EQ(end.status, 0) << "handlers saw whole stacks";
  EXPECT_EQ(end.checksum, UndisturbedChecksum(GetParam().puppet, end.passes));
}

// Wherever a thread is when the jump comes and goes: in the loop, in the leaf, in the copy of either.
TEST_P(CalleesTest, JumpsComeAndGoWhereverTheThreadIs) {
  const std::vector<uint8_t> text = puppet_.Text();
  for (int i = 0; i < 10; ++i) {
    auto injector = RankInjector::Open(puppet_.rank(), options_);
    ASSERT_TRUE(injector.ok()) << injector.status();
    auto installed = (*injector)->Install({puppet_.MakeLoop({"LS"}, GetParam().loop)});
    ASSERT_TRUE(installed.ok()) << installed.status();
    ASSERT_TRUE(installed->at(0).status.ok()) << installed->at(0).status;
    usleep(3000);
    const absl::Status out = (*injector)->Uninstall();
    ASSERT_TRUE(out.ok()) << out;
  }
  EXPECT_EQ(puppet_.Text(), text);
  const PuppetEnd end = puppet_.Stop();
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.checksum, UndisturbedChecksum(GetParam().puppet, end.passes));
}

INSTANTIATE_TEST_SUITE_P(Modules, CalleesTest,
                         testing::Values(Callee{PERFD_CALLING_PUPPET, 0},
                                         Callee{PERFD_CALLING_PUPPET, 1},
                                         Callee{PERFD_CALLING_EXP_PUPPET, 1}));

// The linker's word says something else when the jump is to be written.
TEST_F(CallingTest, ASlotThatHasChangedKeepsTheJumpOut) {
  const std::vector<uint8_t> text = puppet_.Text();
  LoopToInject loop = puppet_.MakeLoop({"LS"}, 1);
  ASSERT_FALSE(loop.code.leaves.slots.empty());
  loop.code.leaves.slots[0].value += 16;
  auto injector = RankInjector::Open(puppet_.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  auto installed = (*injector)->Install({loop});
  ASSERT_TRUE(installed.ok()) << installed.status();
  EXPECT_EQ(installed->at(0).status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(puppet_.Text(), text);
  EXPECT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(puppet_.Stop().status, 0);
}

}  // namespace
}  // namespace perfd::agent
