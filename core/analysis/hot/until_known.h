// core/analysis/hot/until_known.h - when a profile that lasts until it knows may end, and about when it will.
//
// Shape    told what is known of each loop that is measured now, again and again; says how far the profile is, whether it ends, and why.
// Units    ns of any steady clock, never 0; ratios 0..1.
// Threads  thread-compatible.
// Source   our choice. Twenty seconds of one set of loops show a phase of the program, not its start; with a budget of 2 % the dearest
//          shadow (budget.shadow, 0.5 s) comes every 25 s, so that several may fail before nothing more is expected.
#ifndef CORE_ANALYSIS_HOT_UNTIL_KNOWN_H_
#define CORE_ANALYSIS_HOT_UNTIL_KNOWN_H_

#include <cstdint>
#include <span>

#include "core/model/profile.h"

namespace perfd {

// What all ranks together have told of one loop.
struct LoopLearning {
  bool settled = false;   // measured or refused wherever it was asked for
  double open_ratio = 1;  // of its variants, those that some rank still lacks
  uint64_t learnt = 0;    // grows whenever something was learnt

  bool operator==(const LoopLearning&) const = default;
};

// What samples alone have told of the hot loops.
struct ShareKnowledge {
  int32_t hot = 0;
  double widest = 0;  // half of the widest interval of a share; below 0: one has none
  uint64_t samples = 0;
};

struct UntilKnownLimits {
  int64_t least_ns = 20'000'000'000;  // no profile is shorter
  int64_t same_ns = 20'000'000'000;   // so long the same loops were the hot ones
  int64_t silent_ns =
      120'000'000'000;        // so long nothing was learnt: then nothing more is waited for
  double share_reach = 0.03;  // of a share that is known: half of its interval
};

// A dear shadow may come so seldom that three of them take longer.
UntilKnownLimits LimitsFor(const BudgetSpec& budget);

class UntilKnown {
 public:
  explicit UntilKnown(const UntilKnownLimits& limits = {}) : limits_(limits) {}

  // Measuring began; later calls change nothing.
  void Begin(int64_t now_ns);
  // A node has come, or is back: what it knows was not told yet. Nothing before Begin.
  void Restart(int64_t now_ns);
  // Loops are measured for the first time, or others than before.
  void ChangeLoops(int64_t now_ns);
  // `most_left_ns`: until the profile ends whatever is known.
  void Know(std::span<const LoopLearning> hot, int64_t most_left_ns, int64_t now_ns);
  void KnowShares(const ShareKnowledge& shares, int64_t most_left_ns, int64_t now_ns);

  // kNone: it goes on.
  EndReason End(int64_t now_ns) const;
  const LoopProgress& progress() const { return progress_; }
  // Of the time until the end, as far as it can be told; 0: it cannot.
  double DoneRatio(int64_t now_ns) const;

 private:
  int64_t LeastLeft(int64_t now_ns) const;
  void Estimate(int64_t since_ns, int64_t most_left_ns, int64_t now_ns);
  void Learn(uint64_t learnt, int64_t now_ns);

  UntilKnownLimits limits_;
  int64_t begun_ns_ = 0;   // 0: not yet
  int64_t same_ns_ = 0;    // since then the loops are the same
  int64_t loops_ns_ = 0;   // since then loops are measured; 0: none was chosen
  int64_t learnt_ns_ = 0;  // something was learnt
  uint64_t learnt_ = 0;
  LoopProgress progress_;
};

}  // namespace perfd

#endif  // CORE_ANALYSIS_HOT_UNTIL_KNOWN_H_
