#include "daemon/report/report_stacks.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace perfd::daemon {
namespace {

bool Before(const ReportStack& a, const ReportStack& b) {
  return std::tie(b.samples, a.rank, a.frames) < std::tie(a.samples, b.rank, b.frames);
}

bool IsOther(const ReportStack& stack) {
  return stack.frames.size() == 1 && stack.frames[0] == "(other)";
}

}  // namespace

std::vector<ReportStack> HeaviestStacks(const ProfileAggregate& aggregate, size_t limit) {
  std::vector<ReportStack> all = aggregate.paths().stacks();
  std::sort(all.begin(), all.end(), Before);
  std::vector<ReportStack> kept;
  std::map<int32_t, uint64_t> other;
  for (ReportStack& stack : all) {
    if (IsOther(stack) || kept.size() >= limit) {
      other[stack.rank] += stack.samples;
    } else {
      kept.push_back(std::move(stack));
    }
  }
  for (const auto& [rank, samples] : other) kept.push_back({rank, {"(other)"}, samples});
  std::sort(kept.begin(), kept.end(), Before);
  return kept;
}

}  // namespace perfd::daemon
