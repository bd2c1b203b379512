// NodeExperimenter: the end of a profile, every rank as it was before.
#include "absl/strings/str_cat.h"
#include "agent/experiment/node_experimenter.h"

namespace perfd::agent {

void NodeExperimenter::CloseAll(const std::string& reason) {
  const std::vector<RankExperiments*> benches = AllRankExperiments();
  for (size_t loop = 0; loop < request_.plan.loops.size(); ++loop) {
    for (RankExperiments* bench : benches) bench->Close(loop, reason);
  }
}

// Whoever acts on a rank looks for itself. This is for ranks that nobody acts on just now: nothing of ours stays in them.
void NodeExperimenter::LeaveChanged() {
  for (RankExperiments* bench : AllRankExperiments()) {
    const absl::Status still = bench->LeaveIfChanged();
    if (still.ok()) continue;
    Notify(Notice::Severity::kWarning,
           absl::Status(still.code(),
                        absl::StrCat("rank ", bench->rank().rank, " is left: ", still.message())),
           bench->rank().pid);
  }
}

void NodeExperimenter::RestoreAll() {
  const std::vector<RankExperiments*> benches = AllRankExperiments();
  for (RankExperiments* bench : benches) {
    const absl::Status restored = bench->Restore();
    if (restored.ok()) continue;
    const absl::Status status = HealAfter(bench->rank(), restored);
    if (status.ok()) continue;
    const int32_t pid = bench->rank().pid;
    const bool goes_on = options_.late != nullptr && options_.late->HealLater(bench->rank());
    const std::string next =
        goes_on ? "; the agent goes on trying" : absl::StrCat("; run: perf-agent heal ", pid);
    Notify(
        Notice::Severity::kError,
        absl::Status(status.code(), absl::StrCat("rank ", bench->rank().rank, " (pid ", pid,
                                                 ") still has our jumps, which only pass through: ",
                                                 status.message(), next)),
        pid);
  }
  // Last words, with the stops of the restoring.
  for (size_t loop = 0; loop < request_.plan.loops.size(); ++loop) Publish(loop, benches);
}

// A tracer that hung or died cannot restore: another one may, by the journal. What that cannot do either is left to the late
// healer, the next profile of the rank, or the next agent.
absl::Status NodeExperimenter::HealAfter(const RankInfo& rank, const absl::Status& restored) {
  if (options_.open_injector) return restored;
  auto tracer = Tracer::Start(options_.tracer);
  if (!tracer.ok()) return restored;
  InjectorOptions options;
  options.tracer = tracer->get();
  options.journal = options_.journal;
  options.max_stop_ns = request_.plan.budget.stop_ns;
  options.answers = options_.answers;
  options.audit = [this, &rank](AuditEntry entry) { Audit(std::move(entry), rank); };
  return HealBefore(rank, options);
}

}  // namespace perfd::agent
