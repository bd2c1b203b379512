#include "core/model/loop_verdict.h"

namespace perfd {

const char* BoundName(Bound bound) {
  switch (bound) {
    case Bound::kUnknown:
      return "unknown";
    case Bound::kMemory:
      return "memory bound";
    case Bound::kArithmetic:
      return "arithmetic bound";
    case Bound::kBalanced:
      return "balanced";
    case Bound::kUnsaturated:
      return "unsaturated";
    case Bound::kOverhead:
      return "overhead bound";
    case Bound::kWithinL1:
      return "not bound beyond L1";
  }
  return "unknown";
}

const char* SilenceName(Silence silence) {
  switch (silence) {
    case Silence::kNone:
      return "";
    case Silence::kLsDidNotCount:
      return "LS did not count";
    case Silence::kFpDidNotCount:
      return "FP did not count";
    case Silence::kFewRuns:
      return "too few runs";
    case Silence::kTooNoisy:
      return "too noisy";
    case Silence::kTakesNothingAway:
      return "FP takes no access away";
    case Silence::kPartlyChanged:
      return "what could not be changed may decide";
    case Silence::kFidelity:
      return "the shadow ran at another speed than the program";
    case Silence::kContradictory:
      return "the figures contradict each other";
    case Silence::kSharedLines:
      return "threads share lines, which cost another time in a shadow than live";
    case Silence::kRanksDiffer:
      return "the ranks differ";
    case Silence::kMemoryChain:
      return "passes may wait for what the one before has stored, and a variant takes that away";
  }
  return "";
}

bool IsDefinite(Bound bound) {
  return bound != Bound::kUnknown && bound != Bound::kWithinL1;
}

const char* DataLevelName(DataLevel level) {
  switch (level) {
    case DataLevel::kUnknown:
      return "unknown";
    case DataLevel::kL1:
      return "L1";
    case DataLevel::kL2:
      return "L2";
    case DataLevel::kBeyondL2:
      return "beyond L2";
  }
  return "unknown";
}

}  // namespace perfd
