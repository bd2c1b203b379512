// What Rehearse says is what Install does, and the process is only read for it.
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/integration/shadow/injector_fixture.h"

namespace perfd::agent {
namespace {

std::vector<std::string> Names(const InstalledLoop& loop) {
  std::vector<std::string> names;
  for (const VariantName& name : loop.names) names.push_back(name.Text());
  return names;
}

TEST_F(RankInjectorTest, RehearsesWithoutATracerAndTouchesNothing) {
  PuppetRank puppet({"2", "20000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  std::this_thread::sleep_for(
      std::chrono::milliseconds(50));  // until its threads have their stacks
  const std::vector<std::string> maps = puppet.Maps();
  InjectorOptions only_reading = options_;
  only_reading.tracer = nullptr;
  auto injector = RankInjector::Open(puppet.rank(), only_reading);
  ASSERT_TRUE(injector.ok()) << injector.status();
  auto rehearsed = (*injector)->Rehearse({puppet.MakeLoop({"LS", "NO_SQRT"})});
  ASSERT_TRUE(rehearsed.ok()) << rehearsed.status();
  ASSERT_EQ(rehearsed->size(), 1u);
  ASSERT_TRUE(rehearsed->at(0).status.ok()) << rehearsed->at(0).status;
  const ShadowPrediction prediction = (*injector)->PredictShadow();
  EXPECT_TRUE(prediction.status.ok()) << prediction.status;
  EXPECT_GT(prediction.fork_ns, 0);
  EXPECT_EQ(puppet.Text(), text);
  EXPECT_EQ(puppet.Maps(), maps);
  EXPECT_EQ(Journals(), 0u);
  EXPECT_TRUE(audit_.empty());
  EXPECT_EQ((*injector)->cost(), InjectionCost{});
  // Nothing else works, nor does it touch anything.
  EXPECT_FALSE((*injector)->CountEntries(0, kMs).ok());
  EXPECT_FALSE((*injector)->SetPatched(0, true).ok());
  EXPECT_FALSE((*injector)->Install({puppet.MakeLoop({"LS"})}).ok());
  EXPECT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(puppet.Text(), text);
  injector->reset();

  auto other = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(other.ok()) << other.status();
  auto installed = (*other)->Install({puppet.MakeLoop({"LS", "NO_SQRT"})});
  ASSERT_TRUE(installed.ok()) << installed.status();
  EXPECT_EQ(Names(rehearsed->at(0)), Names(installed->at(0)));
  EXPECT_EQ(rehearsed->at(0).refusals, installed->at(0).refusals);
  EXPECT_TRUE((*other)->Uninstall().ok());
}

TEST_F(RankInjectorTest, AnInstallThatCouldNotBeDoneMayBeTriedAgain) {
  PuppetRank puppet({"1", "20000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_EQ(kill(puppet.pid(), SIGSTOP), 0);
  EXPECT_FALSE((*injector)->Install({puppet.MakeLoop({"LS"})}).ok());
  ASSERT_EQ(kill(puppet.pid(), SIGCONT), 0);
  EXPECT_EQ(puppet.Text(), text);
  EXPECT_EQ(Journals(), 0u);
  auto installed = (*injector)->Install({puppet.MakeLoop({"LS"})});
  ASSERT_TRUE(installed.ok()) << installed.status();
  ASSERT_EQ(installed->size(), 1u);
  EXPECT_TRUE(installed->at(0).status.ok()) << installed->at(0).status;
  EXPECT_NE(puppet.Text(), text);
  EXPECT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(puppet.Text(), text);
}

TEST_F(RankInjectorTest, WithoutATracerNothingIsInstalled) {
  PuppetRank puppet({"1", "20000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  options_.tracer = nullptr;
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  EXPECT_TRUE(absl::IsInvalidArgument((*injector)->Install({puppet.MakeLoop({"LS"})}).status()));
  EXPECT_EQ(puppet.Text(), text);
  EXPECT_EQ(Journals(), 0u);
}

}  // namespace
}  // namespace perfd::agent
