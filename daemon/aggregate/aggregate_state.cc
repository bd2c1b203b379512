#include "daemon/aggregate/aggregate_state.h"

#include <algorithm>
#include <tuple>

#include "daemon/aggregate/richer.h"

namespace perfd::daemon {

absl::uint128 Counts::Squares() const {
  return samples == 0 ? absl::uint128(0) : absl::uint128(cpu_ns) * cpu_ns / samples;
}

absl::uint128 Counts::WallSquares() const {
  return samples == 0 ? absl::uint128(0) : absl::uint128(wall_ns) * wall_ns / samples;
}

Counts& Counts::operator+=(const Counts& other) {
  samples += other.samples;
  weight += other.weight;
  cpu_ns += other.cpu_ns;
  wall_ns += other.wall_ns;
  return *this;
}

WallSquares& WallSquares::operator+=(const WallSquares& other) {
  yy += other.yy;
  xy += other.xy;
  ww += other.ww;
  return *this;
}

WallSums& WallSums::operator+=(const WallSums& other) {
  clusters += other.clusters;
  elapsed_ns += other.elapsed_ns;
  cpu_wait_ns += other.cpu_wait_ns;
  xx += other.xx;
  ww += other.ww;
  undivided += other.undivided;
  return *this;
}

void LocationTotals::Span(int64_t first_ns, int64_t last_ns) {
  if (first_ns == 0 && last_ns == 0) return;
  const bool known = first_unix_ns != 0 || last_unix_ns != 0;
  first_unix_ns = known ? std::min(first_unix_ns, first_ns) : first_ns;
  last_unix_ns = known ? std::max(last_unix_ns, last_ns) : last_ns;
}

double NodeTotals::MeanFrequencyHz() const {
  if (covered_ns == 0) return setup.frequency_hz;
  return static_cast<double>(frequency_span) / static_cast<double>(covered_ns) / 1000;
}

NodeTotals& NodeTotals::operator+=(const NodeTotals& other) {
  if (windows == 0 || LaterSetup(other, *this)) {
    setup = other.setup;
    last_start_unix_ns = other.last_start_unix_ns;
    last_sequence = other.last_sequence;
    last_stream_id = other.last_stream_id;
  }
  windows += other.windows;
  covered_ns += other.covered_ns;
  frequency_span += other.frequency_span;
  return *this;
}

LostDetail& LostDetail::operator+=(const LostDetail& other) {
  location_samples += other.location_samples;
  thread_samples += other.thread_samples;
  cell_samples += other.cell_samples;
  stack_samples += other.stack_samples;
  ranks += other.ranks;
  return *this;
}

JobTotals& JobTotals::operator+=(const JobTotals& other) {
  clusters += other.clusters;
  samples += other.samples;
  cpu_ns += other.cpu_ns;
  xx += other.xx;
  ww += other.ww;
  wall += other.wall;
  accounting += other.accounting;
  overhead += other.overhead;
  lost += other.lost;
  return *this;
}

absl::Status CheckState(const AggregateState& state) {
  for (const Cell& cell : state.cells) {
    if (cell.thread >= state.threads.size() || cell.location >= state.locations.size())
      return absl::DataLossError("stored aggregate: a cell is outside its dictionary");
  }
  for (const WindowCall& call : state.paths.calls) {
    if (call.location >= state.locations.size() ||
        call.loop.value_or(0) >= state.locations.size()) {
      return absl::DataLossError("stored aggregate: a call is outside its dictionary");
    }
  }
  const MemoryState& memory = state.findings.memory;
  const auto outside = [&](const auto& of) { return of.place >= state.locations.size(); };
  if (std::any_of(memory.places.begin(), memory.places.end(), outside) ||
      std::any_of(memory.references.begin(), memory.references.end(), outside) ||
      std::any_of(memory.ranks.begin(), memory.ranks.end(), outside)) {
    return absl::DataLossError("stored aggregate: accesses to memory are outside its dictionary");
  }
  for (const WindowStack& stack : state.paths.stacks) {
    for (uint32_t frame : stack.frames) {
      if (frame >= state.paths.frame_names.size())
        return absl::DataLossError("stored aggregate: a frame is outside its dictionary");
    }
  }
  return absl::OkStatus();
}

}  // namespace perfd::daemon
