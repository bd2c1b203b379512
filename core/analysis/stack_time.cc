#include "core/analysis/stack_time.h"

#include <cstdint>
#include <map>

namespace perfd {
namespace {

struct RankPaths {
  double seconds = 0;
  double samples = 0;  // that have a path
};

}  // namespace

double JobSeconds(const Report& report) {
  double seconds = 0;
  for (const RankSummary& rank : report.ranks) seconds += rank.seconds;
  return seconds;
}

std::vector<double> StackSeconds(const Report& report) {
  std::map<int32_t, RankPaths> ranks;
  for (const RankSummary& rank : report.ranks) ranks[rank.info.rank].seconds += rank.seconds;
  for (const ReportStack& stack : report.stacks)
    ranks[stack.rank].samples += static_cast<double>(stack.samples);
  std::vector<double> seconds;
  for (const ReportStack& stack : report.stacks) {
    const RankPaths& rank = ranks[stack.rank];
    const double weighed = static_cast<double>(stack.samples) * rank.seconds;
    seconds.push_back(rank.samples > 0 ? weighed / rank.samples : 0);
  }
  return seconds;
}

}  // namespace perfd
