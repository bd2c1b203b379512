// tests/unit/experiment/own_loop.h - ranks with a real loop in their memory: what prepares loops reads it from a process.
//
// Shape    OwnLoop: an order for loops that all lie at kOwnLoop. SleepingRank: a copy of the test that only waits.
#ifndef TESTS_UNIT_EXPERIMENT_OWN_LOOP_H_
#define TESTS_UNIT_EXPERIMENT_OWN_LOOP_H_

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/pipeline/experimenter.h"
#include "agent/procfs/procfs.h"

namespace perfd::agent {

// xor eax, eax; test rcx, rcx; 5: add rax, [rdi]; add rdi, 8; dec rcx; jne 5; ret
inline constexpr uint8_t kOwnLoop[] = {0x31, 0xc0, 0x48, 0x85, 0xc9, 0x48, 0x03, 0x07, 0x48,
                                       0x83, 0xc7, 0x08, 0x48, 0xff, 0xc9, 0x75, 0xf4, 0xc3};
inline constexpr uint64_t kOwnHeader = 5, kOwnLoopEnd = 17;
inline constexpr uint64_t kOwnBias = 0x10000;

inline uint64_t OwnAddress() {
  return reinterpret_cast<uint64_t>(kOwnLoop);
}

inline MeasureLoop OwnTarget(int number) {
  return {.loop_id = absl::StrCat("loop", number),
          .location_key = absl::StrCat("key", number),
          .module_id = "abcd",
          .module_path = "/own",
          .function_low = OwnAddress() - kOwnBias,
          .header = OwnAddress() + kOwnHeader - kOwnBias};
}

inline LoopSite OwnPlace(int number) {
  LoopSite place;
  place.target = OwnTarget(number);
  place.bias = {kOwnBias, 0};
  place.function.name = "kernel";
  place.function.low = place.target.function_low;
  place.function.high = place.function.low + sizeof(kOwnLoop);
  LoopFacts loop;
  loop.header = place.target.header;
  place.function.loops = {loop};
  place.function.spans = {{loop.header, place.function.low + kOwnLoopEnd, 0}};
  return place;
}

inline LoopSite RefusedSite(int number, std::string why) {
  LoopSite place = OwnPlace(number);
  place.refusal = std::move(why);
  return place;
}

inline RankInfo RankOf(int32_t pid, int32_t rank) {
  RankInfo info;
  info.pid = pid;
  info.rank = rank;
  const auto ticks = ProcFs().StartTicks(pid);
  info.start_ticks = ticks.ok() ? *ticks : 0;
  return info;
}

class SleepingRank {
 public:
  SleepingRank() : parent_(getpid()), pid_(fork()) {
    if (pid_ == 0) Sleep();
  }
  ~SleepingRank() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  SleepingRank(const SleepingRank&) = delete;
  SleepingRank& operator=(const SleepingRank&) = delete;
  int32_t pid() const { return pid_; }

 private:
  [[noreturn]] void Sleep() const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (getppid() == parent_) pause();
    _exit(0);
  }

  const pid_t parent_;
  const pid_t pid_;
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_EXPERIMENT_OWN_LOOP_H_
