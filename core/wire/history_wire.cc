// The history of a program.
#include "core/wire/history_wire.h"

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"

namespace perfd::wire {
namespace {

constexpr int kMaxProfiles = 1000;
constexpr double kMaxCycles = 1e18;

void Fill(const HistoryLoop& loop, v1::HistoryLoop& out) {
  out.set_id(CleanText(loop.id));
  out.set_function(CleanText(loop.function));
  out.set_file(CleanText(loop.file));
  out.set_first_line(loop.first_line);
  out.set_last_line(loop.last_line);
  out.set_module(CleanText(loop.module));
  out.set_depth(loop.depth);
  out.set_share(loop.cpu.share);
  out.mutable_share_interval()->set_low(loop.cpu.interval.low);
  out.mutable_share_interval()->set_high(loop.cpu.interval.high);
  if (loop.wall.has_value()) {
    out.mutable_wall()->set_share(loop.wall->share);
    out.mutable_wall()->mutable_interval()->set_low(loop.wall->interval.low);
    out.mutable_wall()->mutable_interval()->set_high(loop.wall->interval.high);
  }
  out.set_cycles(loop.cycles);
  out.set_cycles_min(loop.cycles_min);
  out.set_iterations(loop.iterations);
  out.set_bound(WireEnum<v1::Bound>(loop.bound));
  out.set_sure(loop.sure);
  out.set_gain(loop.gain.value);
  out.set_gain_ranks(loop.gain.ranks.measured);
  out.set_gain_ranks_asked(loop.gain.ranks.asked);
}

absl::Status CheckLoop(const v1::HistoryLoop& loop) {
  RETURN_IF_ERROR(CheckText(loop.id(), "history.loops.id"));
  RETURN_IF_ERROR(CheckText(loop.function(), "history.loops.function"));
  RETURN_IF_ERROR(CheckText(loop.file(), "history.loops.file"));
  RETURN_IF_ERROR(CheckText(loop.module(), "history.loops.module"));
  RETURN_IF_ERROR(CheckRange(loop.first_line(), 0, INT32_MAX, "history.loops.first_line"));
  RETURN_IF_ERROR(CheckRange(loop.last_line(), 0, INT32_MAX, "history.loops.last_line"));
  RETURN_IF_ERROR(CheckRange(loop.depth(), 0, INT32_MAX, "history.loops.depth"));
  RETURN_IF_ERROR(CheckRatio(loop.share(), "history.loops.share"));
  RETURN_IF_ERROR(CheckRatio(loop.share_interval().low(), "history.loops.share_interval"));
  RETURN_IF_ERROR(CheckRatio(loop.share_interval().high(), "history.loops.share_interval"));
  RETURN_IF_ERROR(CheckRatio(loop.wall().share(), "history.loops.wall"));
  RETURN_IF_ERROR(CheckRatio(loop.wall().interval().low(), "history.loops.wall.interval"));
  RETURN_IF_ERROR(CheckRatio(loop.wall().interval().high(), "history.loops.wall.interval"));
  RETURN_IF_ERROR(CheckNumber(loop.cycles(), 0, kMaxCycles, "history.loops.cycles"));
  RETURN_IF_ERROR(CheckNumber(loop.cycles_min(), 0, kMaxCycles, "history.loops.cycles_min"));
  RETURN_IF_ERROR(CheckNumber(loop.iterations(), 0, kMaxCycles, "history.loops.iterations"));
  return CheckNumber(loop.gain(), -kMaxCycles, 1, "history.loops.gain");
}

absl::StatusOr<HistoryLoop> LoopFrom(const v1::HistoryLoop& loop) {
  RETURN_IF_ERROR(CheckLoop(loop));
  HistoryLoop out;
  out.id = loop.id();
  out.function = loop.function();
  out.file = loop.file();
  out.first_line = loop.first_line();
  out.last_line = loop.last_line();
  out.module = loop.module();
  out.depth = loop.depth();
  out.cpu = {loop.share(), {loop.share_interval().low(), loop.share_interval().high()}};
  if (loop.has_wall())
    out.wall = {loop.wall().share(), {loop.wall().interval().low(), loop.wall().interval().high()}};
  out.cycles = loop.cycles();
  out.cycles_min = loop.cycles_min();
  out.iterations = loop.iterations();
  ASSIGN_OR_RETURN(out.bound, ModelEnum(loop.bound(), Bound::kWithinL1, "history.loops.bound"));
  out.sure = loop.sure();
  out.gain = {loop.gain(), {loop.gain_ranks(), loop.gain_ranks_asked()}};
  return out;
}

absl::StatusOr<HistoryProfile> ProfileFrom(const v1::HistoryProfile& profile) {
  RETURN_IF_ERROR(CheckText(profile.id(), "history.id"));
  RETURN_IF_ERROR(CheckText(profile.command(), "history.command"));
  RETURN_IF_ERROR(CheckText(profile.user(), "history.user"));
  RETURN_IF_ERROR(CheckText(profile.job(), "history.job"));
  RETURN_IF_ERROR(CheckText(profile.build(), "history.build"));
  RETURN_IF_ERROR(CheckRange(profile.started_unix_ns(), 0, INT64_MAX, "history.started_unix_ns"));
  RETURN_IF_ERROR(CheckRange(profile.ranks(), 0, INT32_MAX, "history.ranks"));
  RETURN_IF_ERROR(CheckRange(profile.nodes(), 0, INT32_MAX, "history.nodes"));
  RETURN_IF_ERROR(
      CheckCount(profile.loops_size(), static_cast<int64_t>(kMaxHistoryLoops), "history.loops"));
  HistoryProfile out;
  out.id = profile.id();
  out.command = profile.command();
  out.user = profile.user();
  out.job = profile.job();
  ASSIGN_OR_RETURN(out.state,
                   ModelEnum(profile.state(), ProfileState::kCancelled, "history.state"));
  out.started_unix_ns = profile.started_unix_ns();
  out.ranks = profile.ranks();
  out.nodes = profile.nodes();
  out.build = profile.build();
  for (const v1::HistoryLoop& loop : profile.loops()) {
    ASSIGN_OR_RETURN(HistoryLoop read, LoopFrom(loop));
    out.loops.push_back(std::move(read));
  }
  return out;
}

}  // namespace

v1::HistoryResponse ToProto(const ProgramHistory& history) {
  v1::HistoryResponse out;
  out.set_command(CleanText(history.command));
  out.set_incomplete(CleanText(history.incomplete));
  for (const HistoryProfile& profile : history.profiles) {
    v1::HistoryProfile& to = *out.add_profiles();
    to.set_id(CleanText(profile.id));
    to.set_command(CleanText(profile.command));
    to.set_user(CleanText(profile.user));
    to.set_job(CleanText(profile.job));
    to.set_state(WireEnum<v1::ProfileState>(profile.state));
    to.set_started_unix_ns(profile.started_unix_ns);
    to.set_ranks(profile.ranks);
    to.set_nodes(profile.nodes);
    to.set_build(CleanText(profile.build));
    for (const HistoryLoop& loop : profile.loops) Fill(loop, *to.add_loops());
  }
  return out;
}

absl::StatusOr<ProgramHistory> FromProto(const v1::HistoryResponse& response) {
  RETURN_IF_ERROR(CheckText(response.command(), "history.command"));
  RETURN_IF_ERROR(CheckText(response.incomplete(), "history.incomplete"));
  RETURN_IF_ERROR(CheckCount(response.profiles_size(), kMaxProfiles, "history.profiles"));
  ProgramHistory out;
  out.command = response.command();
  out.incomplete = response.incomplete();
  for (const v1::HistoryProfile& profile : response.profiles()) {
    ASSIGN_OR_RETURN(HistoryProfile read, ProfileFrom(profile));
    out.profiles.push_back(std::move(read));
  }
  return out;
}

}  // namespace perfd::wire
