// tests/unit/experiment/fake_lab.h - a lab without a rank: it answers from a table of truths.
#ifndef TESTS_UNIT_EXPERIMENT_FAKE_LAB_H_
#define TESTS_UNIT_EXPERIMENT_FAKE_LAB_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/shadow/rank_lab.h"
#include "core/base/clock.h"

namespace perfd {

// How the loops of the fake rank behave.
struct FakeTruth {
  double ref_cycles = 100'000;
  double live_factor = 1;                    // live cycles / shadow cycles, warm
  std::map<std::string, double> saturation;  // by variant; others: 1
  std::vector<std::string> refused;          // variants that cannot be made
  std::string faulting;                      // a variant that faults
  int32_t team = 2;
  double entries_per_second = 1000;
  int64_t fork_ns = 100'000;
  int64_t later_fault_ns = 50'000;
  uint64_t iterations = 5000;
  bool in_place = false;
  absl::Status shadow_status;   // of every RunShadow
  absl::Status install_status;  // of every loop
};

// What was done to it; outlives the lab.
struct FakeLog {
  int installs = 0;
  int uninstalls = 0;
  int shadows = 0;
  int restored_runs = 0;
  int cold_runs = 0;
  int64_t pause_ns = 0;
  std::vector<std::pair<int32_t, bool>> patches;
};

class FakeLab final : public RankLab {
 public:
  FakeLab(FakeTruth truth, FakeLog* log) : truth_(std::move(truth)), log_(log) {}

  absl::StatusOr<std::vector<InstalledLoop>> Install(std::vector<LabLoop> loops) override;
  absl::StatusOr<Census> TakeCensus(int32_t, int64_t) override {
    return Census{.team = truth_.team, .entries_per_second = truth_.entries_per_second};
  }
  ShadowPrediction PredictShadow() override {
    return {.status = absl::OkStatus(),
            .fork_ns = truth_.fork_ns,
            .later_fault_ns = truth_.later_fault_ns,
            .copy_ns_per_mb = 0};
  }
  absl::StatusOr<ShadowAnswer> RunShadow(const ShadowWish& wish) override;
  absl::StatusOr<std::vector<uint64_t>> TimeLive(int32_t, int32_t count, int64_t) override {
    return std::vector<uint64_t>(static_cast<size_t>(count),
                                 static_cast<uint64_t>(truth_.ref_cycles * truth_.live_factor));
  }
  absl::Status SetPatched(int32_t loop, bool patched) override {
    log_->patches.emplace_back(loop, patched);
    return absl::OkStatus();
  }
  absl::Status Uninstall() override {
    ++log_->uninstalls;
    return absl::OkStatus();
  }
  std::optional<uint64_t> OriginalAddress(uint64_t address) const override { return address - 1; }
  InjectionCost cost() const override {
    return {.stops = 2, .stop_ns = 400'000, .longest_stop_ns = 300'000};
  }

 private:
  ShadowRun Answer(const RunWish& wish, int32_t run, int32_t thread);

  const FakeTruth truth_;
  FakeLog* const log_;
  std::vector<std::vector<VariantName>> names_;
  uint64_t noise_ = 1;
};

inline absl::StatusOr<std::vector<InstalledLoop>> FakeLab::Install(std::vector<LabLoop> loops) {
  ++log_->installs;
  std::vector<InstalledLoop> installed;
  for (const LabLoop& loop : loops) {
    InstalledLoop out;
    out.status = truth_.install_status;
    out.names = {SingleVariant(Change::kRef), SingleVariant(Change::kCount),
                 SingleVariant(Change::kTrace)};
    for (const VariantName& name : loop.variants) {
      const bool refused = std::find(truth_.refused.begin(), truth_.refused.end(), name.Text()) !=
                           truth_.refused.end();
      if (refused)
        out.refusals.push_back({name.Text(), 0, "the loop has none", 1});
      else
        out.names.push_back(name);
    }
    for (size_t i = 0; i < out.names.size(); ++i) {
      CodeCopy copy;
      copy.base = SingleVariant(Change::kRef);
      copy.references = {
          {.instruction = loop.code.header, .reads = true, .writes = false, .bytes = 8, .group = 0},
          {.instruction = loop.code.header + 4,
           .reads = false,
           .writes = true,
           .bytes = 8,
           .group = 1}};
      out.copies.push_back(copy);
    }
    names_.push_back(out.names);
    installed.push_back(std::move(out));
  }
  return installed;
}

inline ShadowRun FakeLab::Answer(const RunWish& wish, int32_t run, int32_t thread) {
  const std::string name = names_[0][static_cast<size_t>(wish.variant)].Text();
  ShadowRun out{.run = run,
                .thread = thread,
                .cycles = 0,
                .iterations = 0,
                .ok = name != truth_.faulting,
                .failure = ""};
  if (!out.ok) out.failure = "SIGSEGV at 0x0";
  noise_ = noise_ * 6364136223846793005u + 1442695040888963407u;
  const double jitter = 1 + 0.01 * static_cast<double>(noise_ >> 40) / static_cast<double>(1 << 24);
  const auto it = truth_.saturation.find(name);
  double cycles = truth_.ref_cycles * jitter * (it == truth_.saturation.end() ? 1 : it->second);
  if (wish.cold) cycles *= truth_.live_factor;
  out.cycles = static_cast<uint64_t>(cycles);
  if (name == "COUNT") out.iterations = truth_.iterations;
  if (name == "TRACE") out.iterations = std::min(truth_.iterations, wish.iteration_limit);
  log_->restored_runs += wish.restore ? 1 : 0;
  log_->cold_runs += wish.cold ? 1 : 0;
  return out;
}

inline absl::StatusOr<ShadowAnswer> FakeLab::RunShadow(const ShadowWish& wish) {
  if (!truth_.shadow_status.ok()) return truth_.shadow_status;
  ++log_->shadows;
  ShadowAnswer answer;
  answer.outcome = "done";
  answer.probe_cycles = 0;
  answer.fork_ns = truth_.fork_ns;
  answer.pause_begin_ns = SystemClock().MonotonicNs();
  answer.pause_ns = truth_.fork_ns;
  for (size_t run = 0; run < wish.runs.size(); ++run) {
    for (int32_t thread = 0; thread < wish.team; ++thread) {
      answer.runs.push_back(Answer(wish.runs[run], static_cast<int32_t>(run), thread));
      if (thread == 0) answer.pause_ns += static_cast<int64_t>(answer.runs.back().cycles) / 2;
    }
  }
  const uint64_t written = truth_.in_place ? 0x10000 : 0x90000;
  answer.traces.assign(static_cast<size_t>(wish.team), {{0x10000, 0x10800, 0x10000, 257},
                                                        {written, written + 0x800, written, 257}});
  log_->pause_ns += answer.pause_ns;
  return answer;
}

}  // namespace perfd

#endif  // TESTS_UNIT_EXPERIMENT_FAKE_LAB_H_
