#include "agent/attach/thread_ops.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <tuple>

#include "agent/procfs/procfs.h"

namespace perfd::agent {
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

TEST(MayBeInsideTest, ByItsPcAndByItsStack) {
  const auto memory = Memory::Open(getpid(), ProcFs().StartTicks(getpid()).value_or(0));
  ASSERT_TRUE(memory.ok()) << memory.status();
  std::vector<uint64_t> stack(20'000);
  HeldThread thread;
  thread.registers.rip = 0xfff;
  // The red zone comes first: 16 words.
  thread.registers.rsp = reinterpret_cast<uint64_t>(stack.data() + 16);
  const std::vector<PcRange> ranges = {{0x5000, 0x5001}, {0x1000, 0x2000}};
  const auto inside = [&] { return MayBeInside(ranges, *memory, thread); };
  EXPECT_FALSE(inside());
  thread.registers.rip = 0x1000;
  EXPECT_TRUE(inside());
  thread.registers.rip = 0x2000;
  EXPECT_FALSE(inside());
  for (const auto& [at, word, expected] : {std::tuple{0, 0x1fff, true},
                                           {8191, 0x5000, true},
                                           {8191, 0x5001, false},
                                           {8192, 0x1000, false}}) {
    stack.assign(stack.size(), 0);
    stack[static_cast<size_t>(at)] = static_cast<uint64_t>(word);
    EXPECT_EQ(inside(), expected) << at;
  }
  thread.registers.rsp = 0x100;  // nothing is mapped there
  EXPECT_TRUE(inside()) << "nobody can tell";
}

}  // namespace
}  // namespace perfd::agent
