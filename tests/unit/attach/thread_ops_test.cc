#include "agent/attach/thread_ops.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

TEST(NewPcTest, PairsThenRefusalThenRanges) {
  const MoveThreadsOp op{.pairs = {{0x100, 0x900}, {0x105, 0x908}},
                         .ranges = {{{0x200, 0x210}, 0x1200}},
                         .pairs_only = {{0x100, 0x110}}};
  EXPECT_EQ(*NewPc(op, 0x100), 0x900U);
  EXPECT_EQ(*NewPc(op, 0x105), 0x908U);
  EXPECT_TRUE(absl::IsUnavailable(NewPc(op, 0x101).status()));
  EXPECT_TRUE(absl::IsUnavailable(NewPc(op, 0x10f).status()));
  EXPECT_FALSE(NewPc(op, 0x110)->has_value());
  EXPECT_EQ(*NewPc(op, 0x200), 0x1200U);
  EXPECT_EQ(*NewPc(op, 0x20f), 0x120fU);
  EXPECT_FALSE(NewPc(op, 0x210)->has_value());
  EXPECT_FALSE(NewPc(op, 0x1ff)->has_value());
}

TEST(RequireOutsideTest, Boundaries) {
  std::vector<HeldThread> threads(1);
  for (const auto& [pc, outside] :
       {std::pair{0xfffU, true}, {0x1000U, false}, {0x1fffU, false}, {0x2000U, true}}) {
    threads[0].registers.rip = pc;
    EXPECT_EQ(RequireOutside({{{0x1000, 0x2000}}}, threads).ok(), outside) << pc;
  }
}

}  // namespace
}  // namespace perfd
