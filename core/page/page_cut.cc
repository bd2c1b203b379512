#include "core/page/page_cut.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "core/analysis/stack_time.h"

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

// The heaviest call paths stay, in the order they have; by samples where no time is known.
uint64_t CutStacks(std::vector<ReportStack>& stacks, size_t most, std::vector<double>& seconds) {
  if (stacks.size() <= most) return 0;
  std::vector<size_t> heaviest(stacks.size());
  std::iota(heaviest.begin(), heaviest.end(), size_t{0});
  std::stable_sort(heaviest.begin(), heaviest.end(), [&](size_t a, size_t b) {
    return std::tie(seconds[a], stacks[a].samples) > std::tie(seconds[b], stacks[b].samples);
  });
  heaviest.resize(most);
  std::sort(heaviest.begin(), heaviest.end());
  const uint64_t left_out = stacks.size() - most;
  for (size_t kept = 0; kept < most; ++kept) {  // heaviest[kept] >= kept
    const size_t from = heaviest[kept];
    if (from == kept) continue;
    stacks[kept] = std::move(stacks[from]);
    seconds[kept] = seconds[from];
  }
  stacks.resize(most);
  seconds.resize(most);
  return left_out;
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

// As web/memory.js draws them.
void CutMemory(MemoryReport& memory, const PageLimits& limits) {
  memory.places_left_out += Cut(memory.places, limits.rows);
  for (size_t i = 0; i < memory.places.size(); ++i) {
    MemoryPlace& place = memory.places[i];
    if (i >= limits.charted_rows) {
      place.references_left_out += Cut(place.references, 0);
      place.ranks_left_out += Cut(place.ranks, 0);
    }
    place.references_left_out += Cut(place.references, limits.references);
    place.ranks_left_out += Cut(place.ranks, limits.lines);
  }
}

}  // namespace

PageReport CutForPage(Report report, const PageLimits& limits) {
  LeftOut left_out;
  std::vector<double> seconds = StackSeconds(report);
  CutLines(report.loops, limits.charted_rows, limits, left_out);
  CutLines(report.waiting, 0, limits, left_out);
  CutLines(report.functions, 0, limits, left_out);
  left_out.ranks = Cut(report.ranks, limits.ranks);
  left_out.stacks = CutStacks(report.stacks, limits.stacks, seconds);
  CutMemory(report.findings.memory, limits);
  left_out.notices = Cut(report.status.notices, limits.notices);
  for (LoopVerdict& loop : report.findings.verdicts) {
    for (VariantListing& listing : loop.listings)
      left_out.instructions += Cut(listing.lines, limits.instructions);
  }
  return {std::move(report), std::move(seconds), left_out};
}

}  // namespace perfd
