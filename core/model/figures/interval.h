// core/model/figures/interval.h - from where to where a figure may be.
#ifndef CORE_MODEL_FIGURES_INTERVAL_H_
#define CORE_MODEL_FIGURES_INTERVAL_H_

namespace perfd {

struct Interval {
  double low = 0;
  double high = 0;

  bool operator==(const Interval&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_FIGURES_INTERVAL_H_
