// Shadows that may begin within a window only (core/model/pause_lease.h).
#include "core/base/clock.h"
#include "tests/integration/shadow/lab_fixture.h"

namespace perfd {
namespace {

using MomentTest = RankLabTest;

TEST_F(MomentTest, ALoopIsArmedFromTheWindowsBeginToItsEnd) {
  LabProcess puppet({"1", "2000", "0"});
  auto lab = RankLab::Open(puppet.rank(), options_);
  ASSERT_TRUE(lab.ok()) << lab.status();
  ASSERT_TRUE((*lab)->Install({puppet.MakeLoop({})}).ok());
  int ran = 0;
  for (int i = 0; i < 5; ++i) {
    ShadowWish wish = Wish({{.variant = 0}}, 1);
    wish.arm_from_ns = SystemClock().MonotonicNs() + 150 * kMs;
    wish.arm_until_ns = wish.arm_from_ns + 400 * kMs;
    const auto answer = (*lab)->RunShadow(wish);
    if (!answer.ok()) continue;  // the machine is shared
    ++ran;
    EXPECT_GE(answer->pause_begin_ns, wish.arm_from_ns - kMs);  // the tick clock is that exact
    // Disarming takes a look and a write.
    EXPECT_LE(answer->pause_begin_ns, wish.arm_until_ns + 20 * kMs);
  }
  EXPECT_GT(ran, 0);
  ASSERT_TRUE((*lab)->Uninstall().ok());
}

TEST_F(MomentTest, AfterItsWindowNothingIsArmed) {
  LabProcess puppet({"1", "2000", "0"});
  auto lab = RankLab::Open(puppet.rank(), options_);
  ASSERT_TRUE(lab.ok()) << lab.status();
  ASSERT_TRUE((*lab)->Install({puppet.MakeLoop({})}).ok());
  ShadowWish wish = Wish({{.variant = 0}}, 1);
  wish.arm_until_ns = SystemClock().MonotonicNs() - 1;
  const auto answer = (*lab)->RunShadow(wish);
  EXPECT_TRUE(absl::IsCancelled(answer.status())) << answer.status();
  EXPECT_EQ((*lab)->cost().shadows, 0u);
  // The next one is not hindered by it.
  EXPECT_TRUE(Shadow(**lab, Wish({{.variant = 0}}, 1)).ok());
  ASSERT_TRUE((*lab)->Uninstall().ok());
}

}  // namespace
}  // namespace perfd
