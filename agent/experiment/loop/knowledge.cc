#include "agent/experiment/loop/knowledge.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace perfd::agent {
namespace {

constexpr double kMostRestoring = 0.05;  // of an instance's time
// A walk through the buffer of each level; it differs between machines, and the budget learns what it really took.
constexpr int64_t kEvictNs[kEvictLevels] = {0, 25'000, 1'000'000, 4'000'000};
constexpr char kInABatch[] = "in a row";

// As it is run; before the probe, as it may be.
bool ChangesNothing(const LoopKnowledge& known, size_t variant) {
  const VariantName& name = known.installed.names[variant];
  if (!IsIdle(name, CopyOf(known, variant))) return false;
  const std::optional<ApartCopies>& apart = ApartCopiesOf(known);
  const bool open = !IsProbed(known) && apart && apart->copies[variant].ok();
  return !open || IsIdle(name, *apart->copies[variant]);
}

}  // namespace

int32_t IndexOf(const LoopKnowledge& known, const std::string& variant) {
  const std::vector<VariantName>& names = known.installed.names;
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const VariantName& name) { return name.Text() == variant; });
  return found == names.end() ? -1 : static_cast<int32_t>(found - names.begin());
}

int32_t BaseOf(const LoopKnowledge& known, int32_t variant) {
  const std::string base = CopyOf(known, static_cast<size_t>(variant)).base.Text();
  return std::max(kRefIndex, IndexOf(known, base));
}

CopyForm FormOf(const LoopKnowledge& known, int32_t variant) {
  const auto at = static_cast<size_t>(variant);
  // Runs of other instances than the traced one may take other paths.
  const bool other_instances = known.protocol.successive || known.protocol.natural;
  const bool apart = variant > kTraceIndex && at < known.apart.usable.size() &&
                     known.apart.usable[at] && !(known.apart.rests_on_paths && other_instances);
  return apart ? CopyForm::kApart : CopyForm::kUsual;
}

const std::optional<ApartCopies>& ApartCopiesOf(const LoopKnowledge& known) {
  return known.batch.instances > 0 ? known.installed.batched_apart : known.installed.apart;
}

const CodeCopy& CopyOf(const LoopKnowledge& known, size_t variant) {
  if (FormOf(known, static_cast<int32_t>(variant)) == CopyForm::kApart)
    return *ApartCopiesOf(known)->copies[variant];
  const bool batched = known.batch.instances > 0 && IsBatched(known, static_cast<int32_t>(variant));
  return batched ? *known.installed.batched[variant] : known.installed.copies[variant];
}

bool IsBatched(const LoopKnowledge& known, int32_t variant) {
  const auto at = static_cast<size_t>(variant);
  const auto& batched = known.installed.batched;
  return variant >= 0 && at < batched.size() && batched[at].ok();
}

bool IsTripCheck(const LoopKnowledge& known, int32_t variant) {
  const VariantName& name = known.installed.names[static_cast<size_t>(variant)];
  const std::vector<std::string>& asked = known.setup.asked;
  return variant > kTraceIndex && name.Has(Change::kCount) &&
         std::find(asked.begin(), asked.end(), name.Text()) == asked.end();
}

bool CountsEntries(const LoopKnowledge& known, const RunSpec& run) {
  return run.form == CopyForm::kApartTraced || run.variant == kCountIndex ||
         run.variant == kTraceIndex || IsTripCheck(known, run.variant);
}

const VariantName* IdlePartOf(const LoopKnowledge& known, size_t variant) {
  const std::vector<VariantName>& names = known.installed.names;
  const std::vector<VariantPart>& parts = names[variant].parts;
  if (ChangesNothing(known, variant)) return &names[variant];
  for (size_t i = 0; i < names.size(); ++i) {
    const std::vector<VariantPart>& single = names[i].parts;
    const bool part = parts.size() > 1 && single.size() == 1 &&
                      std::find(parts.begin(), parts.end(), single[0]) != parts.end();
    if (part && ChangesNothing(known, i)) return &names[i];
  }
  return nullptr;
}

bool IsProbed(const LoopKnowledge& known) {
  return !known.trips.counts.empty();
}

int32_t TeamOf(const LoopKnowledge& known) {
  return std::max(1, known.live.entries.team);
}

int32_t ShadowTeam(const LoopKnowledge& known) {
  return known.live.lone ? 1 : TeamOf(known);
}

bool MayBeLone(const LoopKnowledge& known) {
  return !known.live.lone && TeamOf(known) > 1 && known.shadows.count == 0;
}

double ProbeCyclesOfRun(const LoopKnowledge& known) {
  return known.shadows.probe_cycles /
         static_cast<double>(std::max<uint64_t>(1, known.batch.instances));
}

double InstanceNs(const LoopKnowledge& known) {
  const double cycles = std::max(known.runs.cycles, known.live.times.cycles);
  return known.setup.ticks_per_ns > 0 ? cycles / known.setup.ticks_per_ns : cycles;
}

int64_t PeriodNs(const LoopKnowledge& known) {
  const EntryCount& entries = known.live.entries;
  return static_cast<int64_t>(1e9 * TeamOf(known) / std::max(1e-3, entries.entries_per_second));
}

double InstancesNs(const LoopKnowledge& known) {
  return InstanceNs(known) * static_cast<double>(std::max<uint64_t>(1, known.batch.instances));
}

int64_t EvictNs(Evict level) {
  return kEvictNs[static_cast<size_t>(level)];
}

// Copying back moves two bytes for each, comparing reads as many; some 4 GB/s.
int64_t RestoreNs(const LoopKnowledge& known) {
  return static_cast<int64_t>(known.probe.trace.written_bytes / 2);
}

int64_t RunNs(const LoopKnowledge& known) {
  double ns = InstancesNs(known) + static_cast<double>(EvictNs(known.protocol.evict));
  if (known.probe.trace.in_situ && !LearnsWrites(known))
    ns += static_cast<double>(RestoreNs(known));
  return std::max<int64_t>(1000, static_cast<int64_t>(ns));
}

bool LearnsWrites(const LoopKnowledge& known) {
  return !known.protocol.natural && known.probe.trace.in_situ &&
         static_cast<double>(RestoreNs(known)) > kMostRestoring * InstancesNs(known);
}

int64_t LongestShadowNs(const LoopKnowledge& known) {
  return static_cast<int64_t>(kShadowShare * static_cast<double>(known.setup.shadow_ns));
}

void SetFactor(LiveFindings& live, double factor) {
  const double change = factor / live.factor;
  live.factor = factor;
  live.times.cycles *= change;
  for (uint64_t& cycles : live.times.instances)
    cycles = static_cast<uint64_t>(std::llround(static_cast<double>(cycles) * change));
}

void ForgetLiveBatches(LiveFindings& live) {
  SetFactor(live, 1);
  if (!live.alone) return;
  live.times = *std::move(live.alone);
  live.alone.reset();
}

void ForgetRuns(LoopKnowledge& known) {
  known.runs.samples.clear();
  known.runs.reduction = {};
  known.runs.trip_classes.clear();
}

void ForgetPasses(LoopKnowledge& known) {
  if (!known.apart.rests_on_paths) return;
  known.trips.checked.clear();
  known.trips.refusals.clear();
}

void SetAlone(LoopKnowledge& known, const std::string& why) {
  known.batch.instances = 0;
  known.batch.refusals = {
      {kInABatch, 0,
       absl::StrFormat("an instance of %.2f us is too short to be repeated as it runs live, and "
                       "many cannot be run in a row: %s",
                       known.live.times.cycles / known.setup.ticks_per_ns / 1e3, why),
       1}};
}

void ForgetBatch(LoopKnowledge& known, const std::string& why) {
  SetAlone(known, why);
  ForgetLiveBatches(known.live);
  known.probe.trace = {};
  known.probe.trace_alone = false;
  known.protocol = {};
  known.apart = {};
  known.trips = {};
  known.trim.misses = known.trim.failures = 0;
  known.runs.cycles = 0;
  ForgetRuns(known);
}

}  // namespace perfd::agent
