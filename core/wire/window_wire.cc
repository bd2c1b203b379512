// Windows: what agents measured.
#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/lease_wire.h"
#include "core/wire/memory/memory_wire.h"
#include "core/wire/parts.h"
#include "core/wire/variant_wire.h"
#include "core/wire/wire.h"

namespace perfd::wire {
namespace {

void FillRows(const Window& window, v1::WindowRows& out) {
  const int count = static_cast<int>(window.rows.size());
  out.mutable_thread()->Reserve(count);
  out.mutable_location()->Reserve(count);
  out.mutable_samples()->Reserve(count);
  out.mutable_weight()->Reserve(count);
  for (const WindowRow& row : window.rows) {
    out.add_thread(row.thread);
    out.add_location(row.location);
    out.add_samples(row.samples);
    out.add_weight(row.weight);
    if (!window.rank_times.empty()) out.add_wall_ns(row.wall_ns);
  }
}

void FillStacks(const Window& window, v1::Window& out) {
  for (const std::string& name : window.paths.frame_names) out.add_frame_names(CleanText(name));
  for (const WindowStack& stack : window.paths.stacks) {
    v1::WindowStack* to = out.add_stacks();
    to->set_rank(stack.rank);
    to->mutable_frames()->Add(stack.frames.begin(), stack.frames.end());
    to->set_samples(stack.samples);
  }
}

// Adds to a running sum; false when the sum passes the limit.
bool AddWithin(uint64_t value, uint64_t limit, uint64_t& sum) {
  if (value > limit - sum) return false;
  sum += value;
  return true;
}

absl::Status ReadIdentity(const v1::Window& window, Window& out) {
  RETURN_IF_ERROR(CheckText(window.profile_id(), "window.profile_id"));
  RETURN_IF_ERROR(CheckText(window.node(), "window.node"));
  RETURN_IF_ERROR(CheckText(window.stream_id(), "window.stream_id"));
  if (window.profile_id().empty() || window.node().empty() || window.stream_id().empty() ||
      window.sequence() == 0) {
    return absl::InvalidArgumentError(
        "window: profile_id, node, stream_id and sequence must be set");
  }
  RETURN_IF_ERROR(CheckRange(window.start_unix_ns(), 0, INT64_MAX, "window.start_unix_ns"));
  RETURN_IF_ERROR(
      CheckRange(window.duration_ns(), 0, static_cast<int64_t>(kMaxTotal), "window.duration_ns"));
  out.profile_id = window.profile_id();
  out.node = window.node();
  out.stream_id = window.stream_id();
  out.sequence = window.sequence();
  out.start_unix_ns = window.start_unix_ns();
  out.duration_ns = window.duration_ns();
  return absl::OkStatus();
}

absl::Status ReadDictionaries(const v1::Window& window, Window& out) {
  RETURN_IF_ERROR(CheckCount(window.ranks_size(), kMaxRanks, "window.ranks"));
  RETURN_IF_ERROR(CheckCount(window.threads_size(), kMaxThreads, "window.threads"));
  RETURN_IF_ERROR(CheckCount(window.locations_size(), kMaxLocations, "window.locations"));
  for (const v1::RankInfo& rank : window.ranks()) {
    ASSIGN_OR_RETURN(RankInfo read, FromProto(rank));
    out.ranks.push_back(std::move(read));
  }
  for (const v1::WindowThread& thread : window.threads()) {
    RETURN_IF_ERROR(CheckRange(thread.rank(), 0, INT32_MAX, "window.threads.rank"));
    RETURN_IF_ERROR(CheckRange(thread.pid(), 0, INT32_MAX, "window.threads.pid"));
    RETURN_IF_ERROR(CheckRange(thread.tid(), 0, INT32_MAX, "window.threads.tid"));
    out.threads.push_back({thread.rank(), thread.pid(), thread.tid()});
  }
  for (const v1::CodeLocation& location : window.locations()) {
    ASSIGN_OR_RETURN(CodeLocation read, FromProto(location));
    out.locations.push_back(std::move(read));
  }
  return absl::OkStatus();
}

absl::Status CheckRow(const WindowRow& row, const Window& window) {
  if (row.thread >= window.threads.size())
    return absl::InvalidArgumentError("window.rows.thread: outside the dictionary");
  if (row.location >= window.locations.size())
    return absl::InvalidArgumentError("window.rows.location: outside the dictionary");
  if (row.samples == 0) return absl::InvalidArgumentError("window.rows.samples: zero");
  return absl::OkStatus();
}

absl::Status ReadRankTimes(const v1::Window& window, Window& out) {
  RETURN_IF_ERROR(CheckCount(window.rank_times_size(), kMaxRanks, "window.rank_times"));
  uint64_t elapsed = 0;
  uint64_t waited = 0;
  for (const v1::RankTime& time : window.rank_times()) {
    RETURN_IF_ERROR(CheckRange(time.rank(), 0, INT32_MAX, "window.rank_times.rank"));
    RETURN_IF_ERROR(CheckRange(time.pid(), 0, INT32_MAX, "window.rank_times.pid"));
    if (!AddWithin(time.elapsed_ns(), kMaxWallTotal, elapsed) ||
        !AddWithin(time.cpu_wait_ns(), kMaxTotal, waited)) {
      return absl::InvalidArgumentError("window.rank_times: the sums are too large");
    }
    out.rank_times.push_back({time.rank(), time.pid(), time.elapsed_ns(), time.cpu_wait_ns()});
  }
  return absl::OkStatus();
}

absl::Status ReadRows(const v1::WindowRows& rows, Window& out) {
  const int count = rows.thread_size();
  const bool divided = !out.rank_times.empty();
  RETURN_IF_ERROR(CheckCount(count, kMaxRows, "window.rows"));
  if (rows.location_size() != count || rows.samples_size() != count ||
      rows.weight_size() != count || rows.wall_ns_size() != (divided ? count : 0)) {
    return absl::InvalidArgumentError("window.rows: columns of different length");
  }
  uint64_t samples = 0;
  uint64_t weight = 0;
  uint64_t wall = 0;
  out.rows.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const WindowRow row{rows.thread(i), rows.location(i), rows.samples(i), rows.weight(i),
                        divided ? rows.wall_ns(i) : 0};
    RETURN_IF_ERROR(CheckRow(row, out));
    if (!AddWithin(row.samples, kMaxSampleTotal, samples) ||
        !AddWithin(row.weight, kMaxTotal, weight) || !AddWithin(row.wall_ns, kMaxWallTotal, wall)) {
      return absl::InvalidArgumentError("window.rows: the sums are too large");
    }
    out.rows.push_back(row);
  }
  return absl::OkStatus();
}

absl::Status ReadStack(const v1::WindowStack& stack, Window& out) {
  RETURN_IF_ERROR(CheckRange(stack.rank(), 0, INT32_MAX, "window.stacks.rank"));
  RETURN_IF_ERROR(CheckCount(stack.frames_size(), kMaxStackFrames, "window.stacks.frames"));
  for (uint32_t frame : stack.frames()) {
    if (frame >= out.paths.frame_names.size())
      return absl::InvalidArgumentError("window.stacks.frames: outside the dictionary");
  }
  out.paths.stacks.push_back(
      {stack.rank(), {stack.frames().begin(), stack.frames().end()}, stack.samples()});
  return absl::OkStatus();
}

absl::Status ReadStacks(const v1::Window& window, Window& out) {
  RETURN_IF_ERROR(CheckCount(window.frame_names_size(), kMaxFrameNames, "window.frame_names"));
  RETURN_IF_ERROR(CheckCount(window.stacks_size(), kMaxStacks, "window.stacks"));
  for (const std::string& name : window.frame_names()) {
    RETURN_IF_ERROR(CheckText(name, "window.frame_names"));
    out.paths.frame_names.push_back(name);
  }
  uint64_t samples = 0;
  for (const v1::WindowStack& stack : window.stacks()) {
    if (!AddWithin(stack.samples(), kMaxSampleTotal, samples))
      return absl::InvalidArgumentError("window.stacks: the sum is too large");
    RETURN_IF_ERROR(ReadStack(stack, out));
  }
  return absl::OkStatus();
}

absl::Status ReadCallsOf(const v1::Window& window, Window& out) {
  ASSIGN_OR_RETURN(out.paths.calls, FromProto(window.calls(), out.locations.size()));
  uint64_t paths = 0;
  for (const WindowCall& call : out.paths.calls) {
    if (!AddWithin(call.paths, kMaxSampleTotal, paths))
      return absl::InvalidArgumentError("window.calls: the sum is too large");
    const CodeLocation& from = out.locations[call.location];
    if (from.category != Category::kOutsideLoop && from.category != Category::kLibrary)
      return absl::InvalidArgumentError("window.calls.location: not outside loops");
    if (call.loop.has_value() && out.locations[*call.loop].category != Category::kLoop)
      return absl::InvalidArgumentError("window.calls.loop: no compute loop");
  }
  return absl::OkStatus();
}

// Of a window only: entries that were stored before there was this limit can be read for ever.
absl::Status CheckAuditTexts(const AuditEntry& entry) {
  for (const std::string* text : {&entry.loop_id, &entry.action, &entry.original_bytes,
                                  &entry.written_bytes, &entry.outcome}) {
    RETURN_IF_ERROR(CheckText(*text, "window.audit", kMaxAuditTextBytes));
  }
  return absl::OkStatus();
}

// Every measurement and entry is of this window's own profile and node: nobody speaks for others.
absl::Status ReadMeasurements(const v1::Window& window, Window& out) {
  RETURN_IF_ERROR(CheckCount(window.measurements_size(), kMaxMeasurements, "window.measurements"));
  RETURN_IF_ERROR(CheckCount(window.audit_size(), kMaxAuditEntries, "window.audit"));
  for (const v1::LoopMeasurement& loop : window.measurements()) {
    ASSIGN_OR_RETURN(LoopMeasurement read, FromProto(loop));
    if (read.profile_id != out.profile_id || read.node != out.node)
      return absl::InvalidArgumentError("window.measurements: of another profile or node");
    out.findings.measurements.push_back(std::move(read));
  }
  for (const v1::AuditEntry& entry : window.audit()) {
    ASSIGN_OR_RETURN(AuditEntry read, FromProto(entry));
    if (read.profile_id != out.profile_id || read.node != out.node)
      return absl::InvalidArgumentError("window.audit: of another profile or node");
    RETURN_IF_ERROR(CheckAuditTexts(read));
    out.audit.push_back(std::move(read));
  }
  RETURN_IF_ERROR(CheckCount(window.pauses_size(), kMaxLeasedPauses, "window.pauses"));
  for (const v1::LeasedPause& pause : window.pauses()) {
    ASSIGN_OR_RETURN(const LeasedPause read, FromProto(pause));
    out.leased.pauses.push_back(read);
  }
  out.leased.dropped = window.pauses_dropped();
  return CheckTotal(out.leased.dropped, "window.pauses_dropped", kMaxSampleTotal);
}

}  // namespace

v1::Window ToProto(const Window& window) {
  v1::Window out;
  out.set_profile_id(CleanText(window.profile_id));
  out.set_node(CleanText(window.node));
  out.set_stream_id(CleanText(window.stream_id));
  out.set_sequence(window.sequence);
  out.set_start_unix_ns(window.start_unix_ns);
  out.set_duration_ns(window.duration_ns);
  *out.mutable_setup() = ToProto(window.setup);
  for (const RankInfo& rank : window.ranks) *out.add_ranks() = ToProto(rank);
  for (const WindowThread& thread : window.threads) {
    v1::WindowThread* to = out.add_threads();
    to->set_rank(thread.rank);
    to->set_pid(thread.pid);
    to->set_tid(thread.tid);
  }
  for (const CodeLocation& location : window.locations) *out.add_locations() = ToProto(location);
  FillRows(window, *out.mutable_rows());
  FillStacks(window, out);
  if (!window.paths.calls.empty()) *out.mutable_calls() = ToProto(window.paths.calls);
  *out.mutable_accounting() = ToProto(window.accounting);
  *out.mutable_overhead() = ToProto(window.overhead);
  for (const LoopMeasurement& loop : window.findings.measurements) *out.add_measurements() = ToProto(loop);
  for (const AuditEntry& entry : window.audit) *out.add_audit() = ToProto(entry);
  for (const LeasedPause& pause : window.leased.pauses) *out.add_pauses() = ToProto(pause);
  out.set_pauses_dropped(window.leased.dropped);
  if (window.findings.memory != WindowMemory{})
    *out.mutable_memory() = ToProto(window.findings.memory);
  for (const RankTime& time : window.rank_times) {
    v1::RankTime* to = out.add_rank_times();
    to->set_rank(time.rank);
    to->set_pid(time.pid);
    to->set_elapsed_ns(time.elapsed_ns);
    to->set_cpu_wait_ns(time.cpu_wait_ns);
  }
  return out;
}

absl::StatusOr<Window> FromProto(const v1::Window& window) {
  Window out;
  RETURN_IF_ERROR(ReadIdentity(window, out));
  ASSIGN_OR_RETURN(out.setup, FromProto(window.setup()));
  RETURN_IF_ERROR(ReadDictionaries(window, out));
  RETURN_IF_ERROR(ReadRankTimes(window, out));
  RETURN_IF_ERROR(ReadRows(window.rows(), out));
  RETURN_IF_ERROR(ReadStacks(window, out));
  RETURN_IF_ERROR(ReadCallsOf(window, out));
  ASSIGN_OR_RETURN(out.accounting, FromProto(window.accounting(), kMaxTotal));
  ASSIGN_OR_RETURN(out.overhead, FromProto(window.overhead(), kMaxTotal));
  RETURN_IF_ERROR(ReadMeasurements(window, out));
  ASSIGN_OR_RETURN(out.findings.memory, FromProto(window.memory(), out.locations.size()));
  return out;
}

}  // namespace perfd::wire
