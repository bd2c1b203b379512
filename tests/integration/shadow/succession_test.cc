// Runs that go on from each other: registers and vector state of one are where the next begins; what is cut short, or may read
// what an earlier one has written, does not count.
#include <bit>

#include "tests/integration/shadow/payload_fixture.h"

namespace perfd::agent {
namespace {

constexpr uint32_t kIn = 0, kTurn = 27;  // offsets into the code of AddUp

// addsd (%rdi),%xmm0; movq %xmm0,%rax; mov %rax,%gs:0; add $8,%rdi; dec %rsi; je out; turn: decq %gs:0x28; jns; out:
// A batch whose instances add one element each, and which tells the sum as its "iterations". It ends with the array.
uint64_t AddUp(SelfHosted& injector) {
  return injector.Raw({0xf2, 0x0f, 0x58, 0x07, 0x66, 0x48, 0x0f, 0x7e, 0xc0, 0x65, 0x48, 0x89, 0x04,
                       0x25, 0x00, 0x00, 0x00, 0x00, 0x48, 0x83, 0xc7, 0x08, 0x48, 0xff, 0xce, 0x74,
                       0x0b, 0x65, 0x48, 0xff, 0x0c, 0x25, 0x28, 0x00, 0x00, 0x00, 0x79, 0xda});
}

void Append(std::vector<uint8_t>& code, std::initializer_list<uint8_t> bytes, uint32_t word) {
  code.insert(code.end(), bytes);
  for (int i = 0; i < 4; ++i) code.push_back(static_cast<uint8_t>(word >> 8 * i));
}

struct Traced {
  uint64_t copy = 0, turn = 0;
};

// A traced batch: reference 0 reads (%rdi), reference 1 writes `distance` bytes above; 8 bytes on with each instance.
Traced Walk(SelfHosted& injector, uint32_t distance) {
  constexpr uint32_t kLow = offsetof(TraceRecord, lowest), kHigh = offsetof(TraceRecord, highest);
  constexpr uint32_t kCount = offsetof(TraceRecord, count);
  constexpr uint32_t kSecond = kBlockTrace + sizeof(TraceRecord);
  std::vector<uint8_t> code;
  Append(code, {0x65, 0x48, 0x89, 0x3c, 0x25}, kBlockTrace + kLow);  // mov %rdi,%gs:..
  Append(code, {0x65, 0x48, 0x89, 0x3c, 0x25}, kBlockTrace + kHigh);
  Append(code, {0x65, 0x48, 0xff, 0x04, 0x25}, kBlockTrace + kCount);  // incq
  Append(code, {0x48, 0x8d, 0x87}, distance);                          // lea distance(%rdi),%rax
  Append(code, {0x65, 0x48, 0x89, 0x04, 0x25}, kSecond + kLow);        // mov %rax,%gs:..
  Append(code, {0x65, 0x48, 0x89, 0x04, 0x25}, kSecond + kHigh);
  Append(code, {0x65, 0x48, 0xff, 0x04, 0x25}, kSecond + kCount);
  code.insert(code.end(), {0x48, 0x83, 0xc7, 0x08});
  const auto turn = static_cast<uint32_t>(code.size());
  Append(code, {0x65, 0x48, 0xff, 0x0c, 0x25}, kBlockInstancesLeft);
  code.insert(code.end(), {0x79, static_cast<uint8_t>(-static_cast<int>(code.size()) - 2)});
  const uint64_t copy = injector.Raw(code);
  return {copy, copy + turn};
}

RunEntry Successive(uint64_t copy, uint64_t instances, uint32_t flags = 0) {
  return {copy + kIn, 0, kRunSuccessive | flags, 0, 0, instances, copy + kTurn};
}

double SumOf(const RunResult& result) {
  return std::bit_cast<double>(result.iterations);
}

TEST_F(PayloadTest, SuccessiveRunsGoOnWhereTheLastOneWasLeft) {
  const std::vector<double> v = {1, 2, 4, 8, 16, 32, 64, 128, 0, 0};
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  const uint64_t copy = AddUp(injector);
  const RunEntry repeated{copy, 0, 0, 0, 0, 3};
  ShadowPlan& plan =
      injector.Plan(site, 1,
                    {Successive(copy, 3), Successive(copy, 3), repeated, Successive(copy, 3),
                     Successive(copy, 3), Successive(copy, 3), Successive(copy, 3)});
  plan.flags |= kPlanSuccessive;
  injector.Arm(site);
  EXPECT_EQ(loop_sum(v.data(), 8), 255);
  ASSERT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  EXPECT_EQ(SumOf(injector.result(0, 0)), 7);
  EXPECT_EQ(SumOf(injector.result(1, 0)), 63);
  EXPECT_EQ(SumOf(injector.result(2, 0)), 7) << "others begin at the entry";
  EXPECT_EQ(SumOf(injector.result(3, 0)), 7) << "after another one, it begins there, too";
  EXPECT_EQ(SumOf(injector.result(4, 0)), 63);
  EXPECT_EQ(SumOf(injector.result(5, 0)), 255);
  EXPECT_EQ(SumOf(injector.result(6, 0)), 7) << "what was cut short is not gone on from";
  for (const uint32_t run : {0u, 1u, 2u, 3u, 4u, 6u}) {
    EXPECT_EQ(injector.result(run, 0).status, uint32_t{kRunOk}) << run;
    EXPECT_EQ(injector.result(run, 0).instances, 3u) << run;
  }
  EXPECT_EQ(injector.result(5, 0).status, uint32_t{kRunCutShort});
  EXPECT_EQ(injector.result(5, 0).instances, 2u);
}

// Two traced runs of four instances, and then `runs` more.
std::vector<uint32_t> StatusAfterLooking(uint32_t distance, uint64_t runs) {
  const std::vector<double> v = Ramp(64);
  SelfHosted injector;
  const uint32_t site = injector.Install(kSum);
  const Traced walk = Walk(injector, distance);
  std::vector<RunEntry> entries(
      2, {walk.copy, 0, kRunSuccessive | kRunTrace | kRunLookAhead, 0, 0, 4, walk.turn});
  entries.insert(entries.end(), runs, {walk.copy, 0, kRunSuccessive, 0, 0, 4, walk.turn});
  ShadowPlan& plan = injector.Plan(site, 1, entries);
  plan.flags |= kPlanSuccessive;
  plan.tables.ahead = {{1}, {2}, runs};
  plan.tables.references = 2;
  injector.Arm(site);
  loop_sum(v.data(), 64);
  EXPECT_EQ(injector.site(site).last_outcome, kOutcomeDone);
  std::vector<uint32_t> status;
  for (uint32_t run = 2; run < entries.size(); ++run)
    status.push_back(injector.result(run, 0).status);
  return status;
}

TEST_F(PayloadTest, WhatSuccessiveRunsWriteMustNotBeWhatLaterOnesRead) {
  EXPECT_EQ(StatusAfterLooking(4096, 3), std::vector<uint32_t>(3, kRunOk));
  // 32 bytes a run: the hundredth reads what the first has written.
  EXPECT_EQ(StatusAfterLooking(4096, 200), std::vector<uint32_t>(200, kRunCutShort));
  EXPECT_EQ(StatusAfterLooking(0, 3), std::vector<uint32_t>(3, kRunCutShort));
}

}  // namespace
}  // namespace perfd::agent
