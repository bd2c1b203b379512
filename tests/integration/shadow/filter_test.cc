// What code in a shadow may ask of the kernel, and what becomes of it when it asks for more: nothing outside the shadow changes.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "gmock/gmock.h"
#include "tests/integration/shadow/payload_fixture.h"
#include "tests/integration/shadow/system_call_code.h"

namespace perfd::agent {
namespace {

constexpr size_t kPage = 4096;

class FilterTest : public PayloadTest {
 protected:
  FilterTest() : values_(Ramp(10)), site_(injector_.Install(kSum)) {}

  // One shadow that makes the calls, each in a run of its own.
  void Make(const std::vector<CallToMake>& calls) {
    std::vector<RunEntry> runs;
    for (const CallToMake& call : calls) {
      copies_.push_back(injector_.Raw(SystemCall(call)));
      runs.push_back({copies_.back(), 0, 0, 0, 0});
    }
    Run(runs);
  }
  void Run(const std::vector<RunEntry>& runs) {
    injector_.Plan(site_, 1, runs);
    injector_.Arm(site_);
    ASSERT_EQ(loop_sum(values_.data(), 10), 55.0);
  }
  uint32_t outcome() { return injector_.site(site_).last_outcome; }
  const TrapRecord& trap() { return injector_.child().trap; }
  int64_t returned(uint32_t run) {
    return static_cast<int64_t>(injector_.result(run, 0).iterations);
  }

  SelfHosted injector_;
  std::vector<double> values_;
  uint32_t site_;
  std::vector<uint64_t> copies_;
};

TEST_F(FilterTest, TheCallAndItsPlaceAreTold) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_NONBLOCK), 0);
  const char text[] = "not to be seen";
  const auto end = static_cast<uint64_t>(ends[1]);
  Make({{SYS_getpid}, {SYS_write, {end, AddressOf(text), sizeof(text)}}, {SYS_getpid}});
  EXPECT_EQ(outcome(), kOutcomeTrapped);
  EXPECT_EQ(trap().call, uint32_t{SYS_write});
  EXPECT_EQ(trap().argument, end);
  EXPECT_EQ(trap().place, copies_[1] + kSystemCallBytes);
  EXPECT_EQ(trap().run, 1u);
  EXPECT_EQ(trap().thread, 0u);
  EXPECT_EQ(injector_.child().fault_count, 0u);
  EXPECT_EQ(injector_.result(0, 0).status, uint32_t{kRunOk});
  EXPECT_EQ(injector_.result(1, 0).status, uint32_t{kRunNotRun});
  EXPECT_EQ(injector_.result(2, 0).status, uint32_t{kRunNotRun});
  char read_back[sizeof(text)];
  EXPECT_EQ(read(ends[0], read_back, sizeof(read_back)), -1);
  EXPECT_EQ(errno, EAGAIN);
  close(ends[0]);
  close(ends[1]);
}

// A call that the copy itself makes leaves where it came from on the stack.
TEST_F(FilterTest, TheLoopsOwnCallIsTold) {
  const std::vector<uint8_t> callee = SystemCall({SYS_write, {1}});
  const uint64_t function = injector_.Raw(callee);
  CodeBytes code;
  code.Add({0x48, 0xb8});  // movabs, rax; call *%rax
  code.AddWord(function);
  code.Add({0xff, 0xd0});
  const uint64_t copy = injector_.Raw(code.bytes());
  Run({{copy, 0, 0, 0, 0}});
  EXPECT_EQ(outcome(), kOutcomeTrapped);
  EXPECT_EQ(trap().place, function + kSystemCallBytes);
  EXPECT_EQ(trap().return_address, copy + 12);
}

// All numbers but those of the list: with arguments that would do no great harm were there no filter.
TEST_F(FilterTest, EveryOtherCallEndsTheShadow) {
  Make({{SYS_write, {~uint64_t{0}}}});
  ASSERT_EQ(outcome(), kOutcomeTrapped) << "no filter: the others are not tried";
  constexpr uint64_t kUretprobe = 335, kUprobe = 336;
  constexpr uint64_t kPlain[] = {
      SYS_sched_yield, SYS_getpid, SYS_gettid, SYS_clock_gettime, SYS_gettimeofday, SYS_time,
      SYS_getcpu, SYS_brk, SYS_sched_getaffinity, SYS_getrusage, SYS_munmap, SYS_rt_sigreturn,
      // Newer kernels ask no filter for these two; they go on only where the kernel itself has put a call.
      kUretprobe, kUprobe};
  constexpr uint64_t kX32 = 0x40000000;
  std::vector<uint64_t> numbers = {kX32 | SYS_getpid, kX32 | SYS_write, ~uint64_t{0}, 512, 547};
  for (uint64_t number = 0; number <= 470; ++number) {
    if (std::find(std::begin(kPlain), std::end(kPlain), number) == std::end(kPlain))
      numbers.push_back(number);
  }
  for (const uint64_t number : numbers) {
    Make({{number, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}}}});
    ASSERT_EQ(outcome(), kOutcomeTrapped) << number;
    ASSERT_EQ(trap().call, static_cast<uint32_t>(number));
  }
}

TEST_F(FilterTest, WhatIsPrivateToTheShadowGoesThrough) {
  uint64_t time[2] = {0, 0}, cpus[128];
  uint32_t word = 7, cpu = 0;
  const uint64_t wait = FUTEX_WAIT | FUTEX_PRIVATE_FLAG, wake = FUTEX_WAKE | FUTEX_PRIVATE_FLAG;
  const uint64_t mine = MAP_PRIVATE | MAP_ANONYMOUS, none = ~uint64_t{0};
  void* own = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Make({{SYS_getpid},
        {SYS_gettid},
        {SYS_sched_yield},
        {SYS_clock_gettime, {CLOCK_MONOTONIC, AddressOf(time)}},
        {SYS_getcpu, {AddressOf(&cpu)}},
        {SYS_sched_getaffinity, {0, sizeof(cpus), AddressOf(cpus)}},
        {SYS_brk},
        {SYS_futex, {AddressOf(&word), wait, 6}},
        {SYS_futex, {AddressOf(&word), wake, 1}},
        {SYS_mmap, {0, kPage, PROT_READ | PROT_WRITE, mine | MAP_NORESERVE, none}},
        {SYS_madvise, {AddressOf(own), kPage, MADV_DONTNEED}},
        {SYS_madvise, {AddressOf(own), kPage, MADV_FREE}},
        {SYS_munmap, {AddressOf(own), kPage}}});
  ASSERT_EQ(outcome(), kOutcomeDone) << trap().call;
  EXPECT_NE(returned(0), getpid());
  EXPECT_EQ(returned(0), returned(1));
  EXPECT_EQ(returned(2), 0);
  EXPECT_EQ(returned(3), 0);
  EXPECT_EQ(returned(4), 0);
  EXPECT_GT(returned(5), 0);
  EXPECT_GT(returned(6), 0);
  EXPECT_EQ(returned(7), -EAGAIN) << "the word was not 6";
  EXPECT_EQ(returned(8), 0);
  EXPECT_GT(returned(9), 0);
  for (uint32_t run = 10; run <= 12; ++run) EXPECT_EQ(returned(run), 0) << run;
  EXPECT_EQ(munmap(own, kPage), 0) << "it was taken from the rank";
}

// The same calls with arguments that reach beyond the shadow.
TEST_F(FilterTest, ArgumentsThatReachFurtherEndTheShadow) {
  uint32_t word = 7;
  auto* shared = static_cast<char*>(
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  strcpy(shared, "the rank's");
  const uint64_t none = ~uint64_t{0}, rw = PROT_READ | PROT_WRITE;
  const std::vector<CallToMake> calls = {
      {SYS_futex, {AddressOf(&word), FUTEX_WAKE, 1}},
      {SYS_futex, {AddressOf(&word), FUTEX_WAIT, 6}},
      {SYS_futex, {AddressOf(&word), FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG}},
      {SYS_futex, {AddressOf(&word), FUTEX_FD | FUTEX_PRIVATE_FLAG}},
      {SYS_mmap, {0, kPage, rw, MAP_SHARED | MAP_ANONYMOUS, none}},
      {SYS_mmap, {0, kPage, rw, MAP_PRIVATE, 0}},
      {SYS_mmap, {AddressOf(shared), kPage, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, none}},
      {SYS_mprotect, {AddressOf(shared), kPage, rw}},
      {SYS_mremap, {AddressOf(shared), 0, kPage, MREMAP_MAYMOVE}},
      {SYS_madvise, {AddressOf(shared), kPage, MADV_REMOVE}},
      {SYS_madvise, {AddressOf(shared), kPage, MADV_DONTFORK}},
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    Make({calls[i]});
    EXPECT_EQ(outcome(), kOutcomeTrapped) << i;
    EXPECT_EQ(trap().call, calls[i].number) << i;
    EXPECT_STREQ(shared, "the rank's");
  }
  munmap(shared, kPage);
}

// Some kernels and hypervisors have no such entry: it faults.
bool TakesCallsOf32BitCode() {
  const pid_t child = fork();
  if (child == 0) {
    int64_t result = 20;
    asm volatile("int $0x80" : "+a"(result) : : "r8", "r9", "r10", "r11", "memory");
    _exit(result == getpid() ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

// Numbers of the 32-bit table mean other calls: 20 is getpid there and writev here.
TEST_F(FilterTest, CallsOf32BitCodeKillTheShadow) {
  const bool taken = TakesCallsOf32BitCode();
  g_child_signals = 0;                                                  // of the child that tried
  Run({{injector_.Raw({0xb8, 20, 0, 0, 0, 0xcd, 0x80}), 0, 0, 0, 0}});  // mov $20,%eax; int $0x80
  if (!taken) {
    EXPECT_EQ(injector_.result(0, 0).status, uint32_t{kRunFaulted});
    return;
  }
  EXPECT_EQ(outcome(), kOutcomeDied);
  EXPECT_EQ(injector_.site(site_).last_error & 0x7f, SIGSYS);
}

}  // namespace
}  // namespace perfd::agent
