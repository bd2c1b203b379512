#include "daemon/aggregate/aggregate_codec.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/parts.h"
#include "core/wire/wire.h"
#include "daemon/aggregate/aggregate_version1.h"
#include "daemon/aggregate/findings/measured_codec.h"
#include "daemon/aggregate/findings/memory_codec.h"
#include "perfd/v1/aggregate.pb.h"

namespace perfd::daemon {
namespace {

constexpr int kVersion = 3;  // 1: clusters in samples; 2: no elapsed time

using wire::CleanText;

bool HasWall(const v1::Aggregate& from) {
  return from.version() >= 3;
}

void Fill(const Counts& counts, v1::AggregateCounts& out) {
  out.set_samples(counts.samples);
  out.set_weight(counts.weight);
  out.set_cpu_ns(counts.cpu_ns);
  out.set_wall_ns(counts.wall_ns);
}

Counts Read(const v1::AggregateCounts& counts) {
  return {counts.samples(), counts.weight(), counts.cpu_ns(), counts.wall_ns()};
}

void Fill(absl::uint128 value, v1::AggregateWide& out) {
  out.set_high(absl::Uint128High64(value));
  out.set_low(absl::Uint128Low64(value));
}

absl::uint128 Read(const v1::AggregateWide& wide) {
  return absl::MakeUint128(wide.high(), wide.low());
}

void FillSites(const AggregateState& state, v1::Aggregate& out) {
  for (const LocationTotals& location : state.locations) {
    v1::AggregateLocation* to = out.add_locations();
    *to->mutable_location() = wire::ToProto(location.location);
    Fill(location.counts, *to->mutable_counts());
    Fill(location.yy, *to->mutable_yy());
    Fill(location.xy, *to->mutable_xy());
    Fill(location.ww, *to->mutable_ww());
    Fill(location.wall.yy, *to->mutable_wall_yy());
    Fill(location.wall.xy, *to->mutable_wall_xy());
    Fill(location.wall.ww, *to->mutable_wall_ww());
    to->set_first_unix_ns(location.first_unix_ns);
    to->set_last_unix_ns(location.last_unix_ns);
  }
}

absl::Status ReadLocations(const v1::Aggregate& from, AggregateState& state) {
  for (const v1::AggregateLocation& totals : from.locations()) {
    ASSIGN_OR_RETURN(CodeLocation location, wire::FromProto(totals.location()));
    if (totals.first_unix_ns() > totals.last_unix_ns())
      return absl::DataLossError("location: seen first after it was seen last");
    state.locations.push_back(
        {std::move(location),
         Read(totals.counts()),
         Read(totals.yy()),
         Read(totals.xy()),
         Read(totals.ww()),
         totals.first_unix_ns(),
         totals.last_unix_ns(),
         {Read(totals.wall_yy()), Read(totals.wall_xy()), Read(totals.wall_ww())}});
  }
  return absl::OkStatus();
}

void FillThreads(const AggregateState& state, v1::Aggregate& out) {
  for (const ThreadTotals& thread : state.threads) {
    v1::AggregateThread* to = out.add_threads();
    to->set_node(CleanText(thread.key.node));
    to->set_rank(thread.key.rank);
    to->set_pid(thread.key.pid);
    to->set_tid(thread.key.tid);
    Fill(thread.counts, *to->mutable_counts());
  }
  v1::AggregateCells& cells = *out.mutable_cells();
  for (const Cell& cell : state.cells) {
    cells.add_thread(cell.thread);
    cells.add_location(cell.location);
    cells.add_samples(cell.counts.samples);
    cells.add_weight(cell.counts.weight);
    cells.add_cpu_ns(cell.counts.cpu_ns);
    cells.add_wall_ns(cell.counts.wall_ns);
  }
}

absl::Status ReadThreads(const v1::Aggregate& from, AggregateState& state) {
  for (const v1::AggregateThread& thread : from.threads()) {
    state.threads.push_back(
        {{thread.node(), thread.rank(), thread.pid(), thread.tid()}, Read(thread.counts())});
  }
  const v1::AggregateCells& cells = from.cells();
  const int count = cells.thread_size();
  if (cells.location_size() != count || cells.samples_size() != count ||
      cells.weight_size() != count || cells.cpu_ns_size() != count ||
      (HasWall(from) && cells.wall_ns_size() != count)) {
    return absl::DataLossError("cells: columns of different length");
  }
  for (int i = 0; i < count; ++i) {
    state.cells.push_back({cells.thread(i),
                           cells.location(i),
                           {cells.samples(i), cells.weight(i), cells.cpu_ns(i),
                            HasWall(from) ? cells.wall_ns(i) : 0}});
  }
  return absl::OkStatus();
}

void FillNodes(const AggregateState& state, v1::Aggregate& out) {
  for (const RankTotals& rank : state.ranks) {
    *out.add_ranks() = wire::ToProto(rank.info);
    v1::AggregateRankTime* time = out.add_rank_times();
    time->set_elapsed_ns(rank.elapsed_ns);
    time->set_cpu_wait_ns(rank.cpu_wait_ns);
  }
  for (const NodeTotals& node : state.nodes) {
    v1::AggregateNode* to = out.add_nodes();
    to->set_node(CleanText(node.node));
    to->set_windows(node.windows);
    to->set_covered_ns(node.covered_ns);
    Fill(node.frequency_span, *to->mutable_frequency_span());
    *to->mutable_setup() = wire::ToProto(node.setup);
    to->set_last_start_unix_ns(node.last_start_unix_ns);
    to->set_last_sequence(node.last_sequence);
    to->set_last_stream_id(CleanText(node.last_stream_id));
  }
}

absl::Status ReadNodes(const v1::Aggregate& from, AggregateState& state) {
  if (HasWall(from) && from.rank_times_size() != from.ranks_size())
    return absl::DataLossError("ranks and their times of different number");
  for (int i = 0; i < from.ranks_size(); ++i) {
    RankTotals rank;
    ASSIGN_OR_RETURN(rank.info, wire::FromProto(from.ranks(i)));
    if (HasWall(from)) {
      rank.elapsed_ns = from.rank_times(i).elapsed_ns();
      rank.cpu_wait_ns = from.rank_times(i).cpu_wait_ns();
    }
    state.ranks.push_back(std::move(rank));
  }
  for (const v1::AggregateNode& node : from.nodes()) {
    ASSIGN_OR_RETURN(SamplingSetup setup, wire::FromProto(node.setup()));
    state.nodes.push_back({node.node(), node.windows(), node.covered_ns(),
                           Read(node.frequency_span()), std::move(setup), node.last_start_unix_ns(),
                           node.last_sequence(), node.last_stream_id()});
  }
  return absl::OkStatus();
}

void FillPaths(const AggregateState& state, v1::Aggregate& out) {
  for (const std::string& name : state.paths.frame_names) out.add_frame_names(CleanText(name));
  for (const WindowStack& stack : state.paths.stacks) {
    v1::WindowStack* to = out.add_stacks();
    to->set_rank(stack.rank);
    to->mutable_frames()->Add(stack.frames.begin(), stack.frames.end());
    to->set_samples(stack.samples);
  }
  for (const OtherStacks& other : state.paths.other_stacks) {
    v1::AggregateOtherStacks* to = out.add_other_stacks();
    to->set_rank(other.rank);
    to->set_samples(other.samples);
  }
  if (!state.paths.calls.empty()) *out.mutable_calls() = wire::ToProto(state.paths.calls);
}

absl::Status ReadPaths(const v1::Aggregate& from, AggregateState& state) {
  state.paths.frame_names.assign(from.frame_names().begin(), from.frame_names().end());
  for (const v1::WindowStack& stack : from.stacks()) {
    state.paths.stacks.push_back(
        {stack.rank(), {stack.frames().begin(), stack.frames().end()}, stack.samples()});
  }
  for (const v1::AggregateOtherStacks& other : from.other_stacks())
    state.paths.other_stacks.push_back({other.rank(), other.samples()});
  ASSIGN_OR_RETURN(state.paths.calls, wire::FromProto(from.calls(), state.locations.size()));
  return absl::OkStatus();
}

void Fill(const WallSums& wall, v1::AggregateWall& out) {
  out.set_clusters(wall.clusters);
  out.set_elapsed_ns(wall.elapsed_ns);
  out.set_cpu_wait_ns(wall.cpu_wait_ns);
  Fill(wall.xx, *out.mutable_xx());
  Fill(wall.ww, *out.mutable_ww());
  out.set_undivided(wall.undivided);
}

WallSums ReadWall(const v1::Aggregate& from) {
  // Before, nobody divided elapsed time.
  if (!HasWall(from)) return {.undivided = from.clusters()};
  const v1::AggregateWall& wall = from.wall();
  return {wall.clusters(), wall.elapsed_ns(), wall.cpu_wait_ns(),
          Read(wall.xx()), Read(wall.ww()),   wall.undivided()};
}

void FillTotals(const JobTotals& totals, v1::Aggregate& out) {
  out.set_clusters(totals.clusters);
  out.set_x(totals.samples);
  out.set_cpu_ns(totals.cpu_ns);
  Fill(totals.xx, *out.mutable_xx());
  Fill(totals.ww, *out.mutable_ww());
  Fill(totals.wall, *out.mutable_wall());
  *out.mutable_accounting() = wire::ToProto(totals.accounting);
  *out.mutable_overhead() = wire::ToProto(totals.overhead);
  v1::AggregateLost& lost = *out.mutable_lost();
  lost.set_location_samples(totals.lost.location_samples);
  lost.set_thread_samples(totals.lost.thread_samples);
  lost.set_cell_samples(totals.lost.cell_samples);
  lost.set_stack_samples(totals.lost.stack_samples);
  lost.set_ranks(totals.lost.ranks);
}

absl::Status ReadTotals(const v1::Aggregate& from, JobTotals& totals) {
  totals.clusters = from.clusters();
  totals.samples = from.x();
  totals.cpu_ns = from.cpu_ns();
  totals.xx = Read(from.xx());
  totals.ww = Read(from.ww());
  totals.wall = ReadWall(from);
  ASSIGN_OR_RETURN(totals.accounting, wire::FromProto(from.accounting()));
  ASSIGN_OR_RETURN(totals.overhead, wire::FromProto(from.overhead()));
  const v1::AggregateLost& lost = from.lost();
  totals.lost = {lost.location_samples(), lost.thread_samples(), lost.cell_samples(),
                 lost.stack_samples(), lost.ranks()};
  return absl::OkStatus();
}

absl::StatusOr<AggregateState> ReadState(const v1::Aggregate& from) {
  AggregateState state;
  RETURN_IF_ERROR(ReadLocations(from, state));
  RETURN_IF_ERROR(ReadThreads(from, state));
  RETURN_IF_ERROR(ReadNodes(from, state));
  RETURN_IF_ERROR(ReadPaths(from, state));
  RETURN_IF_ERROR(ReadTotals(from, state.totals));
  ASSIGN_OR_RETURN(state.findings.measured, FromProto(from.measured()));
  ASSIGN_OR_RETURN(state.findings.memory, FromProto(from.memory(), state.locations.size()));
  if (from.version() == 1) RETURN_IF_ERROR(ConvertVersion1(state));
  return state;
}

}  // namespace

std::string SerializeAggregate(const ProfileAggregate& aggregate) {
  const AggregateState state = aggregate.State();
  v1::Aggregate out;
  out.set_version(kVersion);
  FillSites(state, out);
  FillThreads(state, out);
  FillNodes(state, out);
  FillPaths(state, out);
  FillTotals(state.totals, out);
  *out.mutable_measured() = ToProto(state.findings.measured);
  if (!aggregate.findings().memory().empty())
    *out.mutable_memory() = ToProto(state.findings.memory);
  return out.SerializeAsString();
}

absl::StatusOr<ProfileAggregate> ParseAggregate(absl::string_view bytes, AggregateLimits limits) {
  v1::Aggregate from;
  if (bytes.size() > INT32_MAX ||
      !from.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError("stored aggregate: not a message");
  }
  if (from.version() < 1 || from.version() > kVersion)
    return absl::DataLossError(absl::StrCat("stored aggregate: version ", from.version()));
  absl::StatusOr<AggregateState> state = ReadState(from);
  if (!state.ok()) {
    return absl::DataLossError(absl::StrCat("stored aggregate: ", state.status().message()));
  }
  return ProfileAggregate::FromState(*state, limits);
}

}  // namespace perfd::daemon
