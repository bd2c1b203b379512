// What the spine shows of itself.
#include <algorithm>
#include <array>
#include <utility>

#include "core/base/log.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/to_figure.h"

namespace perfd {
namespace {

constexpr size_t kMaxHotProfiles = 20;
constexpr size_t kMaxAgentFigures = 1024;
// Indexed by MeasureState.
constexpr std::array<const char*, 4> kMeasureStates = {"open", "measured", "refused",
                                                       "never_entered"};
// Combinations and array groups are in the report: here they would be series without bound.
constexpr std::array<absl::string_view, 9> kShownVariants = {
    "LS", "FP", "DL1", "NO_DIV", "NO_SQRT", "NO_RED", "S2L", "NO_STORE", "CTRL"};

}  // namespace

ProfileFigure ToFigure(const ProfileStatus& status, const std::vector<ReportRow>& loops,
                       size_t count) {
  ProfileFigure figure{
      .id = status.id, .name = status.name, .user = status.requester.name, .loops = {}};
  for (const ReportRow& row : loops) {
    if (figure.loops.size() == count) break;
    figure.loops.push_back({.loop = row.id,
                            .function = row.location.function,
                            .file = row.location.source.file,
                            .line = row.location.source.first_line,
                            .module = row.location.module_path,
                            .share_ratio = row.share});
  }
  return figure;
}

void AddVerdicts(const std::vector<LoopVerdict>& verdicts, size_t count, ProfileFigure& figure) {
  std::array<uint64_t, kMeasureStates.size()> states{};
  for (const LoopVerdict& loop : verdicts) {
    ++states[static_cast<size_t>(loop.state)];
    if (figure.measured.size() == count || loop.variants.empty()) continue;
    MeasuredFigure measured{.loop = loop.loop_id, .gain_ratio = 0, .saturations = {}};
    if (!loop.gains.empty()) measured.gain_ratio = loop.gains.front().of_job.value;
    for (const VariantSummary& v : loop.variants) {
      const bool known = std::find(kShownVariants.begin(), kShownVariants.end(), v.variant) !=
                         kShownVariants.end();
      if (known && v.ranks > 0) measured.saturations.push_back({v.variant, v.saturation.value});
    }
    figure.measured.push_back(std::move(measured));
  }
  if (verdicts.empty()) return;
  for (size_t i = 0; i < states.size(); ++i)
    figure.measure_states.emplace_back(kMeasureStates[i], states[i]);
}

std::vector<ProfileFigure> Pipeline::HotProfiles() {
  std::vector<ProfileStatus> active;
  std::vector<ProfileFigure> recent;
  {
    absl::MutexLock lock(&mutex_);
    active = table_.Statuses(Now());
    for (const RecentProfile& profile : recent_) recent.push_back(profile.figure);
  }
  std::vector<ProfileFigure> hot;
  for (auto status = active.rbegin(); status != active.rend() && hot.size() < kMaxHotProfiles;
       ++status) {
    if (status->samples == 0) continue;
    const auto loops = results_.Top(status->id, options_.hot_loops);
    if (!loops.ok()) continue;
    const auto count = static_cast<size_t>(options_.hot_loops);
    hot.push_back(ToFigure(*status, *loops, count));
    const auto verdicts = results_.Verdicts(status->id, *loops);
    if (verdicts.ok()) AddVerdicts(*verdicts, count, hot.back());
  }
  for (ProfileFigure& figure : recent) {
    const bool known = std::any_of(hot.begin(), hot.end(),
                                   [&](const auto& other) { return other.id == figure.id; });
    if (!known && hot.size() < kMaxHotProfiles) hot.push_back(std::move(figure));
  }
  return hot;
}

DaemonFigures Pipeline::Figures() {
  DaemonFigures figures;
  if (const auto counts = store_.StateCounts(); counts.ok()) {
    for (size_t state = 0; state < counts->size(); ++state) {
      figures.profiles.emplace_back(ProfileStateName(static_cast<ProfileState>(state)),
                                    (*counts)[state]);
    }
  }
  const IngestFigures ingest = ingest_.figures();
  for (size_t i = 0; i < ingest.dropped.size(); ++i) {
    figures.windows_dropped.emplace_back(WindowDropName(static_cast<WindowDrop>(i)),
                                         ingest.dropped[i]);
  }
  for (size_t i = 0; i < ingest.samples.size(); ++i) {
    figures.samples.emplace_back(CategoryName(static_cast<Category>(i)), ingest.samples[i]);
  }
  for (size_t i = 0; i < ingest.accounting.dropped.size(); ++i) {
    figures.samples_dropped.emplace_back(DropReasonName(static_cast<DropReason>(i)),
                                         ingest.accounting.dropped[i]);
  }
  for (size_t i = 0; i < ingest.injections.size(); ++i)
    figures.injections.emplace_back(kAuditActions[i], ingest.injections[i]);
  figures.injection_pause_seconds =
      static_cast<double>(ingest.injection_pause_ns) / static_cast<double>(kNsPerSecond);
  figures.windows_stored = ingest.stored;
  figures.windows_duplicate = ingest.duplicate;
  figures.samples_lost = ingest.accounting.lost;
  figures.ingest_queue_windows = ingest.under_way;
  figures.store_bytes = static_cast<uint64_t>(store_.SizeBytes());
  figures.store_healthy = store_.healthy();
  figures.hot = HotProfiles();
  absl::MutexLock lock(&mutex_);
  figures.streams_malformed = malformed_;
  figures.agents_connected = book_.connected();
  for (const auto& [node, entry] : book_.entries()) {
    if (entry.connection == 0 || figures.agents.size() == kMaxAgentFigures) continue;
    const AgentHealth& health = entry.status.health;
    figures.agents.push_back(
        {.node = node,
         .resident_bytes = health.resident_bytes,
         .cpu_seconds = static_cast<double>(health.cpu_ns) / static_cast<double>(kNsPerSecond),
         .spool_bytes = health.spool_bytes,
         .set_aside_windows = health.set_aside_windows});
  }
  return figures;
}

}  // namespace perfd
