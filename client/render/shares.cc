#include "client/render/shares.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace perfd::client {

std::vector<int> RoundToTenths(std::span<const double> shares) {
  std::vector<int> tenths(shares.size(), 0);
  double sum = 0;
  for (const double share : shares) sum += std::max(share, 0.0);
  if (!(sum > 0) || !std::isfinite(sum)) return tenths;
  std::vector<double> remainder(shares.size());
  int left = 1000;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double exact = std::max(shares[i], 0.0) / sum * 1000;
    tenths[i] = static_cast<int>(exact);
    remainder[i] = exact - tenths[i];
    left -= tenths[i];
  }
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return remainder[a] > remainder[b]; });
  for (size_t i = 0; i < order.size() && left > 0; ++i, --left) ++tenths[order[i]];
  return tenths;
}

}  // namespace perfd::client
