// core/model/memory/sum.h - sums of foreign figures: at their end they stay there, in any order of adding.
#ifndef CORE_MODEL_MEMORY_SUM_H_
#define CORE_MODEL_MEMORY_SUM_H_

#include <limits>

namespace perfd {

// Of unsigned numbers.
template <typename T>
constexpr T Sum(T a, T b) {
  return b > std::numeric_limits<T>::max() - a ? std::numeric_limits<T>::max() : a + b;
}

}  // namespace perfd

#endif  // CORE_MODEL_MEMORY_SUM_H_
