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
  }
  return "unknown";
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
