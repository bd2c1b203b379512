#include "daemon/aggregate/richer.h"

#include <tuple>

#include "absl/strings/match.h"

namespace perfd::daemon {
namespace {

int Richness(const CodeLocation& location) {
  int points = 0;
  if (location.source.first_line > 0) points += 8;
  if (location.loop.has_value() && location.loop->source.first_line > 0) points += 4;
  if (location.loop.has_value() && !location.loop->inlined_from.empty()) points += 1;
  if (!location.function.empty() && !absl::StartsWith(location.function, "sub_")) points += 2;
  return points;
}

auto Fields(const SourceRange& source) {
  return std::tie(source.file, source.first_line, source.last_line);
}

auto Fields(const LoopFacts& loop) {
  return std::tuple_cat(std::tie(loop.header, loop.parent_header, loop.depth, loop.innermost,
                                 loop.irreducible, loop.low, loop.high, loop.block_count,
                                 loop.instruction_count, loop.inlined_from, loop.further_parts),
                        Fields(loop.source));
}

auto Fields(const CodeLocation& location) {
  return std::tuple_cat(
      std::tie(location.category, location.module_id, location.module_path, location.function,
               location.function_low, location.openmp, location.loop_kind),
      Fields(location.source));
}

auto Fields(const RankInfo& rank) {
  return std::tie(rank.start_ticks, rank.node, rank.pid, rank.uid, rank.rank, rank.world_size,
                  rank.source, rank.job_id, rank.command);
}

auto Fields(const NodeTotals& node) {
  const SamplingSetup& setup = node.setup;
  return std::tie(node.last_start_unix_ns, node.last_sequence, node.last_stream_id, setup.event,
                  setup.frequency_hz, setup.kernel_included, setup.method, setup.provenance);
}

}  // namespace

bool Richer(const CodeLocation& a, const CodeLocation& b) {
  if (Richness(a) != Richness(b)) return Richness(a) > Richness(b);
  if (Fields(a) != Fields(b)) return Fields(a) > Fields(b);
  if (!a.loop.has_value() || !b.loop.has_value()) return a.loop.has_value() > b.loop.has_value();
  return Fields(*a.loop) > Fields(*b.loop);
}

bool Richer(const RankInfo& a, const RankInfo& b) {
  return Fields(a) > Fields(b);
}

bool LaterSetup(const NodeTotals& a, const NodeTotals& b) {
  return Fields(a) > Fields(b);
}

}  // namespace perfd::daemon
