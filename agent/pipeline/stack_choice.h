// agent/pipeline/stack_choice.h - which samples get a call path when not all can: a fair draw within each drain.
//
// Shape    Begin(now) once per drain, then Next() per candidate: where to put it, over an earlier one or at the end, or
//          nothing. Every candidate of a drain has the same chance, whichever thread and rank it comes from.
// Units    rate in paths per second; times in ns.
// Bounds   at most `per_second` on average, and half a second's worth in one drain.
// Threads  thread-compatible.
// Source   reservoir sampling, algorithm R: Vitter, ACM TOMS 11 (1985), section 2.
#ifndef AGENT_PIPELINE_STACK_CHOICE_H_
#define AGENT_PIPELINE_STACK_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>

namespace perfd::agent {

class StackChoice {
 public:
  explicit StackChoice(double per_second) : per_second_(per_second) {}

  void Begin(int64_t now_ns);
  // An index below the number chosen so far replaces that one; the number itself appends.
  std::optional<size_t> Next();

 private:
  const double per_second_;
  std::minstd_rand random_;
  bool started_ = false;
  int64_t begun_ns_ = 0;
  double credit_ = 0;      // paths that may be taken
  size_t room_ = 0;        // in this drain
  size_t candidates_ = 0;  // in this drain
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_STACK_CHOICE_H_
