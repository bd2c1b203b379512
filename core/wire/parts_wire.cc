// Setup, accounting and overhead: what windows, reports and stored aggregates share.
#include <algorithm>
#include <array>

#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/parts.h"

namespace perfd::wire {

namespace {

static_assert(static_cast<int>(Provenance::kEstimated) + 1 == v1::PROVENANCE_ESTIMATED);

// Where each DropReason stands in Accounting.dropped. Stored windows keep their meaning for ever, so the positions of
// reasons that no longer exist stay empty.
// Source: proto/perfd/v1/sample.proto Accounting.dropped.
constexpr std::array<int, kDropReasonCount> kDropPosition = {0, 3, 4, 5};
static_assert(static_cast<size_t>(DropReason::kSpoolFull) + 1 == kDropReasonCount);
constexpr int kDropPositions = 7;  // with the reserved ones

absl::Status ReadDropped(const v1::Accounting& from, uint64_t limit, Accounting& out) {
  RETURN_IF_ERROR(CheckCount(from.dropped_size(), kDropPositions, "accounting.dropped"));
  for (int i = 0; i < from.dropped_size(); ++i) {
    const auto* place = std::find(kDropPosition.begin(), kDropPosition.end(), i);
    const bool known = place != kDropPosition.end();
    RETURN_IF_ERROR(CheckTotal(from.dropped(i), "accounting.dropped", known ? limit : 0));
    if (known) out.dropped[static_cast<size_t>(place - kDropPosition.begin())] = from.dropped(i);
  }
  return absl::OkStatus();
}

}  // namespace

v1::SamplingSetup ToProto(const SamplingSetup& setup) {
  v1::SamplingSetup out;
  out.set_event(CleanText(setup.event));
  out.set_frequency_hz(setup.frequency_hz);
  out.set_kernel_included(setup.kernel_included);
  out.set_method(CleanText(setup.method));
  out.set_provenance(WireEnum<v1::Provenance>(setup.provenance));
  return out;
}

absl::StatusOr<SamplingSetup> FromProto(const v1::SamplingSetup& setup) {
  RETURN_IF_ERROR(CheckText(setup.event(), "setup.event"));
  RETURN_IF_ERROR(CheckText(setup.method(), "setup.method"));
  RETURN_IF_ERROR(CheckNumber(setup.frequency_hz(), 0, 1e9, "setup.frequency_hz"));
  SamplingSetup out;
  out.event = setup.event();
  out.frequency_hz = setup.frequency_hz();
  out.kernel_included = setup.kernel_included();
  out.method = setup.method();
  ASSIGN_OR_RETURN(out.provenance,
                   ModelEnum(setup.provenance(), Provenance::kEstimated, "setup.provenance"));
  return out;
}

v1::Accounting ToProto(const Accounting& accounting) {
  v1::Accounting out;
  out.set_seen(accounting.seen);
  out.set_kept(accounting.kept);
  out.mutable_dropped()->Resize(kDropPosition.back() + 1, 0);
  for (size_t i = 0; i < kDropReasonCount; ++i)
    out.set_dropped(kDropPosition[i], accounting.dropped[i]);
  out.set_lost(accounting.lost);
  out.set_throttled(accounting.throttled);
  out.set_stack_truncated(accounting.stack_truncated);
  out.set_stack_skipped(accounting.stack_skipped);
  out.set_late_threads(accounting.late_threads);
  out.set_late_thread_cpu_ns(accounting.late_thread_cpu_ns);
  return out;
}

absl::StatusOr<Accounting> FromProto(const v1::Accounting& accounting, uint64_t limit) {
  Accounting out;
  RETURN_IF_ERROR(ReadDropped(accounting, limit, out));
  out.seen = accounting.seen();
  out.kept = accounting.kept();
  out.lost = accounting.lost();
  out.throttled = accounting.throttled();
  out.stack_truncated = accounting.stack_truncated();
  out.stack_skipped = accounting.stack_skipped();
  out.late_threads = accounting.late_threads();
  out.late_thread_cpu_ns = accounting.late_thread_cpu_ns();
  for (uint64_t count : {out.seen, out.kept, out.lost, out.throttled, out.stack_truncated,
                         out.stack_skipped, out.late_threads, out.late_thread_cpu_ns}) {
    RETURN_IF_ERROR(CheckTotal(count, "accounting", limit));
  }
  return out;
}

v1::Overhead ToProto(const OverheadFigures& overhead) {
  v1::Overhead out;
  out.set_agent_cpu_ns(overhead.agent_cpu_ns);
  out.set_lost_to_agent_ns(overhead.lost_to_agent_ns);
  out.set_kernel_sampling_ns(overhead.kernel_sampling_ns);
  out.set_job_cpu_ns(overhead.job_cpu_ns);
  out.set_stop_ns(overhead.stop_ns);
  out.set_stops(overhead.stops);
  out.set_rank_wall_ns(overhead.rank_wall_ns);
  return out;
}

absl::StatusOr<OverheadFigures> FromProto(const v1::Overhead& overhead, uint64_t limit) {
  OverheadFigures out;
  out.agent_cpu_ns = overhead.agent_cpu_ns();
  out.kernel_sampling_ns = overhead.kernel_sampling_ns();
  out.job_cpu_ns = overhead.job_cpu_ns();
  out.stop_ns = overhead.stop_ns();
  out.stops = overhead.stops();
  out.rank_wall_ns = overhead.rank_wall_ns();
  out.lost_to_agent_ns = overhead.has_lost_to_agent_ns()
                             ? std::min(overhead.lost_to_agent_ns(), out.agent_cpu_ns)
                             : out.agent_cpu_ns;
  for (uint64_t value : {out.agent_cpu_ns, out.kernel_sampling_ns, out.job_cpu_ns, out.stop_ns,
                         out.stops, out.rank_wall_ns}) {
    RETURN_IF_ERROR(CheckTotal(value, "overhead", limit));
  }
  return out;
}

v1::WindowCalls ToProto(const std::vector<WindowCall>& calls) {
  v1::WindowCalls out;
  for (const WindowCall& call : calls) {
    out.add_location(call.location);
    out.add_loop(call.loop.has_value() ? *call.loop + 1 : 0);
    out.add_paths(call.paths);
  }
  return out;
}

absl::StatusOr<std::vector<WindowCall>> FromProto(const v1::WindowCalls& calls,
                                                  size_t location_count) {
  std::vector<WindowCall> out;
  const int count = calls.location_size();
  RETURN_IF_ERROR(CheckCount(count, kMaxRows, "calls"));
  if (calls.loop_size() != count || calls.paths_size() != count)
    return absl::InvalidArgumentError("calls: columns of different length");
  for (int i = 0; i < count; ++i) {
    const uint32_t loop = calls.loop(i);
    if (calls.location(i) >= location_count || loop > location_count)
      return absl::InvalidArgumentError("calls: outside the dictionary");
    if (calls.paths(i) == 0) return absl::InvalidArgumentError("calls.paths: zero");
    out.push_back(
        {calls.location(i), loop == 0 ? std::nullopt : std::optional(loop - 1), calls.paths(i)});
  }
  return out;
}

}  // namespace perfd::wire
