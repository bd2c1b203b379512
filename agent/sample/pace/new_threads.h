// agent/sample/pace/new_threads.h - threads that have just begun, and how many of them are given an event.
//
// Shape    Announce as records tell of them. Begin of each drain: Learn whether those of the last one still run, then Next: who is
//          left out, and who is to be given one; Given says who was.
// Rules    a program whose threads end before they are looked at again pays for events that see next to nothing of it: the number is
//          halved. It doubles as soon as half of them stay. Never below kLeast, by which it is noticed that threads stay.
//          The last that have begun are those that may still run.
// Threads  thread-compatible.
// Source   an event with its ring takes the agent 30 to 50 us, and interrupts the CPU that its thread runs on twice.
#ifndef AGENT_SAMPLE_PACE_NEW_THREADS_H_
#define AGENT_SAMPLE_PACE_NEW_THREADS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace perfd::agent {

struct NewThread {
  int32_t pid = 0;
  int32_t tid = 0;
};

class NewThreads {
 public:
  static constexpr size_t kMost = 64;
  static constexpr size_t kLeast = 2;

  void Announce(int32_t pid, int32_t tid) { announced_.push_back({pid, tid}); }

  // runs(tid): whether one that was given an event has it still.
  template <typename Runs>
  void Learn(const Runs& runs) {
    const size_t given = given_.size();
    const auto running = static_cast<size_t>(std::count_if(given_.begin(), given_.end(), runs));
    given_.clear();
    if (given == 0) return;
    at_most_ = 2 * running < given ? std::max(at_most_ / 2, kLeast) : std::min(2 * at_most_, kMost);
  }

  struct Choice {
    std::vector<NewThread> left_out;
    std::vector<NewThread> open;
  };
  Choice Next() {
    Choice choice;
    choice.left_out = std::exchange(announced_, {});
    const size_t first = choice.left_out.size() - std::min(choice.left_out.size(), at_most_);
    choice.open.assign(choice.left_out.begin() + static_cast<ptrdiff_t>(first),
                       choice.left_out.end());
    choice.left_out.resize(first);
    return choice;
  }

  void Given(int32_t tid) { given_.push_back(tid); }

 private:
  std::vector<NewThread> announced_;
  std::vector<int32_t> given_;
  size_t at_most_ = kMost;
};

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_PACE_NEW_THREADS_H_
