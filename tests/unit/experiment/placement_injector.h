// tests/unit/experiment/placement_injector.h - an injector in which copies run in the rank itself.
#ifndef TESTS_UNIT_EXPERIMENT_PLACEMENT_INJECTOR_H_
#define TESTS_UNIT_EXPERIMENT_PLACEMENT_INJECTOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "agent/shadow/rank_injector.h"

namespace perfd::agent {

// A rank of which every instance takes 400 ticks besides the probe, twice as long when it is the first of its kind.
class PlacementInjector final : public RankInjector {
 public:
  // REF, COUNT, TRACE, LS and FP, all of which may run in place.
  static InstalledLoop Copies() {
    InstalledLoop loop;
    for (const char* name : {"REF", "COUNT", "TRACE", "LS", "FP"}) {
      loop.names.push_back(*ParseVariantName(name));
      CodeCopy copy;
      copy.base = SingleVariant(Change::kRef);
      copy.changed.resize(1);
      loop.copies.push_back(copy);
    }
    loop.in_situ = absl::OkStatus();
    loop.in_situ_copies.assign(5, true);
    return loop;
  }

  absl::StatusOr<std::vector<InstalledLoop>> Install(std::vector<LoopToInject> loops) override {
    return std::vector<InstalledLoop>(loops.size(), Copies());
  }
  absl::StatusOr<EntryCount> CountEntries(int32_t, int64_t) override {
    return EntryCount{.team = team, .entries_per_second = 1e6};
  }
  ShadowPrediction PredictShadow() override { return {}; }
  absl::StatusOr<ShadowAnswer> RunShadow(const ShadowRequest&) override {
    ++shadows;
    return absl::FailedPreconditionError("no shadow today");
  }
  absl::StatusOr<std::vector<uint64_t>> TimeLive(int32_t, int32_t count, int64_t) override {
    return std::vector<uint64_t>(static_cast<size_t>(count), live_ticks);
  }
  absl::StatusOr<RecoveryAnswer> Recover(const RecoveryRequest& request) override {
    edits.push_back(request);
    if (on_recover) on_recover(request);
    if (!status.ok()) return status;
    RecoveryAnswer answer;
    for (int32_t i = 0; i < request.runs; ++i) {
      RecoveryRun run;
      run.step = i % static_cast<int32_t>(request.round.size());
      run.thread = i / static_cast<int32_t>(request.round.size()) % team;
      run.cluster = static_cast<uint32_t>(i) / static_cast<uint32_t>(request.round.size());
      const int32_t copy = request.round[static_cast<size_t>(run.step)];
      noise = noise * 6364136223846793005u + 1442695040888963407u;
      const double jitter = 1 + 0.02 * static_cast<double>(noise >> 40) / (1 << 24);
      const double factor = copy == 3 ? 0.25 : copy == kNoCopy ? 0 : 1;
      // Instances of one cluster are alike, those of another may be twice as long.
      const double length = run.cluster % 2 == 0 ? 400 : 800;
      run.cycles = 60 + static_cast<uint64_t>(factor * length * jitter);
      run.original = static_cast<uint64_t>(length * jitter);
      run.iterations = copy == 1 ? static_cast<uint64_t>(length / 4) : 0;
      answer.runs.push_back(run);
    }
    answer.added_ns = request.runs * each_ns / team;
    return answer;
  }
  absl::Status SetPatched(int32_t, bool) override { return absl::OkStatus(); }
  absl::Status Uninstall() override { return absl::OkStatus(); }
  std::optional<RuntimeAddress> OriginalAddress(RuntimeAddress) const override {
    return std::nullopt;
  }
  InjectionCost cost() const override { return {}; }

  int32_t team = 1;
  uint64_t live_ticks = 460;
  int64_t each_ns = 1000;
  absl::Status status;
  int shadows = 0;
  std::vector<RecoveryRequest> edits;
  std::function<void(const RecoveryRequest&)> on_recover;
  uint64_t noise = 1;
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_EXPERIMENT_PLACEMENT_INJECTOR_H_
