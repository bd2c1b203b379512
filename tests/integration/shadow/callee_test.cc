// Functions of the program that a copy calls in a shadow: what works, and what ends the shadow. Whatever they do, nothing
// outside the shadow changes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "tests/integration/shadow/payload_fixture.h"
#include "tests/integration/shadow/system_call_code.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kDone = 4711;

// A pipe and a shared page of the rank, which no callee may change.
class CalleeTest : public PayloadTest {
 protected:
  CalleeTest() : values_(Ramp(10)), site_(injector_.Install(kSum)) {}

  void SetUp() override {
    ASSERT_EQ(pipe2(pipe_, O_NONBLOCK), 0);
    shared_ = static_cast<char*>(
        mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    strcpy(shared_, kWritten);
    PayloadTest::SetUp();
  }
  void TearDown() override {
    PayloadTest::TearDown();
    char text[64];
    EXPECT_EQ(read(pipe_[0], text, sizeof(text)), -1) << "a shadow wrote into the pipe";
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_STREQ(shared_, kWritten);
    close(pipe_[0]);
    close(pipe_[1]);
    munmap(shared_, kPage);
  }

  // In a shadow whose protection an agent would have arranged. The outcome.
  uint32_t Call(Callee callee, uint64_t argument = 0) {
    const std::vector<uint8_t> code = FunctionCall(callee, argument);
    ShadowPlan& plan = injector_.Plan(site_, 1, {{injector_.Raw(code), 0, 0, 0, 0}});
    plan.shadow_ns = 3'000'000'000;
    plan.memory.mapped_bytes = mapped_bytes_;
    plan.protect_count = 1;
    plan.protects[0] = {AddressOf(shared_), kPage, PROT_READ, 0};
    injector_.Arm(site_);
    EXPECT_EQ(loop_sum(values_.data(), 10), 55.0);
    return injector_.site(site_).last_outcome;
  }
  uint64_t returned() { return injector_.result(0, 0).iterations; }
  const TrapRecord& trap() { return injector_.child().trap; }
  uint64_t shared() const { return AddressOf(shared_); }
  uint64_t pipe() const { return static_cast<uint64_t>(pipe_[1]); }

  static constexpr const char* kWritten = "the rank's";
  SelfHosted injector_;
  std::vector<double> values_;
  uint32_t site_;
  uint64_t mapped_bytes_ = 0;
  int pipe_[2] = {-1, -1};
  char* shared_ = nullptr;
};

#define EXPECT_TRAPPED(outcome, number)                    \
  do {                                                     \
    EXPECT_EQ(outcome, kOutcomeTrapped);                   \
    EXPECT_EQ(trap().call, static_cast<uint32_t>(number)); \
  } while (0)

uint64_t Bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}

uint64_t Mathematics(uint64_t n) {
  double sum = 0, sine = 0, cosine = 0;
  for (uint64_t i = 1; i <= n; ++i) {
    const auto x = static_cast<double>(i);
    sincos(x, &sine, &cosine);
    sum += std::log(x) + std::exp(-x * 1e-4) + std::cbrt(x) + std::pow(x, 1.1) + sine + cosine;
  }
  return Bits(sum);
}

TEST_F(CalleeTest, TheMathLibraryTellsWhatItTells) {
  ASSERT_EQ(Call(Mathematics, 2000), kOutcomeDone);
  EXPECT_EQ(returned(), Mathematics(2000));
}

uint64_t Allocate(uint64_t bytes) {
  std::vector<std::unique_ptr<char[]>> pieces;
  for (int i = 0; i < 400; ++i) {
    pieces.push_back(std::make_unique<char[]>(bytes));
    pieces.back()[bytes - 1] = 1;
  }
  return kDone;
}

uint64_t Reallocate(uint64_t bytes) {
  char* block = static_cast<char*>(malloc(bytes));
  strcpy(block, "moved");
  for (uint64_t i = 2; i < 20 && block != nullptr; ++i)
    block = static_cast<char*>(realloc(block, bytes * i));
  const bool right = block != nullptr && strcmp(block, "moved") == 0;
  free(block);
  return right ? kDone : 0;
}

TEST_F(CalleeTest, MemoryIsTakenAndGivenBack) {
  for (const uint64_t bytes : {100, 5000, 200'000}) {
    EXPECT_EQ(Call(Allocate, bytes), kOutcomeDone) << bytes << ": " << trap().call;
    EXPECT_EQ(returned(), kDone);
  }
  EXPECT_EQ(Call(Reallocate, 300'000), kOutcomeDone) << trap().call;
  EXPECT_EQ(returned(), kDone);
}

// A thread's own arena grows by mprotect and looks for overcommit when it gets smaller.
TEST_F(CalleeTest, ArenasOfThreadsGrowAndShrink) {
  std::thread([this] {
    std::make_unique<char[]>(100)[0] = 1;  // the arena is there
    EXPECT_EQ(Call(Allocate, 20'000), kOutcomeDone) << trap().call;
    EXPECT_EQ(returned(), kDone);
  }).join();
}

uint64_t VmBytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * kPage;
}

uint64_t AllocateForEver(uint64_t) {
  uint64_t taken = 0;
  while (char* block = static_cast<char*>(malloc(1 << 20))) {
    block[0] = 1;
    ++taken;
  }
  return taken;
}

TEST_F(CalleeTest, WhoTakesMemoryWithoutEndIsToldThatThereIsNoMore) {
  rlimit before{}, after{};
  getrlimit(RLIMIT_AS, &before);
  mapped_bytes_ = VmBytes();
  EXPECT_EQ(Call(AllocateForEver), kOutcomeDone);
  EXPECT_GT(returned(), 30u);
  // What the rank has reserved without using it counts as there.
  EXPECT_LE(returned(), 4 * kShadowRoomBytes >> 20);
  getrlimit(RLIMIT_AS, &after);
  EXPECT_EQ(before.rlim_cur, after.rlim_cur);
  EXPECT_EQ(before.rlim_max, after.rlim_max);
}

uint64_t ThrowAndCatch(uint64_t n) {
  uint64_t caught = 0;
  for (uint64_t i = 0; i < n; ++i) {
    try {
      if (i % 2 == 1) throw std::runtime_error(std::to_string(i));
    } catch (const std::exception& error) {
      caught += strlen(error.what()) > 0 ? 1 : 0;
    }
  }
  return caught;
}

TEST_F(CalleeTest, ExceptionsMayBeThrownAndCaughtInside) {
  EXPECT_EQ(Call(ThrowAndCatch, 100), kOutcomeDone) << trap().call;
  EXPECT_EQ(returned(), 50u);
}

uint64_t Throw(uint64_t) {
  throw std::runtime_error("through the loop");
}

// No unwinder knows the copy; the program would end, and tells so first.
TEST_F(CalleeTest, AnExceptionThroughTheLoopEndsTheShadow) {
  EXPECT_EQ(Call(Throw), kOutcomeTrapped);
}

uint64_t Write(uint64_t descriptor) {
  return static_cast<uint64_t>(write(static_cast<int>(descriptor), "seen", 4));
}
uint64_t Print(uint64_t) {
  return static_cast<uint64_t>(fprintf(stderr, "THIS IS NOT TO BE SEEN\n"));
}
uint64_t Open(uint64_t) {
  return static_cast<uint64_t>(open("/proc/self/status", O_RDONLY));
}
uint64_t Create(uint64_t path) {
  return static_cast<uint64_t>(open(reinterpret_cast<const char*>(path), O_CREAT | O_WRONLY, 0600));
}
uint64_t Close(uint64_t descriptor) {
  return static_cast<uint64_t>(close(static_cast<int>(descriptor)));
}
uint64_t Sleep(uint64_t) {
  return static_cast<uint64_t>(usleep(100));
}
uint64_t KillTheRank(uint64_t pid) {
  return static_cast<uint64_t>(kill(static_cast<pid_t>(pid), SIGKILL));
}

TEST_F(CalleeTest, FilesTimeAndSignalsAreOutOfReach) {
  EXPECT_TRAPPED(Call(Write, pipe()), SYS_write);
  EXPECT_EQ(trap().argument, pipe());
  EXPECT_TRAPPED(Call(Print), SYS_write);
  EXPECT_TRAPPED(Call(Open), SYS_openat);
  const std::string path = testing::TempDir() + "/made_in_a_shadow";
  EXPECT_TRAPPED(Call(Create, AddressOf(path.c_str())), SYS_openat);
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  EXPECT_TRAPPED(Call(Close, pipe()), SYS_close);
  EXPECT_NE(fcntl(pipe_[1], F_GETFD), -1);
  EXPECT_TRAPPED(Call(Sleep), SYS_clock_nanosleep);
  EXPECT_TRAPPED(Call(KillTheRank, static_cast<uint64_t>(getpid())), SYS_kill);
}

uint64_t Fork(uint64_t) {
  return static_cast<uint64_t>(fork());
}
uint64_t Begin(uint64_t) {
  std::thread([] {}).join();
  return 0;
}
uint64_t Abort(uint64_t) {
  abort();
}
uint64_t Exit(uint64_t) {
  exit(3);
}
uint64_t EndThread(uint64_t) {
  pthread_exit(nullptr);
}

TEST_F(CalleeTest, NothingBeginsAndNothingElseEnds) {
  EXPECT_EQ(Call(Fork), kOutcomeTrapped);
  EXPECT_EQ(Call(Begin), kOutcomeTrapped);
  EXPECT_EQ(Call(Abort), kOutcomeTrapped);
  EXPECT_EQ(Call(Exit), kOutcomeTrapped);
  EXPECT_EQ(Call(EndThread), kOutcomeTrapped);
}

uint64_t WriteShared(uint64_t page) {
  *reinterpret_cast<volatile char*>(page) = 'x';
  return kDone;
}
uint64_t UnprotectShared(uint64_t page) {
  mprotect(reinterpret_cast<void*>(page), kPage, PROT_READ | PROT_WRITE);
  return WriteShared(page);
}
uint64_t MoveShared(uint64_t page) {
  void* moved = mremap(reinterpret_cast<void*>(page), kPage, 2 * kPage, MREMAP_MAYMOVE);
  return UnprotectShared(reinterpret_cast<uint64_t>(moved));
}
uint64_t RemoveShared(uint64_t page) {
  return static_cast<uint64_t>(madvise(reinterpret_cast<void*>(page), kPage, MADV_REMOVE));
}
uint64_t Unmap(uint64_t page) {
  munmap(reinterpret_cast<void*>(page), kPage);
  return WriteShared(page);
}

TEST_F(CalleeTest, SharedMemoryStaysTheRanks) {
  EXPECT_EQ(Call(WriteShared, shared()), kOutcomeDone);
  EXPECT_EQ(injector_.result(0, 0).status, uint32_t{kRunFaulted});
  EXPECT_TRAPPED(Call(UnprotectShared, shared()), SYS_mprotect);
  EXPECT_TRAPPED(Call(MoveShared, shared()), SYS_mremap);
  EXPECT_TRAPPED(Call(RemoveShared, shared()), SYS_madvise);
  EXPECT_EQ(Call(Unmap, shared()), kOutcomeDone) << "its own view of it, no more";
  EXPECT_EQ(injector_.result(0, 0).status, uint32_t{kRunFaulted});
}

// The memory that tells how a shadow ends is gone.
TEST_F(CalleeTest, AShadowThatTakesTheGroundFromUnderItselfIsNoticed) {
  EXPECT_EQ(Call(Unmap, AddressOf(&injector_.region())), kOutcomeDied);
  EXPECT_EQ(injector_.region().magic, kShadowMagic);
}

uint64_t UnprotectPrivate(uint64_t) {
  void* page = mmap(nullptr, 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mprotect(page, kPage, PROT_READ | PROT_WRITE) != 0) return 0;
  return WriteShared(reinterpret_cast<uint64_t>(page));
}

TEST_F(CalleeTest, MemoryOfItsOwnMayBeProtectedAnew) {
  EXPECT_EQ(Call(UnprotectPrivate), kOutcomeDone) << trap().call;
  EXPECT_EQ(returned(), kDone);
}

jmp_buf g_outside;
uint64_t JumpOut(uint64_t) {
  longjmp(g_outside, 1);
}

// The thread goes on in the program's code, in the shadow, until that asks for something.
TEST_F(CalleeTest, WhoJumpsOutOfTheLoopIsStoppedAtItsFirstCall) {
  volatile int left = 0;
  if (setjmp(g_outside) != 0) {
    left = 1;
    Write(pipe());
    for (;;) left = left + 1;
  }
  EXPECT_TRAPPED(Call(JumpOut), SYS_write);
  EXPECT_EQ(left, 0);
}

uint64_t Recurse(uint64_t depth) {
  if (depth == 0) return 0;
  volatile char page[4096];
  page[0] = static_cast<char>(depth);
  return Recurse(depth + 1) + static_cast<uint64_t>(page[0]);
}
uint64_t Endless(uint64_t) {
  for (;;) asm volatile("");
}

TEST_F(CalleeTest, EndlessCalleesEnd) {
  EXPECT_EQ(Call(Recurse, 1), kOutcomeDone);
  EXPECT_EQ(injector_.result(0, 0).status, uint32_t{kRunFaulted});
  EXPECT_EQ(injector_.child().fault.signal, uint32_t{SIGSEGV});
  EXPECT_EQ(Call(Endless), kOutcomeWatchdog);
}

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t Lock(uint64_t) {
  pthread_mutex_lock(&g_lock);
  pthread_mutex_unlock(&g_lock);
  return kDone;
}

TEST_F(CalleeTest, ALockThatNobodyHoldsIsTaken) {
  EXPECT_EQ(Call(Lock), kOutcomeDone);
  EXPECT_EQ(returned(), kDone);
}

TEST_F(CalleeTest, ALockOfAnotherThreadEndsTheShadowSoon) {
  std::atomic<int> step = 0;
  std::thread holder([&step] {
    pthread_mutex_lock(&g_lock);
    step = 1;
    while (step != 2) usleep(1000);
    pthread_mutex_unlock(&g_lock);
  });
  while (step != 1) usleep(1000);
  EXPECT_EQ(Call(Lock), kOutcomeLocked) << "not by the shadow's own timer";
  EXPECT_EQ(trap().call, uint32_t{SYS_futex});
  EXPECT_EQ(trap().argument, AddressOf(&g_lock));
  step = 2;
  holder.join();
  EXPECT_EQ(pthread_mutex_trylock(&g_lock), 0) << "the rank's own lock is as it was";
  pthread_mutex_unlock(&g_lock);
}

// glibc compares owners with the number that the thread had in the rank.
uint64_t LockAgain(uint64_t lock) {
  auto* mutex = reinterpret_cast<pthread_mutex_t*>(lock);
  const int error = pthread_mutex_lock(mutex) | pthread_mutex_unlock(mutex);
  return error == 0 ? kDone : static_cast<uint64_t>(error);
}

TEST_F(CalleeTest, ARecursiveLockOfItsOwnMayBeTakenAgain) {
  std::recursive_mutex lock;
  const std::lock_guard<std::recursive_mutex> held(lock);
  EXPECT_EQ(Call(LockAgain, AddressOf(lock.native_handle())), kOutcomeDone);
  EXPECT_EQ(returned(), kDone);
}

}  // namespace
}  // namespace perfd::agent
