#include "daemon/aggregate/aggregate_version1.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/base/status_macros.h"
#include "daemon/aggregate/row_time.h"

namespace perfd::daemon {
namespace {

constexpr double kNsOfSecond = 1e9;

// Sums that are too large to be true stay in range.
absl::uint128 Scaled(absl::uint128 sum, double factor) {
  return absl::uint128(std::min(static_cast<double>(sum) * factor, 0x1p127));
}

double MeanNs(const Counts& counts) {
  if (counts.samples == 0) return 0;
  return static_cast<double>(counts.cpu_ns) / static_cast<double>(counts.samples);
}

// By how much the CPU time of each node was told too short.
std::map<std::string, double> FactorsOfNodes(const AggregateState& state) {
  std::map<std::string, Counts> sums;
  for (const ThreadTotals& thread : state.threads) sums[thread.key.node] += thread.counts;
  std::map<std::string, double> factors;
  for (const NodeTotals& node : state.nodes) {
    const double told_ns = MeanNs(sums[node.node]);
    const double hz = node.MeanFrequencyHz();
    if (!WeighsNs(node.setup.event) || !(told_ns > 0) || !(hz > 0)) continue;
    factors[node.node] = std::max(1.0, kNsOfSecond / hz / told_ns);
  }
  return factors;
}

// As row_time.h has it for windows that do not tell their frequency.
uint64_t TimeOf(const Counts& counts, double factor) {
  if (counts.cpu_ns == 0) return counts.samples;
  return absl::Uint128Low64(std::min(Scaled(counts.cpu_ns, factor), absl::uint128(UINT64_MAX)));
}

void ConvertTimes(AggregateState& state) {
  const std::map<std::string, double> factors = FactorsOfNodes(state);
  std::vector<double> of_thread;
  for (ThreadTotals& thread : state.threads) {
    const auto found = factors.find(thread.key.node);
    of_thread.push_back(found == factors.end() ? 1 : found->second);
    thread.counts.cpu_ns = TimeOf(thread.counts, of_thread.back());
  }
  state.totals.ww = 0;
  for (LocationTotals& location : state.locations) location.ww = 0;
  for (Cell& cell : state.cells) {
    LocationTotals& location = state.locations[cell.location];
    const uint64_t after_ns = TimeOf(cell.counts, of_thread[cell.thread]);
    location.counts.cpu_ns +=
        after_ns - cell.counts.cpu_ns;  // the place holds cells that were lost
    cell.counts.cpu_ns = after_ns;
    location.ww += cell.counts.Squares();
    state.totals.ww += cell.counts.Squares();
  }
}

}  // namespace

absl::Status ConvertVersion1(AggregateState& state) {
  RETURN_IF_ERROR(CheckState(state));
  ConvertTimes(state);
  JobTotals& totals = state.totals;
  totals.cpu_ns = 0;
  for (const LocationTotals& location : state.locations) totals.cpu_ns += location.counts.cpu_ns;
  const double of_job = MeanNs({totals.samples, 0, totals.cpu_ns});
  totals.xx = Scaled(totals.xx, of_job * of_job);
  for (LocationTotals& location : state.locations) {
    const double of_place = MeanNs(location.counts);
    location.yy = Scaled(location.yy, of_place * of_place);
    location.xy = Scaled(location.xy, of_place * of_job);
  }
  return absl::OkStatus();
}

}  // namespace perfd::daemon
