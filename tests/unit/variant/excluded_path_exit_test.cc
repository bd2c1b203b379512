// A copy that counts knows whether it left through a path that was cut out of the loop, or by the loop's own end.
#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/escaping.h"
#include "agent/variant/copy.h"
#include "agent/variant/thread_block.h"
#include "tests/unit/variant/native_run.h"

namespace perfd::agent {
namespace {

// The loop of cut_test.cc: xmm1 += (%rdi,%rax,8) while rax < rdx; above xmm2 it takes its detour, a call.
constexpr char kWithExcludedPath[] =
    "f20f1004c7f20f58c8660f2fca770848ffc04839d0eb0c4883ec08e80010000058ebec72dbc3";

class ExcludedPathExitTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasAvx2()) GTEST_SKIP() << "native runs set AVX registers";
    const std::string bytes = absl::HexStringToBytes(kWithExcludedPath);
    LoopBytes loop;
    loop.header = arena_.text();
    loop.function = {{loop.header, {bytes.begin(), bytes.end()}}};
    loop.body = {{loop.header, loop.header + 0x25}};
    auto code = DecodeLoop(loop);
    ASSERT_TRUE(code.ok()) << code.status();
    code_ = *std::move(code);
    // jmp *back(%rip)
    stub_ = arena_.text() + 0x1000;
    std::vector<uint8_t> jump = {0xff, 0x25, 0, 0, 0, 0};
    const auto distance = static_cast<uint32_t>(arena_.back() - (stub_ + jump.size()));
    std::memcpy(&jump[2], &distance, sizeof(distance));
    arena_.Write(stub_, jump);
  }

  // Runs over five ones. Above `most` the sum takes the detour.
  void Run(const VariantName& name, double most, uint64_t pass_limit) {
    const auto copy = MakeCopy(code_, name, {arena_.copy(), Exits::kStub, stub_});
    ASSERT_TRUE(copy.ok()) << copy.status();
    arena_.Write(copy->address, copy->bytes);
    arena_.At<uint64_t>(arena_.block() + kBlockIterations) = 0;
    arena_.At<uint64_t>(arena_.block() + kBlockIterationLimit) = pass_limit;
    for (uint64_t i = 0; i < 5; ++i) arena_.At<double>(arena_.data() + 8 * i) = 1;
    MachineState state;
    state.general[7] = arena_.data();  // rdi
    state.general[2] = 5;              // rdx
    std::memcpy(state.vector[2].data(), &most, sizeof(most));
    arena_.Run(copy->entry, &state);
    passes_ = arena_.At<uint64_t>(arena_.block() + kBlockIterations);
    excluded_path_ = arena_.At<uint64_t>(arena_.block() + kBlockExcludedPath);
  }

  Arena arena_;
  LoopCode code_;
  uint64_t stub_ = 0;
  uint64_t passes_ = 0;
  uint64_t excluded_path_ = 0;
};

TEST_F(ExcludedPathExitTest, IsNotedByCopiesThatCount) {
  for (const Change change : {Change::kCount, Change::kTrace}) {
    SCOPED_TRACE(ChangeName(change));
    Run(SingleVariant(change), 2.5, ~uint64_t{0});
    EXPECT_EQ(passes_, 3u);
    EXPECT_EQ(excluded_path_, 1u);
    Run(SingleVariant(change), 100, ~uint64_t{0});
    EXPECT_EQ(passes_, 5u);
    EXPECT_EQ(excluded_path_, 0u) << "it ended by itself; the note of the run before is gone";
    Run(SingleVariant(change), 2.5, 2);
    EXPECT_EQ(passes_, 2u);
    EXPECT_EQ(excluded_path_, 0u) << "the limit is no detour";
  }
}

TEST_F(ExcludedPathExitTest, OtherCopiesLeaveAsEver) {
  arena_.At<uint64_t>(arena_.block() + kBlockExcludedPath) = 7;
  Run(SingleVariant(Change::kRef), 2.5, 0);
  EXPECT_EQ(excluded_path_, 7u);
}

}  // namespace
}  // namespace perfd::agent
