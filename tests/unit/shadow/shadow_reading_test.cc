#include "agent/shadow/shadow_reading.h"

#include <sys/mman.h>

#include <csignal>

#include "agent/shadow/forking/memory_areas.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two runs of a team of two.
class ShadowReadingTest : public ::testing::Test {
 protected:
  ShadowReadingTest() {
    reading_.site.last_outcome = kOutcomeDone;
    reading_.team = 2;
    reading_.runs = 2;
    reading_.child.team = 2;
    reading_.results.resize((2 + kProbeRuns) * 2, RunResult{70, 0, 0, 0, 0, kRunOk});
    for (size_t run = 1; run <= 2; ++run) {
      for (size_t place = 0; place < 2; ++place)
        reading_.results[run * 2 + place] = {1000 * run + place, 5, 0, 0, 0, kRunOk};
    }
    copies_.emplace_back();
    copies_[0].address = 0x1000;
    copies_[0].bytes.resize(16);
    copies_[0].address_map = {{0x400000, 0x1000}, {0x400004, 0x1004}};
    reading_.copies = {&copies_[0]};
  }
  ShadowReading reading_;
  std::vector<CodeCopy> copies_;
};

TEST_F(ShadowReadingTest, RunsAreToldByThread) {
  auto answer = ReadAnswer(reading_);
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->runs.size(), 4u);
  EXPECT_EQ(answer->runs[0].cycles, 1000u);  // run 0, thread 0
  EXPECT_EQ(answer->runs[1].cycles, 1001u);
  EXPECT_EQ(answer->runs[3].cycles, 2001u);
  EXPECT_EQ(answer->runs[3].run, 1);
  EXPECT_EQ(answer->probe_cycles, 70u);
  EXPECT_EQ(answer->outcome, "done");
}

TEST_F(ShadowReadingTest, WhoLeftByADetourIsToldByThread) {
  EXPECT_TRUE(ReadAnswer(reading_)->left_by_excluded_path.empty()) << "the loop has none";
  reading_.excluded_paths = {1, 0};
  EXPECT_EQ(ReadAnswer(reading_)->left_by_excluded_path, (std::vector<bool>{true, false}));
}

TEST_F(ShadowReadingTest, MemoryThatTheProgramKeepsOutOfForksIsNamed) {
  reading_.results[2].status = kRunFaulted;
  reading_.child.fault = {SIGSEGV, SEGV_MAPERR, 0x10, 0x1005, 1, 0, 0};
  reading_.child.fault_count = 1;
  EXPECT_EQ(ReadAnswer(reading_)->runs[0].failure, "SIGSEGV at 0x10 (instruction 0x400004)");
  reading_.early_end.fault_in_rank = true;
  EXPECT_THAT(ReadAnswer(reading_)->runs[0].failure, HasSubstr("MADV_DONTFORK"));
  reading_.child.fault.code = SEGV_ACCERR;
  EXPECT_THAT(ReadAnswer(reading_)->runs[0].failure, Not(HasSubstr("MADV_DONTFORK")));
}

TEST_F(ShadowReadingTest, MemoryThatAForkSeesDifferentlyIsNamed) {
  reading_.results[2].status = kRunFaulted;
  reading_.child.fault = {SIGSEGV, SEGV_ACCERR, 0x2010, 0x1005, 1, 0, 0};
  reading_.child.fault_count = 1;
  const auto why = [](WhyProtected reason) { return static_cast<uint32_t>(reason); };
  reading_.protects = {{0x1000, 0x3000, PROT_NONE, why(WhyProtected::kDevice)}};
  EXPECT_THAT(ReadAnswer(reading_)->runs[0].failure, HasSubstr("touches device memory: "));
  reading_.protects.push_back({0x2000, 0x1000, PROT_NONE, why(WhyProtected::kEmptyInForks)});
  EXPECT_THAT(ReadAnswer(reading_)->runs[0].failure, HasSubstr("MADV_WIPEONFORK"));
  reading_.protects.back().why = why(WhyProtected::kPagedByOthers);
  EXPECT_THAT(ReadAnswer(reading_)->runs[0].failure, HasSubstr("userfaultfd"));
  reading_.protects.pop_back();
  reading_.protects.back().why = why(WhyProtected::kShared);
  EXPECT_THAT(ReadAnswer(reading_)->runs[0].failure, HasSubstr("writes shared memory: "));
}

TEST_F(ShadowReadingTest, FaultsNameTheInstruction) {
  reading_.results[2].status = kRunFaulted;  // run 0 is the second of the plan
  reading_.child.fault = {SIGSEGV, 0, 0x10, 0x1005, 1, 0, 0};
  auto answer = ReadAnswer(reading_);
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->runs[0].ok);
  EXPECT_EQ(answer->runs[0].failure, "SIGSEGV at 0x10 (instruction 0x400004)");
}

TEST_F(ShadowReadingTest, FaultsNameTheInstructionWhereverTheCopyStood) {
  reading_.results[2].status = kRunFaulted;
  copies_[0].places.shifts = {0x40, 0x1040};
  reading_.child.fault = {SIGSEGV, 0, 0x10, 0x2041, 1, 0, 0};
  reading_.child.fault_count = 1;
  EXPECT_EQ(ReadAnswer(reading_)->runs[0].failure, "SIGSEGV at 0x10 (instruction 0x400000)");
  reading_.child.fault.pc = 0x2050;  // behind the last place
  EXPECT_EQ(ReadAnswer(reading_)->runs[0].failure, "SIGSEGV at 0x10 (at 0x2050)");
}

TEST_F(ShadowReadingTest, ASystemCallThatEndedTheShadowIsNamed) {
  for (size_t place = 2; place < 6; ++place) reading_.results[place].status = kRunNotRun;
  reading_.site.last_outcome = kOutcomeTrapped;
  reading_.child.current_run = 1;
  reading_.child.trap = {1, 1, 0x7f0010, 0x1004, 0, 1, 0, 0};
  reading_.early_end.trapped = TrappedCall{1, 0x7f0010, "libc.so.6", 0x10};
  auto answer = ReadAnswer(reading_);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->trapped, reading_.early_end.trapped);
  EXPECT_EQ(answer->runs[0].outcome, RunOutcome::kFault);
  EXPECT_EQ(answer->runs[0].failure, "calls write() from libc.so.6+0x10 (instruction 0x400000)");
  EXPECT_EQ(answer->runs[2].outcome, RunOutcome::kNotRun);
  EXPECT_THAT(answer->runs[2].failure, HasSubstr("ended by a system call: it calls write()"));
  reading_.site.last_outcome = kOutcomeLocked;
  reading_.child.trap.argument = 0x600010;
  EXPECT_EQ(ReadAnswer(reading_)->runs[0].failure,
            "waits for what a thread outside the shadow holds, at 0x600010: calls write() from "
            "libc.so.6+0x10 (instruction 0x400000)");
  reading_.site.last_outcome = kOutcomeTrapped;
  // What lies there is no return address into a copy.
  reading_.child.trap.return_address = 0x55;
  EXPECT_EQ(ReadAnswer(reading_)->runs[0].failure, "calls write() from libc.so.6+0x10");
}

TEST_F(ShadowReadingTest, RunsThatDidNotHappenSayWhy) {
  reading_.results[4].status = kRunNotRun;
  auto answer = ReadAnswer(reading_);
  EXPECT_EQ(answer->runs[2].failure, "not run: time was up");
  EXPECT_EQ(answer->runs[2].outcome, RunOutcome::kNotRun);
  reading_.site.last_outcome = kOutcomeWatchdog;
  reading_.child.current_run = 2;
  answer = ReadAnswer(reading_);
  EXPECT_THAT(answer->runs[2].failure, HasSubstr("did not end"));
  EXPECT_EQ(answer->runs[2].outcome, RunOutcome::kTimeout);
}

TEST_F(ShadowReadingTest, ShadowsThatDidNotStart) {
  reading_.site.last_outcome = kOutcomeGatherTimeout;
  EXPECT_EQ(ReadAnswer(reading_).status().code(), absl::StatusCode::kOutOfRange);
  reading_.site.last_outcome = kOutcomeTeamLost;
  EXPECT_EQ(ReadAnswer(reading_).status().code(), absl::StatusCode::kUnavailable);
  reading_.site.last_outcome = kOutcomeForkFailed;
  reading_.site.last_error = 12;
  EXPECT_EQ(ReadAnswer(reading_).status().code(), absl::StatusCode::kFailedPrecondition);
  reading_.site.last_outcome = kOutcomeSetupFailed;
  reading_.child.error_step = kStepAgent;
  EXPECT_EQ(ReadAnswer(reading_).status().code(), absl::StatusCode::kUnavailable);
  reading_.child.error_step = kStepProtect;
  EXPECT_EQ(ReadAnswer(reading_).status().code(), absl::StatusCode::kFailedPrecondition);
  reading_.site.last_outcome = 77;
  EXPECT_EQ(ReadAnswer(reading_).status().code(), absl::StatusCode::kInternal);
}

TEST_F(ShadowReadingTest, SizesThatDoNotFitAreRefused) {
  reading_.results.pop_back();
  EXPECT_FALSE(ReadAnswer(reading_).ok());
  reading_.team = kMaxTeam + 1;
  EXPECT_FALSE(ReadAnswer(reading_).ok());
}

}  // namespace
}  // namespace perfd::agent
