// Relocated loops return what the originals return: same registers, flags, memory, and the same exit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "agent/variant/copy.h"
#include "agent/variant/thread_block.h"
#include "tests/unit/variant/loop_generator.h"

namespace perfd::agent {
namespace {

struct Outcome {
  MachineState state;
  std::vector<uint8_t> memory;
  uint32_t exit = 0;

  bool operator==(const Outcome&) const = default;
};

// The flags that the architecture defines for every instruction the generator uses, AF excepted.
constexpr uint64_t kCompared = 0x8c5;

Outcome RunFrom(const Arena& arena, uint64_t target, MachineState state,
                const std::vector<uint8_t>& memory) {
  arena.Write(arena.data(), memory);
  arena.At<uint32_t>(arena.exit_id()) = 0;
  arena.Run(target, &state);
  state.flags &= kCompared;
  const auto bytes = arena.Bytes(arena.data(), Arena::kDataBytes);
  return {state, {bytes.begin(), bytes.end()}, arena.At<uint32_t>(arena.exit_id())};
}

std::vector<uint8_t> Memory(const Arena& arena) {
  const auto bytes = arena.Bytes(arena.data(), Arena::kDataBytes);
  return {bytes.begin(), bytes.end()};
}

class RelocationTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasAvx2()) GTEST_SKIP() << "the generated loops need AVX2";
  }
  CopyTarget Place(Exits exits, uint64_t stub) {
    return {arena_.copy() + random_() % 200, exits, stub};
  }

  Arena arena_;
  std::mt19937 random_{20150917};
};

TEST_F(RelocationTest, RefOfThousandsOfLoopsBehavesLikeTheOriginal) {
  int shifted = 0;
  for (int n = 0; n < 3000; ++n) {
    const GeneratedLoop loop = GenerateLoop(arena_, &random_);
    const MachineState start = GenerateState(arena_, loop, &random_);
    const std::vector<uint8_t> memory = Memory(arena_);
    const auto code = DecodeLoop(loop.bytes);
    ASSERT_TRUE(code.ok()) << n << ": " << code.status();
    const auto copy = MakeCopy(*code, SingleVariant(Change::kRef), Place(Exits::kOriginalText, 0));
    ASSERT_TRUE(copy.ok()) << n << ": " << copy.status();
    ASSERT_EQ((copy->entry - loop.bytes.header) % 64, 0u);
    arena_.Write(copy->address, copy->bytes);
    const Outcome original = RunFrom(arena_, loop.bytes.header, start, memory);
    const Outcome moved = RunFrom(arena_, copy->entry, start, memory);
    ASSERT_NE(original.exit, 0u);
    ASSERT_EQ(original, moved) << "loop " << n;
    shifted += copy->same_layout ? 0 : 1;
  }
  EXPECT_EQ(shifted, 0) << "REF always has the layout of REF";
}

TEST_F(RelocationTest, CountTellsTheTripsAndChangesNothingElse) {
  for (int n = 0; n < 1000; ++n) {
    const GeneratedLoop loop = GenerateLoop(arena_, &random_);
    const MachineState start = GenerateState(arena_, loop, &random_);
    const std::vector<uint8_t> memory = Memory(arena_);
    const auto code = DecodeLoop(loop.bytes);
    ASSERT_TRUE(code.ok()) << n << ": " << code.status();
    const auto copy =
        MakeCopy(*code, SingleVariant(Change::kCount), Place(Exits::kOriginalText, 0));
    ASSERT_TRUE(copy.ok()) << n << ": " << copy.status();
    arena_.Write(copy->address, copy->bytes);
    arena_.At<uint64_t>(arena_.block() + kBlockIterations) = 0;
    const Outcome original = RunFrom(arena_, loop.bytes.header, start, memory);
    const Outcome moved = RunFrom(arena_, copy->entry, start, memory);
    ASSERT_EQ(original, moved) << "loop " << n;
    // R8 counts down once a pass, but for a pass that leaves in its middle.
    const uint64_t passes = static_cast<uint64_t>(loop.trips) - original.state.general[8];
    const uint64_t counted = arena_.At<uint64_t>(arena_.block() + kBlockIterations);
    ASSERT_TRUE(counted == passes || counted == passes + 1) << "loop " << n;
    if (original.state.general[8] == 0) {
      ASSERT_EQ(counted, passes);
    }
  }
}

TEST_F(RelocationTest, LimitedCountLeavesThroughTheStub) {
  int limited = 0;
  for (int n = 0; n < 500; ++n) {
    const GeneratedLoop loop = GenerateLoop(arena_, &random_);
    const MachineState start = GenerateState(arena_, loop, &random_);
    const std::vector<uint8_t> memory = Memory(arena_);
    const auto code = DecodeLoop(loop.bytes);
    ASSERT_TRUE(code.ok()) << n << ": " << code.status();
    const auto copy =
        MakeCopy(*code, SingleVariant(Change::kCount), Place(Exits::kStub, loop.stub));
    ASSERT_TRUE(copy.ok()) << n << ": " << copy.status();
    arena_.Write(copy->address, copy->bytes);
    arena_.At<uint64_t>(arena_.block() + kBlockIterations) = 0;
    arena_.At<uint64_t>(arena_.block() + kBlockIterationLimit) = 3;
    const Outcome moved = RunFrom(arena_, copy->entry, start, memory);
    EXPECT_EQ(moved.exit, 0u) << "an exit of a shadow copy goes to the stub";
    const uint64_t counted = arena_.At<uint64_t>(arena_.block() + kBlockIterations);
    ASSERT_LE(counted, 3u);
    limited += counted == 3 ? 1 : 0;
  }
  EXPECT_GT(limited, 100);
}

TEST_F(RelocationTest, AddressMapNamesEveryInstructionAndItsCopy) {
  const GeneratedLoop loop = GenerateLoop(arena_, &random_);
  const auto code = DecodeLoop(loop.bytes);
  ASSERT_TRUE(code.ok()) << code.status();
  const auto copy = MakeCopy(*code, SingleVariant(Change::kRef), Place(Exits::kOriginalText, 0));
  ASSERT_TRUE(copy.ok());
  EXPECT_TRUE(std::is_sorted(copy->address_map.begin(), copy->address_map.end(),
                             [](auto& a, auto& b) { return a.copy < b.copy; }));
  for (const LoopInstruction& i : code->instructions) {
    const auto at = std::find_if(copy->address_map.begin(), copy->address_map.end(),
                                 [&i](const AddressPair& p) { return p.original == i.address; });
    ASSERT_NE(at, copy->address_map.end()) << i.text;
    const bool moves = i.flow != LoopFlow::kPlain || i.displacement_at != 0;
    if (!moves) {
      EXPECT_EQ(0, std::memcmp(i.bytes.data(), &copy->bytes[at->copy - copy->address], i.length));
    }
  }
}

}  // namespace
}  // namespace perfd::agent
