// What the spine shows of itself.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/to_figure.h"
#include "daemon/policy/policy_source.h"

namespace perfd::daemon {
namespace {

constexpr size_t kMaxHotProfiles = 20;
constexpr size_t kMaxAgentFigures = 1024;
constexpr size_t kMaxVersions = 16;  // of agents; what else there is counts as "other"

void AddHook(const HookFigures& hooks, const PolicySource* policy, DaemonFigures& figures) {
  for (size_t i = 0; i < hooks.jobs.size(); ++i)
    figures.hook.jobs.emplace_back(HookDecisionName(static_cast<HookDecision>(i)), hooks.jobs[i]);
  for (size_t i = 0; i < hooks.calls.size(); ++i)
    figures.hook.calls.emplace_back(HookResultName(static_cast<HookResult>(i)), hooks.calls[i]);
  if (policy != nullptr) figures.hook.policy_read = policy->error().empty();
}

std::vector<LabelledCount> HitsOf(const Limits& limits) {
  const auto hits = limits.Hits();
  std::vector<LabelledCount> counts;
  for (const LimitRow& row : LimitTable())
    counts.emplace_back(absl::StripPrefix(row.key, kLimitsSection),
                        hits[static_cast<size_t>(row.limit)]);
  return counts;
}

}  // namespace

std::vector<ProfileFigure> Pipeline::HotProfiles() {
  std::vector<ProfileStatus> active;
  std::vector<ProfileFigure> recent;
  {
    MutexLock lock(&mutex_);
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
  } else {
    figures.store.readable = false;
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
  figures.sampling_throttled = ingest.accounting.throttled;
  figures.ingest_queue_windows = ingest.under_way;
  figures.store.bytes = static_cast<uint64_t>(store_.SizeBytes());
  figures.store.healthy = store_.healthy();
  figures.refused.limits = HitsOf(*options_.limits);
  AddHook(hooks_.figures(), options_.policy, figures);
  figures.hot = HotProfiles();
  MutexLock lock(&mutex_);
  figures.streams_malformed = malformed_;
  std::map<std::string, uint64_t> versions;
  for (const auto& [node, entry] : registry_.entries()) {
    if (entry.facts.abilities.replayed) continue;  // a recording is none of the fleet
    ++figures.agents_known;
    if (entry.connection == 0) continue;
    ++figures.agents_connected;
    const bool room = versions.size() < kMaxVersions || versions.contains(entry.facts.version);
    ++versions[room ? entry.facts.version : "other"];
    const AgentHealth& health = entry.status.health;
    figures.agents_can_inject += health.can_inject ? 1 : 0;
    if (figures.agents.size() == kMaxAgentFigures) continue;
    figures.agents.push_back(
        {.node = node,
         .resident_bytes = health.resident_bytes,
         .cpu_seconds = static_cast<double>(health.cpu_ns) / static_cast<double>(kNsPerSecond),
         .spool_bytes = health.spool_bytes,
         .set_aside_windows = health.set_aside_windows,
         .certificate_expiry_seconds = entry.facts.certificate_expiry_seconds,
         .ring_bytes = health.ring_bytes});
  }
  figures.agent_versions.assign(versions.begin(), versions.end());
  return figures;
}

}  // namespace perfd::daemon
