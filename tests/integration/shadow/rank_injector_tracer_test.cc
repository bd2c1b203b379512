// A jump that is put in or taken out by a tracer that is killed at any of its operations: what the injector says is what the text has.
#include <sys/wait.h>

#include <csignal>
#include <fstream>

#include "tests/integration/shadow/injector_fixture.h"

namespace perfd::agent {
namespace {

class RankInjectorTracerTest : public RankInjectorTest {
 protected:
  // A tracer that is started while the file names an operation dies before it.
  void SetUp() override {
    RankInjectorTest::SetUp();
    std::filesystem::create_directories(directory_);
    const std::string script = absl::StrCat(directory_, "/tracer.sh");
    std::ofstream(script) << "#!/bin/sh\n[ -s " << TrapFile() << " ] || exec " << PERFD_TRACER
                          << "\nexec " << PERFD_TRACER << " --die-before-operation $(cat "
                          << TrapFile() << ")\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    auto tracer = Tracer::Start({script, {}});
    ASSERT_TRUE(tracer.ok()) << tracer.status();
    tracer_ = *std::move(tracer);
    options_.tracer = tracer_.get();
  }
  std::string TrapFile() const { return absl::StrCat(directory_, "/trap"); }
  // 0: none.
  void NextTracerDiesBefore(int operation) {
    std::ofstream(TrapFile()) << (operation == 0 ? "" : absl::StrCat(operation));
    if (tracer_->pid() == 0) return;
    kill(tracer_->pid(), SIGKILL);
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(tracer_->pid()), &info, WEXITED | WNOWAIT);
  }
};

TEST_F(RankInjectorTracerTest, WhetherTheJumpIsInIsKnownAfterATracerDied) {
  PuppetRank puppet({"1", "2000", "0"});
  const std::vector<uint8_t> text = puppet.Text();
  auto injector = RankInjector::Open(puppet.rank(), options_);
  ASSERT_TRUE(injector.ok()) << injector.status();
  ASSERT_TRUE((*injector)->Install({puppet.MakeLoop({})}).ok());
  int failed = 0, done_all_the_same = 0;
  bool in = true, survived = false;
  for (int operation = 1; operation < 200 && !survived; ++operation) {
    NextTracerDiesBefore(operation);
    const absl::Status status = (*injector)->SetPatched(0, !in);
    survived = tracer_->pid() != 0;
    ASSERT_EQ(puppet.Text() != text, status.ok() ? !in : in) << "operation " << operation;
    (status.ok() ? done_all_the_same : failed) += 1;
    if (status.ok()) in = !in;
    NextTracerDiesBefore(0);
    const absl::Status again = (*injector)->SetPatched(0, !in);
    ASSERT_TRUE(again.ok()) << "operation " << operation << ": " << again;
    in = !in;
  }
  EXPECT_TRUE(survived);
  EXPECT_GT(failed, 3);
  EXPECT_GT(done_all_the_same, 1) << "killed while it lets go, or not at all";
  ASSERT_TRUE((*injector)->Uninstall().ok());
  EXPECT_EQ(puppet.Text(), text);
  const PuppetEnd end = puppet.Stop();
  EXPECT_EQ(end.checksum, ChecksumOf(1, 2000, end.passes));
}

}  // namespace
}  // namespace perfd::agent
