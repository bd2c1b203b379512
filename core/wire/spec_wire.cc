// The request: profile specification and requester. Ranges are those of
// proto/perfd/v1/profile.proto.
#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/parts.h"
#include "core/wire/wire.h"

namespace perfd::wire {
namespace {

constexpr int kMaxPids = 4096;
constexpr int kMaxRankRanges = 1024;
constexpr int kMaxVariantNames = 64;
constexpr size_t kMaxNameBytes = 128;
constexpr size_t kMaxCommandBytes = 255;  // NAME_MAX
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;
constexpr int64_t kWeek = 7 * 24 * 3600 * kSecond;

static_assert(static_cast<int>(CallPaths::kDwarf) + 1 == v1::CALL_PATHS_DWARF);

void FillTarget(const TargetSpec& target, v1::Target& out) {
  if (target.slurm_job.has_value()) {
    out.set_slurm_job(*target.slurm_job);
  } else if (target.command.has_value()) {
    out.set_command(CleanText(*target.command));
  } else if (!target.pids.empty()) {
    for (int32_t pid : target.pids) out.mutable_pids()->add_pids(pid);
    out.set_tree(target.tree);
  }
  out.set_user(CleanText(target.user));
  out.set_node(CleanText(target.node));
}

absl::Status ReadPids(const v1::PidList& list, std::vector<int32_t>& pids) {
  RETURN_IF_ERROR(CheckRange(list.pids_size(), 1, kMaxPids, "target.pids"));
  for (int32_t pid : list.pids()) {
    RETURN_IF_ERROR(CheckRange(pid, 1, INT32_MAX, "target.pids"));
    pids.push_back(pid);
  }
  return absl::OkStatus();
}

absl::Status ReadTarget(const v1::Target& target, bool need_target, TargetSpec& out) {
  RETURN_IF_ERROR(CheckText(target.user(), "target.user", kMaxCommandBytes));
  RETURN_IF_ERROR(CheckText(target.node(), "target.node", kMaxCommandBytes));
  out.user = target.user();
  out.node = target.node();
  switch (target.selector_case()) {
    case v1::Target::kSlurmJob:
      RETURN_IF_ERROR(CheckRange(target.slurm_job(), 1, UINT32_MAX, "target.slurm_job"));
      out.slurm_job = target.slurm_job();
      return absl::OkStatus();
    case v1::Target::kCommand:
      RETURN_IF_ERROR(CheckRange(static_cast<int64_t>(target.command().size()), 1, kMaxCommandBytes,
                                 "target.command (bytes)"));
      out.command = target.command();
      return absl::OkStatus();
    case v1::Target::kPids:
      out.tree = target.tree();
      return ReadPids(target.pids(), out.pids);
    case v1::Target::SELECTOR_NOT_SET:
      break;
  }
  if (!need_target) return absl::OkStatus();
  return absl::InvalidArgumentError("target: one of slurm_job, command and pids is needed");
}

absl::Status ReadRanks(const v1::ProfileSpec& spec, std::vector<RankRange>& ranks) {
  RETURN_IF_ERROR(CheckCount(spec.ranks_size(), kMaxRankRanges, "ranks"));
  for (const v1::RankRange& range : spec.ranks()) {
    RETURN_IF_ERROR(CheckRange(range.first(), 0, INT32_MAX, "ranks.first"));
    RETURN_IF_ERROR(CheckRange(range.last(), range.first(), INT32_MAX, "ranks.last"));
    ranks.push_back({range.first(), range.last()});
  }
  return absl::OkStatus();
}

absl::Status ReadBudget(const v1::Budget& budget, BudgetSpec& out) {
  RETURN_IF_ERROR(CheckNumber(budget.overhead_ratio(), 0, 0.5, "budget.overhead_ratio"));
  RETURN_IF_ERROR(CheckRange(budget.stop_ns(), kMs, kSecond, "budget.stop_ns"));
  RETURN_IF_ERROR(CheckRange(budget.shadow_ns(), 10 * kMs, 10 * kSecond, "budget.shadow_ns"));
  out = {budget.overhead_ratio(), budget.stop_ns(), budget.shadow_ns()};
  return absl::OkStatus();
}

absl::Status ReadHotspots(const v1::Hotspots& hotspots, HotspotSpec& out) {
  RETURN_IF_ERROR(CheckRange(static_cast<int64_t>(hotspots.event().size()), 1, kMaxCommandBytes,
                             "hotspots.event (bytes)"));
  RETURN_IF_ERROR(CheckRange(hotspots.frequency_hz(), 1, 10'000, "hotspots.frequency_hz"));
  RETURN_IF_ERROR(CheckNumber(hotspots.coverage_ratio(), 0, 1, "hotspots.coverage_ratio"));
  RETURN_IF_ERROR(CheckRange(hotspots.max_loops(), 1, 1000, "hotspots.max_loops"));
  out.event = hotspots.event();
  out.frequency_hz = hotspots.frequency_hz();
  out.coverage_ratio = hotspots.coverage_ratio();
  out.max_loops = hotspots.max_loops();
  ASSIGN_OR_RETURN(out.callpaths,
                   ModelEnum(hotspots.callpaths(), CallPaths::kDwarf, "hotspots.callpaths"));
  if (out.callpaths == CallPaths::kOff && hotspots.callpaths_auto())
    out.callpaths = CallPaths::kAuto;
  return absl::OkStatus();
}

absl::Status ReadVariants(const v1::Variants& variants, VariantSpec& out) {
  RETURN_IF_ERROR(CheckCount(variants.set_size(), kMaxVariantNames, "variants.set"));
  RETURN_IF_ERROR(CheckRange(variants.repetitions(), 3, 1000, "variants.repetitions"));
  out.set.clear();
  for (const std::string& name : variants.set()) {
    RETURN_IF_ERROR(CheckText(name, "variants.set", kMaxNameBytes));
    out.set.push_back(name);
  }
  out.repetitions = variants.repetitions();
  if (!variants.mode().empty() && variants.mode() != "shadow" && variants.mode() != "recovery")
    return absl::InvalidArgumentError("variants.mode: neither shadow nor recovery");
  out.mode = variants.mode().empty() ? "shadow" : variants.mode();
  return absl::OkStatus();
}

absl::Status ReadMemory(const v1::Memory& memory, MemorySpec& out) {
  RETURN_IF_ERROR(
      CheckRange(memory.latency_threshold_cycles(), 3, 65'535, "memory.latency_threshold_cycles"));
  if (memory.trace() != "auto" && memory.trace() != "off")
    return absl::InvalidArgumentError("memory.trace: neither auto nor off");
  out = {memory.latency_threshold_cycles(), memory.dtlb(), memory.trace()};
  return absl::OkStatus();
}

}  // namespace

v1::ProfileSpec ToProto(const ProfileSpec& spec) {
  v1::ProfileSpec out;
  out.set_name(CleanText(spec.name));
  FillTarget(spec.target, *out.mutable_target());
  for (const RankRange& range : spec.ranks) {
    v1::RankRange* to = out.add_ranks();
    to->set_first(range.first);
    to->set_last(range.last);
  }
  out.set_duration_ns(spec.duration_ns);
  out.mutable_budget()->set_overhead_ratio(spec.budget.overhead_ratio);
  out.mutable_budget()->set_stop_ns(spec.budget.stop_ns);
  out.mutable_budget()->set_shadow_ns(spec.budget.shadow_ns);
  v1::Hotspots* hotspots = out.mutable_hotspots();
  hotspots->set_event(CleanText(spec.hotspots.event));
  hotspots->set_frequency_hz(spec.hotspots.frequency_hz);
  hotspots->set_coverage_ratio(spec.hotspots.coverage_ratio);
  hotspots->set_max_loops(spec.hotspots.max_loops);
  const bool automatic = spec.hotspots.callpaths == CallPaths::kAuto;
  hotspots->set_callpaths(
      WireEnum<v1::CallPaths>(automatic ? CallPaths::kOff : spec.hotspots.callpaths));
  hotspots->set_callpaths_auto(automatic);
  for (const std::string& name : spec.variants.set)
    out.mutable_variants()->add_set(CleanText(name));
  out.mutable_variants()->set_repetitions(spec.variants.repetitions);
  out.mutable_variants()->set_mode(CleanText(spec.variants.mode));
  v1::Memory* memory = out.mutable_memory();
  memory->set_latency_threshold_cycles(spec.memory.latency_threshold_cycles);
  memory->set_dtlb(spec.memory.dtlb);
  memory->set_trace(CleanText(spec.memory.trace));
  out.set_coherence_enabled(spec.coherence_enabled);
  out.mutable_pages()->set_enabled(spec.pages.enabled);
  out.mutable_pages()->set_apply(spec.pages.apply);
  out.set_dry_run(spec.dry_run);
  out.set_until_known(spec.until_known);
  return out;
}

absl::StatusOr<ProfileSpec> SpecFromProto(const v1::ProfileSpec& spec, bool need_target) {
  RETURN_IF_ERROR(CheckText(spec.name(), "name", kMaxNameBytes));
  RETURN_IF_ERROR(CheckRange(spec.duration_ns(), kSecond, kWeek, "duration_ns"));
  ProfileSpec out;
  out.name = spec.name();
  RETURN_IF_ERROR(ReadTarget(spec.target(), need_target, out.target));
  RETURN_IF_ERROR(ReadRanks(spec, out.ranks));
  out.duration_ns = spec.duration_ns();
  RETURN_IF_ERROR(ReadBudget(spec.budget(), out.budget));
  RETURN_IF_ERROR(ReadHotspots(spec.hotspots(), out.hotspots));
  RETURN_IF_ERROR(ReadVariants(spec.variants(), out.variants));
  RETURN_IF_ERROR(ReadMemory(spec.memory(), out.memory));
  out.coherence_enabled = spec.coherence_enabled();
  out.pages = {spec.pages().enabled(), spec.pages().apply()};
  out.dry_run = spec.dry_run();
  out.until_known = spec.until_known();
  return out;
}

absl::StatusOr<ProfileSpec> FromProto(const v1::ProfileSpec& spec) {
  return SpecFromProto(spec, /*need_target=*/true);
}

v1::Requester ToProto(const Requester& requester) {
  v1::Requester out;
  out.set_uid(requester.uid);
  out.set_name(CleanText(requester.name));
  out.set_privileged(requester.privileged);
  return out;
}

Requester FromProto(const v1::Requester& requester) {
  return {requester.uid(), CleanText(requester.name()), requester.privileged()};
}

}  // namespace perfd::wire
