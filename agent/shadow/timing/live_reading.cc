#include "agent/shadow/timing/live_reading.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

namespace perfd::agent {
namespace {

constexpr size_t kReadings = 500;
constexpr size_t kLongest = kReadings / 10;  // left out of the mean: interrupts

// Below the red zone, as in the rank.
uint64_t ReadTwice() {
  uint64_t begin = 0;
  uint32_t low = 0, high = 0;
  asm volatile(
      "lea -1024(%%rsp), %%rsp\n\t"
      "lea -128(%%rsp), %%rsp\n\t"
      "push %%rcx\n\t"
      "call 2f\n\t"
      "movq $0, -8(%%rsp)\n\t"  // EmitTrampoline, after the call
      "pop %%rcx\n\t"
      "lea 0x80(%%rsp), %%rsp\n\t"
      "jmp 3f\n\t"
      "2:\n\t"  // payload_slow_entry, its end
      "pushfq\n\t"
      "push %%rax\n\t"
      "push %%rdx\n\t"
      "lfence\n\t"
      "rdtsc\n\t"
      "lfence\n\t"
      "mov %%eax, (%[begin])\n\t"
      "mov %%edx, 4(%[begin])\n\t"
      "pop %%rdx\n\t"
      "pop %%rax\n\t"
      "popfq\n\t"
      "ret\n\t"
      "3:\n\t"  // the timed copy, of nothing
      "jmp 4f\n\t"
      "4:\n\t"  // EmitTimedExit
      "lea -128(%%rsp), %%rsp\n\t"
      "push %%rcx\n\t"
      "movabs $0x123456789abc, %%rcx\n\t"
      "call 5f\n\t"
      "jmp 6f\n\t"
      "5:\n\t"  // payload_slow_entry, its begin
      "pushfq\n\t"
      "push %%rax\n\t"
      "push %%rdx\n\t"
      "lfence\n\t"
      "rdtsc\n\t"
      "lfence\n\t"
      "lea 3 * 8(%%rsp), %%rsp\n\t"
      "ret\n\t"
      "6:\n\t"
      "lea 1024 + 128 + 8(%%rsp), %%rsp\n\t"
      : "=&a"(low), "=&d"(high)
      : [begin] "r"(&begin)
      : "rcx", "cc", "memory");
  return (uint64_t{high} << 32 | low) - begin;
}

// The mean, since clocks move in steps that may be as long as all of it.
uint64_t MeanOfRound() {
  std::array<uint64_t, kReadings> readings{};
  for (uint64_t& reading : readings) reading = ReadTwice();
  std::sort(readings.begin(), readings.end());
  const uint64_t sum = std::accumulate(readings.begin(), readings.end() - kLongest, uint64_t{0});
  return sum / (kReadings - kLongest);
}

}  // namespace

uint64_t LiveReadingTicks() {
  static std::atomic<uint64_t> least = ~uint64_t{0};
  const uint64_t now = MeanOfRound();
  uint64_t known = least;
  while (now < known && !least.compare_exchange_weak(known, now)) {
  }
  return std::min(known, now);
}

}  // namespace perfd::agent
