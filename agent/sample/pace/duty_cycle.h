// agent/sample/pace/duty_cycle.h - in which slots of time events are on, so that they are on for a given share of it.
//
// Shape    SetShare, then Next() at the begin of every slot: on or off.
// Rules    never more than five slots off the share (what a slot gives too much, later ones give back); which slots is drawn at
//          random, so that no rhythm of the program can hide from it.
// Threads  thread-compatible.
#ifndef AGENT_SAMPLE_PACE_DUTY_CYCLE_H_
#define AGENT_SAMPLE_PACE_DUTY_CYCLE_H_

#include <cstdint>
#include <random>

namespace perfd::agent {

class DutyCycle {
 public:
  explicit DutyCycle(uint32_t seed) : random_(seed) {}

  // 0..1
  void SetShare(double share);
  double share() const { return share_; }
  bool Next();

 private:
  std::minstd_rand random_;
  double share_ = 1;
  double owed_ = 0;  // slots that should have been on, minus those that were
};

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_PACE_DUTY_CYCLE_H_
