// A jump is written only where the code is the one that was decoded, and where it leads to code of ours.
#include <sys/wait.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "agent/attach/memory.h"
#include "tests/integration/shadow/injector_fixture.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

// Of a rank that runs: whoever meets it meanwhile must not mind.
class OtherByte {
 public:
  OtherByte(const PuppetRank& puppet, uint64_t at, std::optional<uint8_t> other = std::nullopt)
      : memory_(*Memory::Open(puppet.pid(), puppet.rank().start_ticks)),
        at_(at),
        own_(memory_.Read(at, 1).value()[0]) {
    Write(other.value_or(static_cast<uint8_t>(~own_)));
  }
  ~OtherByte() { Write(own_); }

 private:
  void Write(uint8_t byte) { EXPECT_TRUE(memory_.Write(at_, std::span(&byte, 1)).ok()); }

  Memory memory_;
  uint64_t at_;
  uint8_t own_;
};

// As if another library had been loaded in the place of the one whose loop was decoded: it begins alike and ends otherwise, with
// JL for JNE, so that the rank computes the same.
OtherByte OtherLoop(const PuppetRank& puppet, const LoopCode& loop) {
  constexpr uint8_t kJne = 0x75, kJl = 0x7c;
  const LoopInstruction& last = loop.instructions.back();
  EXPECT_EQ(last.bytes[0], kJne);
  return OtherByte(puppet, last.address, kJl);
}

uint64_t TargetOfJump(const PuppetRank& puppet, uint64_t at) {
  const auto memory = Memory::Open(puppet.pid(), puppet.rank().start_ticks);
  const std::vector<uint8_t> jump = memory->Read(at, 5).value();
  EXPECT_EQ(jump[0], 0xe9);
  int32_t displacement = 0;
  std::memcpy(&displacement, &jump[1], sizeof(displacement));
  return at + jump.size() + static_cast<uint64_t>(int64_t{displacement});
}

class RankInjectorTextTest : public RankInjectorTest {
 protected:
  void Open() {
    injector_.reset();
    auto injector = RankInjector::Open(puppet_.rank(), options_);
    ASSERT_TRUE(injector.ok()) << injector.status();
    injector_ = *std::move(injector);
  }
  void EndsRight() {
    EXPECT_TRUE(injector_->SetPatched(0, true).ok());
    EXPECT_TRUE(Shadow(*injector_, Request({{.variant = 0}}, 2)).ok());
    ASSERT_TRUE(injector_->Uninstall().ok());
    EXPECT_EQ(puppet_.Text(), text_);
    const PuppetEnd end = puppet_.Stop();
    EXPECT_EQ(end.checksum, ChecksumOf(2, 3000, end.passes));
  }
  // Its jump has been in the text and is out again.
  void InstallAndTakeOut() {
    Open();
    ASSERT_TRUE(injector_->Install({loop_}).ok());
    EXPECT_NE(puppet_.Text(), text_);
    trampoline_ = TargetOfJump(puppet_, loop_.code.header);
    ASSERT_TRUE(injector_->SetPatched(0, false).ok());
    std::this_thread::sleep_for(
        std::chrono::milliseconds(50));  // nobody is on the way to it any more
  }
  void ExpectNoJump(const char* why) {
    const absl::Status status = injector_->SetPatched(0, true);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }

  PuppetRank puppet_{{"2", "3000", "0"}};
  const std::vector<uint8_t> text_ = puppet_.Text();
  const LoopToInject loop_ = puppet_.MakeLoop({});
  std::unique_ptr<RankInjector> injector_;
  uint64_t trampoline_ = 0;
};

TEST_F(RankInjectorTextTest, LoopsOfOtherCodeAreRefused) {
  Open();
  {
    const OtherByte other = OtherLoop(puppet_, loop_.code);
    auto installed = injector_->Install({loop_});
    ASSERT_TRUE(installed.ok()) << installed.status();
    EXPECT_THAT(std::string(installed->at(0).status.message()), HasSubstr("not the one that was"));
    EXPECT_TRUE(injector_->Uninstall().ok());
  }
  EXPECT_EQ(puppet_.Text(), text_);
  InstallAndTakeOut();
  EndsRight();
}

TEST_F(RankInjectorTextTest, CopiesOfOtherCodeAreNeverEntered) {
  InstallAndTakeOut();
  {
    const OtherByte other = OtherLoop(puppet_, loop_.code);
    ExpectNoJump("closed or replaced");
  }
  EXPECT_EQ(puppet_.Text(), text_);
  EndsRight();
}

TEST_F(RankInjectorTextTest, NoJumpLeadsToWhatIsNotOurs) {
  InstallAndTakeOut();
  {
    const OtherByte other(puppet_, trampoline_);
    ExpectNoJump("not what was expected");
  }
  EXPECT_EQ(puppet_.Text(), text_);
  EndsRight();
}

}  // namespace
}  // namespace perfd::agent
