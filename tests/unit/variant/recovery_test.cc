// Recovery mode: which loops provably end and store nothing, and which copies may run before the loop itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/variant/recovery/in_situ.h"
#include "agent/variant/recovery/trip_count.h"
#include "agent/variant/thread_block.h"
#include "tests/unit/variant/fixtures.h"

namespace perfd::agent {
namespace {

using testing::HasSubstr;

constexpr int kRax = 0, kRcx = 1, kRdx = 2, kRsi = 6, kR14 = 14;

struct Accepted {
  const char* what;
  const char* hex;
  TripCount trips;
};

// Made once with GNU as; the AT&T text is in `what`.
const Accepted kAccepted[] = {
    {"addsd (%rdi),%xmm0; add $8,%rdi; dec %rsi; jne",
     "f20f58074883c70848ffce75f3",
     {kRsi, kNoRegister, 1, -1, 8}},
    {"vaddpd (%rax,%rcx,8),%ymm0,%ymm0; add $4,%rcx; cmp %r14,%rcx; jb",
     "c5fd5804c84883c1044c39f172f2",
     {kRcx, kR14, -4, 4, 8}},
    {"addpd (%rax),%xmm0; add $16,%rax; cmp %rdx,%rax; jne",
     "660f58004883c0104839d075f3",
     {kRax, kRdx, -16, 16, 8}},
    {"addss (%rdi,%rax,4),%xmm0; add $1,%eax; cmp %edx,%eax; jl",
     "f30f58048783c00139d07cf4",
     {kRax, kRdx, -1, 1, 4}},
    {"addss (%rdi,%rcx,4),%xmm0; inc %rcx; cmp %rcx,%rdx; jg",
     "f30f58048f48ffc14839ca7ff3",
     {kRcx, kRdx, -1, 1, 8}},
    {"addsd (%rdi,%rax),%xmm0; add $8,%rax; jne",
     "f20f5804074883c00875f5",
     {kRax, kNoRegister, -8, 8, 8}},
    {"addsd (%rdi,%rax,8),%xmm0; inc %rax; cmp $100,%rax; jne",
     "f20f5804c748ffc04883f86475f2",
     {kRax, kNoRegister, 99, 1, 8}},
    {"addsd (%rdi,%rdx,8),%xmm0; sub $4,%rdx; jg",
     "f20f5804d74883ea047ff5",
     {kRdx, kNoRegister, 4, -4, 8}},
    {"cmp %rdx,%rax; je out; addsd (%rax),%xmm0; add $8,%rax; jmp",
     "4839d0740af20f58004883c008ebf1",
     {kRax, kRdx, 0, 8, 8}},
    {"lea 8(%rax),%rcx; addsd (%rax),%xmm0; cmp %rdx,%rcx; mov %rcx,%rax; jne",
     "488d4808f20f58004839d14889c875f0",
     {kRax, kRdx, -8, 8, 8}},
};

TEST(ProveEndsTest, CountedLoopsWithoutStoresEnd) {
  for (const Accepted& loop : kAccepted) {
    const auto code = DecodeLoop(FixtureBytes(loop.hex));
    ASSERT_TRUE(code.ok()) << loop.what << code.status();
    const auto trips = ProveEnds(*code);
    ASSERT_TRUE(trips.ok()) << loop.what << ": " << trips.status();
    EXPECT_EQ(trips->counter, loop.trips.counter) << loop.what;
    EXPECT_EQ(trips->bound, loop.trips.bound) << loop.what;
    EXPECT_EQ(trips->offset, loop.trips.offset) << loop.what;
    EXPECT_EQ(trips->step, loop.trips.step) << loop.what;
    EXPECT_EQ(trips->bytes, loop.trips.bytes) << loop.what;
  }
}

struct Refused {
  const char* what;
  const char* hex;
  const char* why;
};

const Refused kRefused[] = {
    {"stores", kTriad, "it stores"},
    {"stores what it divides", kSvdcmp, "it stores"},
    {"p = p->next", kChase, "decides a branch or an address"},
    {"i = next[i]", kHops, "decides a branch or an address"},
    {"while (p)", kWhile, "decides a branch or an address"},
    {"gathers by indices it has loaded", "c5ed76d2c5fa6f0c8ec4e2ed921ccfc5fd58c34883c1044839d172e4",
     "decides a branch or an address"},
    {"if (a[i] > x) sum += b[i]", "f20f100cc7660f2fca7205f20f5804c648ffc04839d072e8",
     "decides a branch or an address"},
    {"inc; cmp; jg: away from the bound", "f20f5804c748ffc04839d07ff3", "towards the exit"},
    {"counter and bound both move", "f20f5804c748ffc048ffca4839d072f0",
     "no comparison of a counter"},
    {"the bound moves by what is not known", "f20f5804c748ffc04801ca4839d072f0",
     "no comparison of a counter"},
    {"goes round without the exit", "f20f5804c748ffc04d39c174f34839d072ee", "without this exit"},
    {"steps by one or by two", "48ffc0f20f5804c74d39c1740348ffc04839d072eb",
     "no comparison of a counter"},
    {"divides integers", "8b04cf9941f7f848ffc14839f172f1", "may fault"},
    {"x87", "dd04cfdec148ffc14839f172f3", "x87"},
    {"rdrand", "490fc7f0f20f5804cf48ffc14839f172ef", "no two runs agree"},
    {"lods", "48ad48ffc14839d172f6", "do not name"},
    {"until it converges", "f20f59c1660f2fc277f6", "no comparison of a counter"},
    {"goes on while equal", "f20f5804c748ffc04839d074f3", "towards the exit"},
    {"up to the stack pointer", "f20f58004883c0084839e075f3", "stack pointer"},
    {"64 bits of a counter of 32", "f30f58048783c0014839d075f3", "counter of 32"},
    {"until the sum carries", "f20f5804074883c00873f5", "carry"},
};

TEST(ProveEndsTest, EverythingElseIsRefusedWithTheReason) {
  for (const Refused& loop : kRefused) {
    const auto code = DecodeLoop(FixtureBytes(loop.hex));
    ASSERT_TRUE(code.ok()) << loop.what << code.status();
    const auto trips = ProveEnds(*code);
    ASSERT_FALSE(trips.ok()) << loop.what;
    EXPECT_EQ(trips.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(trips.status().message()), HasSubstr(loop.why)) << loop.what;
  }
}

TEST(ProveEndsTest, PathsThatAreLeftOutRefuseTheLoop) {
  auto code = DecodeLoop(FixtureBytes(kAccepted[0].hex));
  ASSERT_TRUE(code.ok());
  code->excluded.ranges.push_back({0x402000, 0x402010});
  EXPECT_FALSE(ProveEnds(*code).ok());
}

TEST(ProveEndsTest, DistanceIsCountedInTheDirectionOfTheSteps) {
  std::array<uint64_t, 16> registers{};
  registers[kRsi] = 10;  // do { } while (--n): ten passes
  EXPECT_EQ(Distance(kAccepted[0].trips, registers), 9u);
  registers[kRcx] = 8;
  registers[kR14] = 20;  // 8, 12, 16: three passes of four
  EXPECT_EQ(Distance(kAccepted[1].trips, registers), 8u);
  registers[kRax] = uint64_t{7} << 32 | 5;  // the upper half does not count
  registers[kRdx] = 9;
  EXPECT_EQ(Distance(kAccepted[3].trips, registers), 3u);
  registers[kRax] = static_cast<uint64_t>(-80);
  EXPECT_EQ(Distance(kAccepted[5].trips, registers), 72u);
  // Already beyond its bound: as far away as can be.
  registers[kRax] = 120;
  EXPECT_EQ(Distance(kAccepted[6].trips, registers), static_cast<uint64_t>(-21));
}

class InSituTest : public testing::Test {
 protected:
  absl::Status Check(const CodeCopy& copy) const {
    return CheckInSitu(loop_, copy, FixturePlace().exit_stub);
  }
  CodeCopy Copy(const char* name) const {
    return MakeCopy(loop_, *ParseVariantName(name), FixturePlace()).value();
  }
  // In place of the first instruction of REF, which has as many bytes.
  absl::Status With(std::vector<uint8_t> bytes) const {
    CodeCopy copy = Copy("REF");
    EXPECT_EQ(bytes.size(), loop_.instructions.front().length);
    std::copy(bytes.begin(), bytes.end(), copy.bytes.begin());
    return Check(copy);
  }

  const LoopCode loop_ = DecodeLoop(FixtureBytes(kAccepted[1].hex)).value();
};

TEST_F(InSituTest, VariantsOfALoopThatOnlyLoadsMayRun) {
  for (const Accepted& accepted : kAccepted) {
    const LoopCode loop = DecodeLoop(FixtureBytes(accepted.hex)).value();
    for (const char* name : {"REF", "COUNT", "TRACE", "LS", "FP", "DL1", "NO_RED", "CTRL", "S2L",
                             "NO_STORE", "PREFETCH(50)", "REF_FTZ", "REF_CTL", "GROUP(0)"}) {
      const auto copy = MakeCopy(loop, *ParseVariantName(name), FixturePlace());
      if (!copy.ok()) continue;
      const absl::Status status = CheckInSitu(loop, *copy, FixturePlace().exit_stub);
      EXPECT_TRUE(status.ok()) << name << " of " << accepted.what << ": " << status;
    }
  }
}

TEST_F(InSituTest, WhatACopyMustNotDoIsSeenInItsBytes) {
  ASSERT_TRUE(With({0xc5, 0xfd, 0x58, 0x04, 0xc8}).ok()) << "as it is";
  // vmovups %ymm0,(%rax,%rcx,8)
  EXPECT_THAT(std::string(With({0xc5, 0xfc, 0x11, 0x04, 0xc8}).message()), HasSubstr("stores"));
  // vaddpd (%rax,%rdx,8),%ymm0,%ymm0: another index; vaddpd (%rax,%rcx,4): another scale
  EXPECT_THAT(std::string(With({0xc5, 0xfd, 0x58, 0x04, 0xd0}).message()), HasSubstr("loads what"));
  EXPECT_THAT(std::string(With({0xc5, 0xfd, 0x58, 0x04, 0x88}).message()), HasSubstr("loads what"));
  // jmp: out of the copy; ret; int3
  EXPECT_THAT(std::string(With({0xe9, 0x00, 0x10, 0x00, 0x00}).message()), HasSubstr("leads out"));
  // jmp to the next instruction, and one byte into it, where other instructions may be read
  EXPECT_TRUE(With({0xeb, 0x00, 0x0f, 0x1f, 0x00}).ok());
  EXPECT_THAT(std::string(With({0xeb, 0x01, 0x0f, 0x1f, 0x00}).message()), HasSubstr("leads out"));
  EXPECT_FALSE(With({0xc3, 0x0f, 0x1f, 0x40, 0x00}).ok());
  EXPECT_FALSE(With({0xcc, 0x0f, 0x1f, 0x40, 0x00}).ok());
}

TEST_F(InSituTest, WhatCountsThePassesIsAsItWas) {
  CodeCopy copy = Copy("FP");
  ASSERT_TRUE(Check(copy).ok()) << Check(copy);
  const uint64_t step = loop_.instructions[1].address;  // add $4,%rcx
  for (const AddressPair& pair : copy.address_map) {
    if (pair.original == step) copy.bytes[pair.copy - copy.address + 3] = 0;  // add $0: never ends
  }
  EXPECT_THAT(std::string(Check(copy).message()), HasSubstr("not the same in the copy"));
  copy = Copy("FP");
  std::erase_if(copy.address_map, [&](const AddressPair& pair) { return pair.original == step; });
  EXPECT_FALSE(Check(copy).ok()) << "it is not there at all";
}

TEST_F(InSituTest, OnlyTheThreadsOwnBlockIsReachedThroughGs) {
  CodeCopy copy = Copy("REF");
  const auto with = [&](uint32_t offset, uint8_t rm) {
    // mov %rax,%gs:offset in front of the rest
    CodeCopy changed = copy;
    std::vector<uint8_t> store = {0x65, 0x48, 0x89, rm, 0x25};
    if (rm != 0x04) store.pop_back();
    for (int shift = 0; shift < 32 && rm == 0x04; shift += 8)
      store.push_back(static_cast<uint8_t>(offset >> shift));
    changed.bytes.insert(changed.bytes.begin(), store.begin(), store.end());
    changed.address -= store.size();
    return Check(changed);
  };
  EXPECT_TRUE(with(kThreadBlockBytes - 8, 0x04).ok()) << with(kThreadBlockBytes - 8, 0x04);
  EXPECT_FALSE(with(kThreadBlockBytes - 7, 0x04).ok());
  EXPECT_FALSE(with(0x80000000, 0x04).ok()) << "below the block";
  EXPECT_FALSE(with(0, 0x03).ok()) << "mov %rax,%gs:(%rbx)";
}

}  // namespace
}  // namespace perfd::agent
