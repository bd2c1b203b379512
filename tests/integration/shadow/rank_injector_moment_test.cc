// Shadows that may begin within a window only (core/model/pause_lease.h).
#include "core/base/clock.h"
#include "tests/integration/shadow/injector_fixture.h"

namespace perfd::agent {
namespace {

using MomentTest = RankInjectorTest;

TEST_F(MomentTest, ALoopIsArmedFromTheWindowsBeginToItsEnd) {
  PuppetRank puppet({"1", "2000", "0"});
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  int ran = 0;
  for (int i = 0; i < 5; ++i) {
    ShadowRequest request = Request({{.variant = 0}}, 1);
    request.arm_from_ns = SystemClock().MonotonicNs() + 150 * kMs;
    request.arm_until_ns = request.arm_from_ns + 400 * kMs;
    const auto answer = (*injector)->RunShadow(request);
    if (!answer.ok()) continue;  // the machine is shared
    ++ran;
    EXPECT_GE(answer->pause_begin_ns, request.arm_from_ns - kMs);  // the tick clock is that exact
    // Disarming takes a look and a write.
    EXPECT_LE(answer->pause_begin_ns, request.arm_until_ns + 20 * kMs);
  }
  EXPECT_GT(ran, 0);
  ASSERT_TRUE((*injector)->Uninstall().ok());
}

TEST_F(MomentTest, AfterItsWindowNothingIsArmed) {
  PuppetRank puppet({"1", "2000", "0"});
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  ShadowRequest request = Request({{.variant = 0}}, 1);
  request.arm_until_ns = SystemClock().MonotonicNs() - 1;
  const auto answer = (*injector)->RunShadow(request);
  EXPECT_TRUE(absl::IsCancelled(answer.status())) << answer.status();
  EXPECT_EQ((*injector)->cost().shadows, 0u);
  // The next one is not hindered by it.
  EXPECT_TRUE(Shadow(**injector, Request({{.variant = 0}}, 1)).ok());
  ASSERT_TRUE((*injector)->Uninstall().ok());
}

}  // namespace
}  // namespace perfd::agent
