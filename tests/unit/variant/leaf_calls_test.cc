// Loops that call a leaf: its code is part of the copies, which run as the loop and its function do.
#include "agent/variant/flow/leaf_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "agent/variant/copy.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/thread_block.h"
#include "tests/unit/variant/fixtures.h"
#include "tests/unit/variant/native_run.h"

namespace perfd::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Made once with GNU as:
//   0: mov (%rsi,%rax,8), %rdi; call 20; mov %rdx, (%rbx,%rax,8); inc %rax; cmp %rcx, %rax; jne 0
//  20: endbr64; lea (%rdi,%rdi,2), %rdx; test $1, %dil; je 33; imul $7, %rdx; ret
//  33: add (%r8), %rdx; ret
constexpr char kIntegers[] =
    "488b3cc6e817000000488914c348ffc04839c875eb9090909090900f1f440000"
    "f30f1efa488d147f40f6c7017405486bd207c3490310c3";
constexpr uint64_t kIntegersEnd = 0x15;
//   0: movsd (%rsi,%rax,8), %xmm0; call 20; movsd %xmm0, (%rbx,%rax,8); inc %rax; cmp %rcx, %rax; jne 0
//  20: mulsd %xmm0, %xmm0; addsd (%r8), %xmm0; divsd %xmm1, %xmm0; ret
constexpr char kFloats[] =
    "f20f1004c6e816000000f20f1104c348ffc04839c875e9660f1f840000000000"
    "f20f59c0f2410f5800f20f5ec1c3";
constexpr uint64_t kFloatsEnd = 0x17;
constexpr uint64_t kLeaf = 0x20;

// The loop at `address`, and the text of what it calls.
LoopBytes Calling(absl::string_view hex, uint64_t body_end, uint64_t address = kFixtureAddress) {
  const std::string bytes = absl::HexStringToBytes(hex);
  LoopBytes loop;
  loop.header = address;
  loop.function = {{address, {bytes.begin(), bytes.begin() + kLeaf}}};
  loop.body = {{address, address + body_end}};
  loop.called.text = {{address + kLeaf, {bytes.begin() + kLeaf, bytes.end()}}};
  return loop;
}

LoopBytes WithLeaf(absl::string_view leaf) {
  LoopBytes loop = Calling(kFloats, kFloatsEnd);
  const std::string bytes = absl::HexStringToBytes(leaf);
  loop.called.text[0].bytes.assign(bytes.begin(), bytes.end());
  return loop;
}

std::vector<std::string> CallsOf(const LoopBytes& bytes) {
  const auto loop = DecodeLoop(bytes);
  if (!loop.ok()) return {std::string(loop.status().message())};
  std::vector<std::string> texts;
  for (const uint32_t at : loop->calls) texts.push_back(loop->instructions[at].text);
  return texts;
}

TEST(LeafCallsTest, ALeafBecomesPartOfTheLoop) {
  const auto loop = DecodeLoop(Calling(kFloats, kFloatsEnd));
  ASSERT_TRUE(loop.ok()) << loop.status();
  EXPECT_THAT(loop->calls, IsEmpty());
  EXPECT_EQ(loop->instructions.size(), 6u + 4u);
  EXPECT_THAT(loop->leaves.ranges,
              ElementsAre(CodeRange{kFixtureAddress + kLeaf, kFixtureAddress + 0x2e}));
  EXPECT_THAT(loop->body, ElementsAre(CodeRange{kFixtureAddress, kFixtureAddress + kFloatsEnd}));
  EXPECT_THAT(loop->next[1], ElementsAre(6u)) << "the call leads into the leaf";
  EXPECT_THAT(loop->next[9], ElementsAre(2u)) << "and its return behind the call";
  EXPECT_TRUE(InLeaf(*loop, kFixtureAddress + kLeaf));
  EXPECT_FALSE(InLeaf(*loop, kFixtureAddress));
}

TEST(LeafCallsTest, VariantsChangeWhatTheLeafDoes) {
  const auto loop = DecodeLoop(Calling(kFloats, kFloatsEnd));
  ASSERT_TRUE(loop.ok()) << loop.status();
  const auto ls = MakeCopy(*loop, SingleVariant(Change::kLs), FixturePlace());
  ASSERT_TRUE(ls.ok()) << ls.status();
  EXPECT_EQ(Texts(*loop, *ls)[6], "deleted");
  EXPECT_EQ(Texts(*loop, *ls)[8], "deleted");
  EXPECT_EQ(ls->edits.kept, 0);
  EXPECT_EQ(ls->edits.accesses, 3);
  const auto fp = MakeCopy(*loop, SingleVariant(Change::kFp), FixturePlace());
  ASSERT_TRUE(fp.ok()) << fp.status();
  EXPECT_NE(Texts(*loop, *fp)[7], "");
  const auto dl1 = MakeCopy(*loop, SingleVariant(Change::kDl1), FixturePlace());
  ASSERT_TRUE(dl1.ok()) << dl1.status();
  EXPECT_EQ(dl1->edits.pinned, 3);
  const auto idle = MakeCopy(*loop, SingleVariant(Change::kNoCall), FixturePlace());
  ASSERT_TRUE(idle.ok()) << idle.status();
  EXPECT_TRUE(IsIdle(SingleVariant(Change::kNoCall), *idle)) << "no call is left";
}

// What is not wholly known stays a call, for which the loop is refused.
TEST(LeafCallsTest, OtherFunctionsStayCalls) {
  const auto stays = testing::ElementsAre(HasSubstr("call"));
  EXPECT_THAT(CallsOf(WithLeaf("f20f59c0c3")), IsEmpty());
  EXPECT_THAT(CallsOf(WithLeaf("f20f59c0f3c3")), IsEmpty());    // rep ret
  EXPECT_THAT(CallsOf(WithLeaf("53f20f59c05bc3")), IsEmpty());  // push %rbx, pop %rbx
  EXPECT_THAT(CallsOf(WithLeaf("f20f114424f8c3")), IsEmpty());  // movsd %xmm0, -8(%rsp)
  EXPECT_THAT(CallsOf(WithLeaf("f20f11442488c3")), IsEmpty());  // movsd %xmm0, -120(%rsp)
  EXPECT_THAT(CallsOf(WithLeaf("f20f11442487c3")), stays);      // movsd %xmm0, -121(%rsp)
  EXPECT_THAT(CallsOf(WithLeaf("53f20f59c0c3")), stays);        // push %rbx; ret
  EXPECT_THAT(CallsOf(WithLeaf("5b53c3")), stays);              // pops the return address
  EXPECT_THAT(CallsOf(WithLeaf("4883e4f0c3")), stays);          // and $-16, %rsp
  EXPECT_THAT(CallsOf(WithLeaf("545cc3")), stays);              // push %rsp; pop %rsp
  EXPECT_THAT(CallsOf(WithLeaf("e80000000090c3")), stays);      // it calls
  EXPECT_THAT(CallsOf(WithLeaf("ff25000000009090c3")), stays);  // jmp *0(%rip), as in a PLT
  EXPECT_THAT(CallsOf(WithLeaf("48ffc975fbc3")), stays);        // it holds a loop
  EXPECT_THAT(CallsOf(WithLeaf("f20f59c0")), stays);            // its text is not all there
  EXPECT_THAT(CallsOf(WithLeaf("f20f59c0eb10")), stays);        // it goes on elsewhere
  EXPECT_THAT(CallsOf(WithLeaf("0f05c3")), stays);              // a system call
  EXPECT_THAT(CallsOf(WithLeaf("f20f59c0c20800")), stays);      // takes more off the stack
  EXPECT_THAT(CallsOf(WithLeaf("ebfe")), stays);                // never comes back
  EXPECT_THAT(CallsOf(WithLeaf("7401b8c3c3c3c3c3")), stays);    // into the midst of another
  EXPECT_THAT(CallsOf(WithLeaf("")), stays);
}

// Addresses of the stack are followed through registers: what a copy does not hold is out of reach by them too.
TEST(LeafCallsTest, WhatCopiesDoNotHoldOfTheStackIsNotReachedThroughRegistersEither) {
  const auto stays = testing::ElementsAre(HasSubstr("call"));
  // push %rbp; mov %rsp, %rbp; movsd %xmm0, -8(%rbp); addsd -8(%rbp), %xmm0; pop %rbp; ret
  EXPECT_THAT(CallsOf(WithLeaf("554889e5f20f1145f8f20f5845f85dc3")), IsEmpty());
  // The same at -0x70(%rbp) and at -0x78(%rbp), eight bytes beyond what signals leave alone.
  EXPECT_THAT(CallsOf(WithLeaf("554889e5f20f114590f20f5845905dc3")), IsEmpty());
  EXPECT_THAT(CallsOf(WithLeaf("554889e5f20f114588f20f5845885dc3")), stays);
  // lea -0x78(%rsp), %rax; movsd %xmm0, (%rax); ret, and from -0x80(%rsp)
  EXPECT_THAT(CallsOf(WithLeaf("488d442488f20f1100c3")), IsEmpty());
  EXPECT_THAT(CallsOf(WithLeaf("488d442480f20f1100c3")), stays);
  // push %rbp; mov %rsp, %rbp; cvtsi2sdq 8(%rbp), %xmm0; pop %rbp; ret: the return address
  EXPECT_THAT(CallsOf(WithLeaf("554889e5f2480f2a45085dc3")), stays);
  // lea -16(%rsp), %rax; mov %rax, %rdx; add $8, %rdx; movsd %xmm0, (%rdx); ret, and the return address by add $16
  EXPECT_THAT(CallsOf(WithLeaf("488d4424f04889c24883c208f20f1102c3")), IsEmpty());
  EXPECT_THAT(CallsOf(WithLeaf("488d4424f04889c24883c210f20f1102c3")), stays);
  // Where code does not tell the place: movsd (%rsp,%rcx,8), %xmm0; and $-16, %rax; the address is kept elsewhere, goes through xmm1.
  EXPECT_THAT(CallsOf(WithLeaf("f20f1004ccc3")), stays);
  EXPECT_THAT(CallsOf(WithLeaf("488d4424f04883e0f0f20f1100c3")), stays);
  EXPECT_THAT(CallsOf(WithLeaf("488d4424f0498900c3")), stays);
  EXPECT_THAT(CallsOf(WithLeaf("488d4424f066480f6ec8c3")), stays);
  // Saved on the stack and taken back it is known still: lea -16(%rsp), %rax; mov %rax, -8(%rsp); xor %eax, %eax; mov -8(%rsp), %rax;
  // movsd %xmm0, (%rax); ret; and with the return address, by lea 0(%rsp), %rax.
  EXPECT_THAT(CallsOf(WithLeaf("488d4424f048894424f831c0488b4424f8f20f1100c3")), IsEmpty());
  EXPECT_THAT(CallsOf(WithLeaf("488d04244889442"
                               "4f831c0488b4424f8f20f1100c3")),
              stays);
  // Of two ways only one has it: test %ecx, %ecx; je 1f; lea -16(%rsp), %rdi; 1: movsd %xmm0, (%rdi); ret
  EXPECT_THAT(CallsOf(WithLeaf("85c97405488d7c24f0f20f1107c3")), stays);
  // A bit anywhere: bts %rsi, -16(%rsp). Through a mask register: mov %rsp, %rax; kmovq %rax, %k1; kmovq %k1, %rcx; mov (%rcx), %rax.
  // lea -16(%rsp), %rax; stosq. imul 64(%rax), %rax, with rax = -128(%rsp), kept elsewhere.
  EXPECT_THAT(CallsOf(WithLeaf("480fab7424f0c3")), stays);
  EXPECT_THAT(CallsOf(WithLeaf("4889e0c4e1fb92c8c4e1fb93c9488b01c3")), stays);
  EXPECT_THAT(CallsOf(WithLeaf("488d4424f048abc3")), stays);
  EXPECT_THAT(CallsOf(WithLeaf("488d442488480faf4040488901c3")), stays);
  // mov %ah, -8(%rsp) keeps no address.
  EXPECT_THAT(CallsOf(WithLeaf("886424f8c3")), IsEmpty());
  // A rare way that indexes the stack and comes back is a way out, what follows it is not: test %ecx, %ecx; jne 1f;
  // 0: movsd (%rsi), %xmm0; ret; 1: lea -16(%rsp), %rsi; movsd (%rsp,%rcx,8), %xmm1; jmp 0b
  EXPECT_THAT(CallsOf(WithLeaf("85c97505f20f1006c3488d7424f0f20f100cccebef")), IsEmpty());
  // lea -8(%esp), %rsp: another stack pointer
  EXPECT_THAT(CallsOf(WithLeaf("67488d6424f867488d642408c3")), stays);
}

// test $1, %al; je b; call f; jmp e; b: call g; call *%rbx; e: dec %ecx; jne 0: when g is taken in its way is left out all the same.
TEST(LeafCallsTest, ACallWhoseWayIsLeftOutAfterAll) {
  const std::string bytes = absl::HexStringToBytes(
      "a801"
      "7407"
      "e81f000000"
      "eb07"
      "e820000000"
      "ffd3"
      "ffc9"
      "75ea");
  const std::string leaf = absl::HexStringToBytes("4883ec084883c408c3");
  LoopBytes loop = Calling(kFloats, kFloatsEnd);
  loop.function[0].bytes.assign(bytes.begin(), bytes.end());
  loop.body = {{loop.header, loop.header + bytes.size()}};
  loop.called.text = {{loop.header + 0x28, {leaf.begin(), leaf.end()}},
                      {loop.header + 0x30, {leaf.begin(), leaf.end()}}};
  const auto code = DecodeLoop(loop);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(code->calls, IsEmpty());
  EXPECT_THAT(code->excluded.ranges, testing::Not(IsEmpty()));
}

// What it calls in vain does not count: a leaf with a rare way into long functions is left there, as without frames.
TEST(LeafCallsTest, ALongFunctionOnARareWayIsAWayOut) {
  // test %ecx, %ecx; jne 1f; ret; 1: call x; ret
  LoopBytes loop = WithLeaf("85c97501c3e8f6000000c3");
  const uint64_t called = loop.called.text[0].address + 10 + 0xf6;
  std::vector<uint8_t> nops(5000, 0x90);
  nops.push_back(0xc3);
  loop.called.text.push_back({called, nops});
  const auto code = DecodeLoop(loop);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(code->calls, IsEmpty());
  EXPECT_EQ(code->leaves.exits.size(), 1u);
}

TEST(LeafCallsTest, ALeafThatIsCalledTwiceStaysACall) {
  // call 20; call 20; inc %rax; cmp %rcx, %rax; jne 0
  LoopBytes loop = Calling(kFloats, kFloatsEnd);
  const std::string bytes = absl::HexStringToBytes("e81b000000e81600000048ffc04839c875ee");
  loop.function[0].bytes.assign(bytes.begin(), bytes.end());
  loop.body = {{loop.header, loop.header + bytes.size()}};
  EXPECT_TRUE(WantedBy(loop).empty());
  EXPECT_EQ(CallsOf(loop).size(), 2u);
}

// Only what is in the way of going round: a call on a rare path is left out with its path, as before.
TEST(LeafCallsTest, ARarePathIsLeftOutRatherThanTakenIn) {
  // test %rdi, %rdi; je a; inc %rax; jmp f; a: call 20; f: cmp %rcx, %rax; jne 0
  LoopBytes loop = Calling(kFloats, kFloatsEnd);
  const std::string bytes = absl::HexStringToBytes("4885ff740548ffc0eb05e8110000004839c875ec");
  loop.function[0].bytes.assign(bytes.begin(), bytes.end());
  loop.body = {{loop.header, loop.header + bytes.size()}};
  const auto code = DecodeLoop(loop);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(code->leaves.ranges, IsEmpty());
  EXPECT_EQ(code->excluded.ranges.size(), 1u);
}

class LeafRunTest : public testing::Test {
 protected:
  static constexpr uint64_t kTrips = 50;

  void SetUp() override {
    if (!HasAvx2()) GTEST_SKIP() << "runs are kept with AVX registers";
  }
  // Where the loop falls out: jmp *back(%rip).
  void Place(absl::string_view hex, uint64_t end) {
    const std::string bytes = absl::HexStringToBytes(hex);
    arena_.Write(arena_.text(), {bytes.begin(), bytes.end()});
    std::vector<uint8_t> leave = {0xff, 0x25, 0, 0, 0, 0};
    const auto distance = static_cast<int32_t>(arena_.back() - (arena_.text() + end + 6));
    memcpy(&leave[2], &distance, 4);
    arena_.Write(arena_.text() + end, leave);
    code_ = *DecodeLoop(Calling(hex, end, arena_.text()));
    ASSERT_FALSE(code_.leaves.ranges.empty());
  }
  MachineState Start() {
    for (uint64_t at = 0; at < Arena::kDataBytes; at += 8)
      arena_.At<uint64_t>(arena_.data() + at) = at * 0x9e3779b97f4a7c15u >> 12 | 0x3ffull << 52;
    MachineState state;
    state.general[1] = kTrips;                  // rcx
    state.general[3] = arena_.data() + 0x800;   // rbx
    state.general[6] = arena_.data();           // rsi
    state.general[8] = arena_.data() + 0x1000;  // r8
    const double divisor = 3;
    memcpy(state.vector[1].data(), &divisor, 8);
    state.flags = 2;
    return state;
  }
  struct Outcome {
    MachineState state;
    std::vector<uint8_t> memory;
    bool operator==(const Outcome&) const = default;
  };
  Outcome Run(uint64_t from) {
    MachineState state = Start();
    arena_.At<uint64_t>(arena_.block() + kBlockIterations) = 0;
    arena_.Run(from, &state);
    state.flags &= 0x8c5;
    const auto bytes = arena_.Bytes(arena_.data(), 0x1800);
    return {state, {bytes.begin(), bytes.end()}};
  }
  uint64_t Make(Change change) {
    const auto copy =
        MakeCopy(code_, SingleVariant(change), {arena_.copy(), Exits::kOriginalText, 0});
    EXPECT_TRUE(copy.ok()) << copy.status();
    arena_.Write(copy->address, copy->bytes);
    return copy->entry;
  }

  Arena arena_;
  LoopCode code_;
};

TEST_F(LeafRunTest, CopiesDoWhatTheLoopAndItsFunctionDo) {
  for (const bool floats : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(floats ? Place(kFloats, kFloatsEnd) : Place(kIntegers, kIntegersEnd));
    const Outcome original = Run(arena_.text());
    EXPECT_EQ(original.state.general[0], kTrips);
    for (const Change change : {Change::kRef, Change::kCount}) {
      const uint64_t entry = Make(change);
      ASSERT_EQ(original, Run(entry)) << ChangeName(change);
    }
    EXPECT_EQ(arena_.At<uint64_t>(arena_.block() + kBlockIterations), kTrips);
  }
}

TEST_F(LeafRunTest, VariantsMakeAsManyPasses) {
  for (const bool floats : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(floats ? Place(kFloats, kFloatsEnd) : Place(kIntegers, kIntegersEnd));
    for (const Change change : {Change::kLs, Change::kFp, Change::kDl1, Change::kCtrl}) {
      const uint64_t entry = Make(change);
      EXPECT_EQ(Run(entry).state.general[0], kTrips) << ChangeName(change);
    }
  }
}

}  // namespace
}  // namespace perfd::agent
