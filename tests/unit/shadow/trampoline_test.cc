#include "agent/shadow/trampoline.h"

#include <cstring>

#include "agent/shadow/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kAt = 0x555000000000, kSite = 0x7fff00000040, kSlow = kAt - 0x10000,
                   kLive = kAt + 0x1000, kTimed = kAt + 0x2000, kBatch = kAt + 0x3000;

uint64_t BranchTarget(const std::vector<uint8_t>& code, size_t at, uint64_t address) {
  int32_t distance;
  memcpy(&distance, code.data() + at + 1, 4);
  return address + at + 5 + static_cast<uint64_t>(int64_t{distance});
}

uint64_t Immediate(const std::vector<uint8_t>& code, size_t at) {
  uint64_t value;
  memcpy(&value, code.data() + at + 2, 8);
  return value;
}

TEST(TrampolineTest, EveryWayLeadsToItsCopy) {
  absl::StatusOr<std::vector<uint8_t>> code = EmitTrampoline({kAt, kSite, kSlow, kLive, kTimed, kBatch});
  ASSERT_TRUE(code.ok());
  ASSERT_LE(code->size(), kTrampolineBytes);
  const std::vector<uint8_t>& c = *code;
  // lea -128(%rsp),%rsp; push %rcx; movabs $site,%rcx; movzbl (%rcx),%ecx; jrcxz +2; jmp +14
  EXPECT_EQ(Immediate(c, 6), kSite);
  EXPECT_EQ((std::vector<uint8_t>{c[16], c[17], c[18]}), (std::vector<uint8_t>{0x0f, 0xb6, 0x09}));
  EXPECT_EQ(c[19], 0xe3);
  EXPECT_EQ(c[20], 2);
  EXPECT_EQ(c[21], 0xeb);
  EXPECT_EQ(c[23], 0x59);  // idle: pop %rcx; lea 128(%rsp),%rsp; jmp live
  EXPECT_EQ(c[32], 0xe9);
  EXPECT_EQ(BranchTarget(c, 32, kAt), kLive);
  EXPECT_EQ(23u + c[22], 37u);
  // lea -3(%rcx),%ecx; jrcxz timed; lea -1(%rcx),%ecx; jrcxz batch; movabs; call slow; pop; lea; jmp live
  EXPECT_EQ(c[40], 0xe3);
  EXPECT_EQ(c[45], 0xe3);
  EXPECT_EQ(Immediate(c, 47), kSite);
  EXPECT_EQ(BranchTarget(c, 57, kAt), kSlow);
  EXPECT_EQ(BranchTarget(c, 80, kAt), kLive);
  size_t timed = 42 + c[41];
  EXPECT_EQ(timed, 85u);
  EXPECT_EQ(Immediate(c, timed), kSite | 2);
  EXPECT_EQ(BranchTarget(c, timed + 10, kAt), kSlow);
  EXPECT_EQ(BranchTarget(c, timed + 33, kAt), kTimed);
  // movabs; call slow; jrcxz others; movq; pop; lea; jmp batch; others: movq; pop; lea; jmp live
  size_t batch = 47 + c[46];
  EXPECT_EQ(batch, timed + 38);
  EXPECT_EQ(Immediate(c, batch), kSite | 4);
  EXPECT_EQ(BranchTarget(c, batch + 10, kAt), kSlow);
  EXPECT_EQ(c[batch + 15], 0xe3);
  EXPECT_EQ(BranchTarget(c, batch + 35, kAt), kBatch);
  size_t others = batch + 17 + c[batch + 16];
  EXPECT_EQ(others, batch + 40);
  EXPECT_EQ(BranchTarget(c, others + 18, kAt), kLive);
}

// Recovery is timed as a live entry is; idle is idle whatever the rest of the word says of the trampoline.
TEST(TrampolineTest, ModesAreToldApartByTheirLowByte) {
  EXPECT_EQ(kModeRecovery & 0xff, uint32_t{kModeLive});
  EXPECT_EQ(kModeIdle, 0u);
}

TEST(TrampolineTest, TimedExitGoesOnInTheText) {
  absl::StatusOr<std::vector<uint8_t>> code = EmitTimedExit({kAt, kSite, kSlow, kLive});
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(Immediate(*code, 6), kSite | 1);
  EXPECT_EQ(BranchTarget(*code, 16, kAt), kSlow);
  EXPECT_EQ(BranchTarget(*code, 39, kAt), kLive);
}

TEST(TrampolineTest, ReachEndsAtTwoGigabytes) {
  EXPECT_TRUE(EmitJump(kAt, kAt + 5 + 0x7fffffff).ok());
  EXPECT_TRUE(EmitJump(kAt, kAt + 5 - 0x80000000).ok());
  EXPECT_EQ(EmitJump(kAt, kAt + 5 + 0x80000000).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(EmitJump(kAt, kAt + 5 - 0x80000001).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(EmitTrampoline({kAt, kSite, kAt + 0x100000000, kLive, kTimed, kBatch}).ok());
}

}  // namespace
}  // namespace perfd::agent
