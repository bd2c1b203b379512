// Variants of generated loops, run natively: whatever they delete, trips and the exit taken are those of the original.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/unit/variant/generated_run.h"

namespace perfd::agent {
namespace {

class BehaviourTest : public GeneratedRun {};

TEST_F(BehaviourTest, EveryVariantKeepsTripsAndExits) {
  std::map<std::string, int> made, refused, changed;
  for (int n = 0; n < 400; ++n) {
    ASSERT_NO_FATAL_FAILURE(Next());
    const auto count = Copy(SingleVariant(Change::kCount));
    ASSERT_TRUE(count.ok());
    const Outcome original = RunCopy(*count);
    for (const VariantName& name : GeneratedVariants()) {
      if (name.Has(Change::kGroup) && code_.groups == 0) continue;
      const auto copy = Copy(Counted(name));
      if (!copy.ok()) {
        ++refused[name.Text()];
        ASSERT_EQ(copy.status().code(), absl::StatusCode::kFailedPrecondition) << copy.status();
        continue;
      }
      ++made[name.Text()];
      changed[name.Text()] += static_cast<int>(copy->changed.size());
      const Outcome outcome = RunCopy(*copy);
      ASSERT_EQ(outcome.passes, original.passes) << name.Text() << " of loop " << n;
      ASSERT_TRUE(outcome.SamePath(original)) << name.Text() << " of loop " << n;
      // What is timed does not count, and takes the same way.
      const auto timed = Copy(name);
      ASSERT_TRUE(timed.ok()) << timed.status();
      ASSERT_TRUE(RunCopy(*timed).SamePath(original)) << name.Text() << " of loop " << n;
    }
  }
  // These loops neither divide nor compute on floating point: floating_test.cc has such.
  constexpr const char* kNothingToChange[] = {"NO_DIV", "NO_SQRT", "REF_CTL", "REF_FTZ",
                                              "NO_DIV+NO_SQRT"};
  for (const auto& [name, count] : made) {
    EXPECT_GT(count, 250) << name << ", refused " << refused[name];
    const bool nothing = std::find(std::begin(kNothingToChange), std::end(kNothingToChange),
                                   name) != std::end(kNothingToChange);
    EXPECT_EQ(changed[name] == 0, nothing) << name;
    EXPECT_TRUE(nothing || changed[name] > 40) << name << " changed " << changed[name];
  }
  EXPECT_EQ(made.size(), GeneratedVariants().size());
}

// The copies that shadows run to check a variant: exits lead to the stub, and so does the limit, at every one of its values.
TEST_F(BehaviourTest, ACountedVariantCountsExactlyWhatCountCounts) {
  int compared = 0, limited = 0;
  for (int n = 0; n < 200; ++n) {
    ASSERT_NO_FATAL_FAILURE(Next());
    const auto count = StubCopy(SingleVariant(Change::kCount));
    ASSERT_TRUE(count.ok()) << count.status();
    const uint64_t limits[] = {1, 3, kNoLimit};
    uint64_t expected[3];
    for (size_t l = 0; l < 3; ++l) expected[l] = RunCopy(*count, limits[l]).passes;
    ASSERT_EQ(expected[0], 1u);
    for (const VariantName& name : GeneratedVariants()) {
      if (name.Has(Change::kGroup) && code_.groups == 0) continue;
      const auto copy = StubCopy(Counted(name));
      if (!copy.ok()) continue;
      for (size_t l = 0; l < 3; ++l) {
        const Outcome outcome = RunCopy(*copy, limits[l]);
        ASSERT_EQ(outcome.passes, expected[l]) << name.Text() << " of loop " << n;
        ASSERT_EQ(outcome.exit, 0u) << "a shadow copy notes no exit";
        ++compared;
        limited += limits[l] == 3 && outcome.passes == 3 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(compared, 200 * 3 * 10);
  EXPECT_GT(limited, 500);
}

TEST_F(BehaviourTest, PrefetchAndTraceChangeNoResult) {
  for (const Change change : {Change::kPrefetch, Change::kTrace}) {
    for (int n = 0; n < 300; ++n) {
      ASSERT_NO_FATAL_FAILURE(Next());
      const Outcome original = Run(loop_.bytes.header);
      const auto copy = Copy(SingleVariant(change, change == Change::kPrefetch ? 50 : 0));
      ASSERT_TRUE(copy.ok()) << copy.status();
      const Outcome outcome = RunCopy(*copy);
      ASSERT_EQ(outcome.state, original.state) << ChangeName(change) << " of loop " << n;
      ASSERT_EQ(outcome.memory, original.memory) << ChangeName(change) << " of loop " << n;
      ASSERT_EQ(outcome.exit, original.exit);
    }
  }
}

TEST_F(BehaviourTest, TraceRecordsTheAddressesOfAnArray) {
  // movups (%rsi), %xmm1; mov %rax, -8(%rsi); lea 16(%rsi), %rsi; mov 0x2000(%rip), %rbx; dec %rcx; jnz loop
  std::vector<uint8_t> text = {0x0f, 0x10, 0x0e, 0x48, 0x89, 0x46, 0xf8, 0x48, 0x8d, 0x76,
                               0x10, 0x48, 0x8b, 0x1d, 0,    0,    0,    0,    0x48, 0xff,
                               0xc9, 0x75, 0xe9, 0xff, 0x25, 0,    0,    0,    0};
  const auto put = [&text](size_t at, uint64_t value) {
    for (size_t i = 0; i < 4; ++i) text[at + i] = static_cast<uint8_t>(value >> (8 * i));
  };
  put(14, arena_.data() + 64 - (arena_.text() + 18));
  put(25, arena_.back() - (arena_.text() + 29));
  arena_.Write(arena_.text(), text);
  LoopBytes bytes;
  bytes.header = arena_.text();
  bytes.function = {{arena_.text(), text}};
  bytes.body = {{arena_.text(), arena_.text() + 23}};
  const auto code = DecodeLoop(bytes);
  ASSERT_TRUE(code.ok()) << code.status();
  const auto copy = MakeCopy(*code, SingleVariant(Change::kTrace),
                             {arena_.copy(), Exits::kStub, arena_.text() + 23});
  ASSERT_TRUE(copy.ok()) << copy.status();
  ASSERT_EQ(copy->references.size(), 3u);
  arena_.Write(copy->address, copy->bytes);
  auto* records = &arena_.At<TraceRecord>(arena_.block() + kBlockTrace);
  for (int i = 0; i < 3; ++i) records[i] = {~uint64_t{0}, 0, 0, 0};
  arena_.At<uint64_t>(arena_.block() + kBlockIterations) = 0;
  arena_.At<uint64_t>(arena_.block() + kBlockIterationLimit) = 7;
  MachineState state;
  const uint64_t array = arena_.data() + 4096;
  state.general[6] = array;
  state.general[1] = 100;
  arena_.Run(copy->entry, &state);
  EXPECT_EQ(state.general[1], 93u) << "left at the limit";
  EXPECT_EQ(records[0].lowest, array);
  EXPECT_EQ(records[0].first, array);
  EXPECT_EQ(records[0].highest, array + 6 * 16);
  EXPECT_EQ(records[0].count, 7u);
  EXPECT_EQ(records[1].lowest, array - 8);
  EXPECT_EQ(records[1].highest, array - 8 + 6 * 16);
  EXPECT_EQ(records[2].lowest, arena_.data() + 64);
  EXPECT_EQ(records[2].highest, arena_.data() + 64);
  EXPECT_TRUE(copy->references[1].writes);
  EXPECT_FALSE(copy->references[1].reads);
  EXPECT_EQ(copy->references[0].bytes, 16);
}

TEST_F(BehaviourTest, TraceRecordsTheLanesOfAGatherThatItsMaskChooses) {
  // loop: vpcmpeqd %ymm3, %ymm3, %ymm3; vpsrldq $8, %ymm3, %ymm3 (lanes 1 and 3 off);
  // vgatherdpd %ymm3, 16(%rax,%xmm2,8), %ymm1; dec %rcx; jnz loop; jmp *back
  std::vector<uint8_t> text = {0xc5, 0xe5, 0x76, 0xdb, 0xc5, 0xe5, 0x73, 0xdb, 0x08,
                               0xc4, 0xe2, 0xe5, 0x92, 0x4c, 0xd0, 0x10, 0x48, 0xff,
                               0xc9, 0x75, 0xeb, 0xff, 0x25, 0,    0,    0,    0};
  const uint64_t distance = arena_.back() - (arena_.text() + 27);
  for (size_t i = 0; i < 4; ++i) text[23 + i] = static_cast<uint8_t>(distance >> (8 * i));
  arena_.Write(arena_.text(), text);
  LoopBytes bytes;
  bytes.header = arena_.text();
  bytes.function = {{arena_.text(), text}};
  bytes.body = {{arena_.text(), arena_.text() + 21}};
  const auto code = DecodeLoop(bytes);
  ASSERT_TRUE(code.ok()) << code.status();
  ASSERT_TRUE(code->instructions[2].Is(kGathers)) << code->instructions[2].text;
  EXPECT_TRUE(code->roles[0].address) << "the mask is part of the address";
  const auto copy = MakeCopy(*code, SingleVariant(Change::kTrace),
                             {arena_.copy(), Exits::kStub, arena_.text() + 21});
  ASSERT_TRUE(copy.ok()) << copy.status();
  arena_.Write(copy->address, copy->bytes);
  auto& record = arena_.At<TraceRecord>(arena_.block() + kBlockTrace);
  record = {~uint64_t{0}, 0, 0, 0};
  arena_.At<uint64_t>(arena_.block() + kBlockIterations) = 0;
  arena_.At<uint64_t>(arena_.block() + kBlockIterationLimit) = 100;
  MachineState state;
  const uint64_t base = arena_.data() + 4096;
  state.general[0] = base;
  state.general[1] = 3;
  const int32_t indices[] = {7, 1000000, -2, 2000000};
  std::memcpy(state.vector[2].data(), indices, sizeof(indices));
  arena_.Run(copy->entry, &state);
  EXPECT_EQ(state.general[1], 0u);
  EXPECT_EQ(record.first, base + 16 + 7 * 8);
  EXPECT_EQ(record.lowest, base + 16 - 2 * 8);
  EXPECT_EQ(record.highest, base + 16 + 7 * 8);
  EXPECT_EQ(record.count, 6u);
}

TEST_F(BehaviourTest, Dl1ChaseRunsOnItsOwnSlot) {
  // loop: mov 8(%rax), %rax; dec %rcx; jnz loop; jmp *back
  std::vector<uint8_t> text = {0x48, 0x8b, 0x40, 0x08, 0x48, 0xff, 0xc9, 0x75,
                               0xf7, 0xff, 0x25, 0,    0,    0,    0};
  const uint64_t distance = arena_.back() - (arena_.text() + 15);
  for (size_t i = 0; i < 4; ++i) text[11 + i] = static_cast<uint8_t>(distance >> (8 * i));
  arena_.Write(arena_.text(), text);
  LoopBytes bytes;
  bytes.header = arena_.text();
  bytes.function = {{arena_.text(), text}};
  bytes.body = {{arena_.text(), arena_.text() + 9}};
  const auto code = DecodeLoop(bytes);
  ASSERT_TRUE(code.ok()) << code.status();
  const auto copy = MakeCopy(*code, SingleVariant(Change::kDl1),
                             {arena_.copy(), Exits::kStub, arena_.text() + 9});
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->edits.pinned, 1);
  ASSERT_EQ(copy->self_pointers.size(), 1u);
  const SelfPointer& pointer = copy->self_pointers[0];
  const uint64_t value = arena_.block() + static_cast<uint64_t>(pointer.value);
  arena_.At<uint64_t>(arena_.block() + pointer.word) = value;
  arena_.Write(copy->address, copy->bytes);
  MachineState state;
  state.general[0] = 0xdead;  // would fault
  state.general[1] = 50;
  arena_.Run(copy->entry, &state);
  EXPECT_EQ(state.general[1], 0u);
  EXPECT_EQ(state.general[0], value);
  EXPECT_EQ(value + 8, arena_.block() + pointer.word);
}

TEST_F(BehaviourTest, Dl1ChaseByIndexRunsOnAZeroSlot) {
  // loop: movslq 8(%rsi,%rdx,4), %rdx; mov (%rsi,%rdx,4), %edx; dec %rcx; jnz loop; jmp *back
  std::vector<uint8_t> text = {0x48, 0x63, 0x54, 0x96, 0x08, 0x8b, 0x14, 0x96, 0x48, 0xff,
                               0xc9, 0x75, 0xf3, 0xff, 0x25, 0,    0,    0,    0};
  const uint64_t distance = arena_.back() - (arena_.text() + 19);
  for (size_t i = 0; i < 4; ++i) text[15 + i] = static_cast<uint8_t>(distance >> (8 * i));
  arena_.Write(arena_.text(), text);
  LoopBytes bytes;
  bytes.header = arena_.text();
  bytes.function = {{arena_.text(), text}};
  bytes.body = {{arena_.text(), arena_.text() + 13}};
  const auto code = DecodeLoop(bytes);
  ASSERT_TRUE(code.ok()) << code.status();
  const auto copy = MakeCopy(*code, SingleVariant(Change::kDl1),
                             {arena_.copy(), Exits::kStub, arena_.text() + 13});
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->edits.pinned, 2);
  std::memset(&arena_.At<uint8_t>(arena_.block() + kBlockSlots), 0, kSlotBytes * kSlotCount);
  arena_.Write(copy->address, copy->bytes);
  MachineState state;
  state.general[6] = 0xdead;  // would fault
  state.general[2] = 0xbeef;
  state.general[1] = 50;
  arena_.Run(copy->entry, &state);
  EXPECT_EQ(state.general[1], 0u);
  EXPECT_EQ(state.general[2], 0u);
}

}  // namespace
}  // namespace perfd::agent
