#include "core/page/page_cut.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace perfd {
namespace {

// Keeps the first `most`; the number of the others.
template <typename T>
uint64_t Cut(std::vector<T>& values, size_t most) {
  if (values.size() <= most) return 0;
  const uint64_t left_out = values.size() - most;
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(most), values.end());
  return left_out;
}

// The heaviest stay, in the order they have.
template <typename T>
uint64_t CutToHeaviest(std::vector<T>& values, size_t most) {
  if (values.size() <= most) return 0;
  std::vector<uint64_t> samples;
  for (const T& value : values) samples.push_back(value.samples);
  std::nth_element(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(most),
                   samples.end(), std::greater<>());
  const uint64_t bound = samples[most];  // the heaviest of those that go
  std::stable_partition(values.begin(), values.end(),
                        [&](const T& value) { return value.samples > bound; });
  return Cut(values, most);
}

void CutLines(std::vector<ReportRow>& rows, size_t charted, const PageLimits& limits,
              LeftOut& left_out) {
  left_out.rows += Cut(rows, limits.rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i >= charted) {
      rows[i].ranks.clear();
      rows[i].threads.clear();
    }
    left_out.lines += Cut(rows[i].ranks, limits.lines) + Cut(rows[i].threads, limits.lines);
  }
}

}  // namespace

PageReport CutForPage(Report report, const PageLimits& limits) {
  LeftOut left_out;
  CutLines(report.loops, limits.charted_rows, limits, left_out);
  CutLines(report.waiting, 0, limits, left_out);
  CutLines(report.functions, 0, limits, left_out);
  left_out.ranks = Cut(report.ranks, limits.ranks);
  left_out.stacks = CutToHeaviest(report.stacks, limits.stacks);
  left_out.notices = Cut(report.status.notices, limits.notices);
  for (LoopVerdict& loop : report.verdicts) {
    for (VariantListing& listing : loop.listings)
      left_out.instructions += Cut(listing.lines, limits.instructions);
  }
  return {std::move(report), left_out};
}

}  // namespace perfd
