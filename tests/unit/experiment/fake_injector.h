// tests/unit/experiment/fake_injector.h - an injector without a rank: it answers from a table of truths.
//
// Shape    FakeTruth says how the rank behaves and what goes wrong, FakeLog what was done to it.
// Threads  as RankInjector: one call at a time; read the log when the injector's owner has ended.
#ifndef TESTS_UNIT_EXPERIMENT_FAKE_INJECTOR_H_
#define TESTS_UNIT_EXPERIMENT_FAKE_INJECTOR_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "agent/shadow/cache_builder.h"
#include "agent/shadow/rank_injector.h"
#include "core/base/clock.h"

namespace perfd::agent {

// How the loops of the fake rank behave.
struct FakeTruth {
  double ref_cycles = 100'000;
  double live_factor = 1;                // live cycles / shadow cycles, warm
  std::function<double()> live_of_call;  // instead, of each instance that is timed
  double live_spread = 0;                // longest live instance - shortest, / their middle
  double cold_factor = 0;                // cold cycles / warm cycles; 0: the live ones
  double first_factor = 1;               // the same with the first level emptied
  double second_factor = 1;              // and with the second
  double last_thread_factor = 1;         // of the last thread of the team
  double natural_factor = 1;             // where the program itself comes to the loop / warm
  int arrives_until = 1 << 20;           // shadow after which it does not any more
  double first_run_factor = 1;           // of a shadow: it copies what the loop writes
  int64_t copy_ns_per_mb = 0;
  double pause_factor = 1;  // of what the runs predict
  uint64_t probe_cycles = 0;
  std::map<std::string, double> saturation;  // by variant; others: 1
  std::map<std::string, std::string> bases;  // by variant; others: REF
  std::vector<std::string> refused;          // variants that cannot be made
  std::vector<std::string> idle;             // variants that are the loop itself
  std::string faulting;                      // a variant that never gives a result ...
  std::string failure = "SIGSEGV at 0x0";    // ... and why
  RunOutcome outcome = RunOutcome::kFault;
  int32_t team = 2;
  double entries_per_second = 1000;
  int64_t fork_ns = 100'000;
  int64_t later_fault_ns = 50'000;
  int64_t trimmed_ns =
      -1;          // fork and faults of a shadow without the rest of the memory; -1: not possible
  int misses = 0;  // of the first narrowed shadows
  absl::Status trim_status;  // of every narrowed RunShadow
  uint64_t iterations = 5000;
  // Copies that rest on the loop's stores being apart from its load; and the variant whose traced run shows that they are not.
  bool apart = false;
  std::string differing;
  int load_from = 0;                              // shadow from which on its load is executed
  bool counts_variants = true;                    // the injector can make Counted copies
  std::map<std::string, uint64_t> variant_trips;  // by variant; others: as the loop
  // Trips of the instances in turn, instead; times are in proportion. And what is different in shorter ones.
  std::vector<uint64_t> trips;
  std::map<std::string, double> short_saturation;
  // Chains, if any: how many instances one gets to at most, what lies between costs as a factor, and variants without.
  absl::Status batches = absl::NotFoundError("no loop is around it");
  uint64_t most_instances = 1 << 20;
  double around_factor = 1;
  double live_batch_factor =
      0;  // cycles of a turn in the rank / of an instance in a shadow; 0: the rank has no such batches
  std::vector<std::string> not_batched;
  // Whether they may go on from each other, what such runs take of repeated ones' time, and which shadows' are all cut short.
  bool turns = false;
  double successive_factor = 1;
  double alone_factor = 1;  // of successive ones that are timed alone, as live ones are
  int cut_short_from = 1 << 20;
  // Copies stand at several places; what ran at one before in the same shadow takes so much of its time there.
  bool places = false;
  double learnt_factor = 1;
  uint64_t stores =
      1;  // each to a range of its own; the last one of a thread to the next one's first
  bool in_situ = false;         // the first one stores where the loop reads
  bool memory_carried = false;  // a run that follows another without restoring faults
  std::vector<std::string> excluded_paths;
  int32_t ends_by_excluded_path = 1;  // each so many-th instance of a loop with detours; 0: none
  absl::Status shadow_status;         // of every RunShadow
  absl::Status install_status;        // of every loop
  bool shares_code = false;  // every loop with every other: the first that is not released wins
  absl::Status entry_count_status;  // of every CountEntries
  absl::Status live_status;         // of every TimeLive
  absl::Status patch_status;        // of every SetPatched
  // What the next calls answer as a whole, one each; then OK.
  std::vector<absl::Status> install_answers;
  std::vector<absl::Status> add_answers;
  std::vector<absl::Status> uninstall_answers;
  int32_t loops_forgotten = 0;  // entries missing from Install's answer
  int calls_to_live = -1;       // then the rank has ended; -1: it lives on
  // Before each call that may wait, with its name.
  std::function<void(const std::string&)> on_call;
  // The answer to a shadow that ran, to be changed.
  std::function<absl::Status(const ShadowRequest&, ShadowAnswer&)> on_shadow;
};

// Counted by one thread, read by another.
class LiveCount {
 public:
  LiveCount() = default;
  LiveCount(const LiveCount& other) : count_(other) {}
  LiveCount& operator=(const LiveCount& other) {
    count_ = other;
    return *this;
  }
  operator int() const { return count_; }
  void operator++() { ++count_; }

 private:
  std::atomic<int> count_ = 0;
};

// As a shadow without time for it leaves a run.
inline void LeaveOut(ShadowRun& run, const char* why = "not run: time was up") {
  run.ok = false;
  run.outcome = RunOutcome::kNotRun;
  run.failure = why;
}

// What was done to it; outlives the injector.
struct FakeLog {
  int installs = 0;
  LiveCount uninstalls;  // looked at while it runs
  int shadows = 0;
  int restored_runs = 0;
  std::array<int, kEvictLevels> evicting_runs{};  // by Evict
  int successive_runs = 0;
  int natural_runs = 0;
  int learning_runs = 0;
  std::array<int, 3> forms{};                        // runs of one thread, by CopyForm
  uint64_t longest_batch = 0;                        // instances asked for
  std::vector<std::optional<Footprint>> footprints;  // of every shadow
  int64_t pause_ns = 0;
  std::vector<std::pair<int32_t, bool>> patches;
  std::vector<std::string> calls;
  std::vector<LoopToInject> asked;  // to be installed
  std::vector<std::string> added;   // later
  std::set<int32_t> released;
  std::vector<int64_t> waits_ns;  // how long each entry count, timing and shadow might have waited
  std::set<int32_t> jumps;        // loops whose jump is in the text
  bool installed = false;         // something of ours is in the rank
};

class FakeInjector final : public RankInjector {
 public:
  FakeInjector(FakeTruth truth, FakeLog* log) : truth_(std::move(truth)), log_(log) {}

  absl::StatusOr<std::vector<InstalledLoop>> Install(std::vector<LoopToInject> loops) override;
  absl::StatusOr<std::vector<InstalledLoop>> Add(std::vector<LoopToInject> loops) override;
  absl::StatusOr<EntryCount> CountEntries(int32_t, int64_t ns) override {
    log_->waits_ns.push_back(ns);
    if (absl::Status status = Enter("entry_count", truth_.entry_count_status); !status.ok())
      return status;
    return EntryCount{.team = truth_.team, .entries_per_second = truth_.entries_per_second};
  }
  ShadowPrediction PredictShadow() override {
    return {.status = absl::OkStatus(),
            .fork_ns = truth_.fork_ns,
            .later_fault_ns = truth_.later_fault_ns,
            .copy_ns_per_mb = truth_.copy_ns_per_mb};
  }
  ShadowPrediction PredictTrimmed(const Footprint&, int32_t) override {
    if (truth_.trimmed_ns < 0) return {absl::FailedPreconditionError("no luck"), 0, 0, 0};
    return {absl::OkStatus(), truth_.trimmed_ns, 0, 0};
  }
  absl::StatusOr<ShadowAnswer> RunShadow(const ShadowRequest& request) override;
  absl::StatusOr<std::vector<uint64_t>> TimeLive(int32_t, int32_t count,
                                                 int64_t timeout_ns) override {
    log_->waits_ns.push_back(timeout_ns);
    if (absl::Status status = Enter("live", truth_.live_status); !status.ok()) return status;
    std::vector<uint64_t> ticks;
    for (int32_t i = 0; i < count; ++i) {
      const double place = count > 1 ? static_cast<double>(i) / (count - 1) - 0.5 : 0;
      const double factor = truth_.live_of_call ? truth_.live_of_call() : truth_.live_factor;
      ticks.push_back(
          static_cast<uint64_t>(truth_.ref_cycles * factor * (1 + place * truth_.live_spread)));
    }
    return ticks;
  }
  absl::StatusOr<std::vector<LiveBatch>> TimeLiveBatches(int32_t, int32_t count, uint64_t turns,
                                                         int64_t timeout_ns) override {
    log_->waits_ns.push_back(timeout_ns);
    if (absl::Status status = Enter("live batches", truth_.live_status); !status.ok())
      return status;
    if (truth_.live_batch_factor <= 0) return absl::FailedPreconditionError("it has none");
    const double ticks = truth_.ref_cycles * truth_.live_batch_factor * static_cast<double>(turns);
    return std::vector<LiveBatch>(static_cast<size_t>(count),
                                  {static_cast<uint64_t>(ticks), turns});
  }
  absl::Status SetPatched(int32_t loop, bool patched) override {
    if (absl::Status status = Enter("patch", truth_.patch_status); !status.ok()) return status;
    log_->patches.emplace_back(loop, patched);
    if (patched)
      log_->jumps.insert(loop);
    else
      log_->jumps.erase(loop);
    return absl::OkStatus();
  }
  std::optional<int32_t> BlockedBy(int32_t loop) const override {
    const auto by = blocked_.find(loop);
    return by == blocked_.end() ? std::nullopt : std::optional(by->second);
  }
  absl::Status Release(int32_t loop) override {
    if (absl::Status status = SetPatched(loop, false); !status.ok()) return status;
    log_->released.insert(loop);
    return absl::OkStatus();
  }
  absl::Status Uninstall() override;
  std::optional<RuntimeAddress> OriginalAddress(RuntimeAddress address) const override {
    return address - 1;
  }
  InjectionCost cost() const override {
    return {.stops = 2, .stop_ns = 400'000, .longest_stop_ns = 300'000, .shadow_cpu_ns = 9'000'000};
  }

 private:
  std::vector<InstalledLoop> Make(const std::vector<LoopToInject>& loops, bool jumps);
  absl::Status Enter(const std::string& call, const absl::Status& answer);
  static absl::Status Next(std::vector<absl::Status>& answers);
  VariantName BaseOf(const VariantName& name) const;
  ShadowRun Answer(const ShadowRequest& request, int32_t run, int32_t thread);
  void MakeBatches(InstalledLoop* out);
  void ShareCode(InstalledLoop* out);
  static void MakeApart(const LoopToInject& loop, InstalledLoop* out);

  FakeTruth truth_;
  FakeLog* const log_;
  std::vector<std::vector<VariantName>> names_;
  std::set<int32_t> accepted_;          // where loops share code
  std::map<int32_t, int32_t> blocked_;  // the others, by which
  uint64_t noise_ = 1;
  uint64_t trips_ = 0;  // of the instance that runs
};

inline absl::Status FakeInjector::Enter(const std::string& call, const absl::Status& answer) {
  log_->calls.push_back(call);
  if (truth_.on_call) truth_.on_call(call);
  if (truth_.calls_to_live == 0) {
    // Its memory went with it.
    log_->installed = false;
    log_->jumps.clear();
    return absl::NotFoundError("the process has ended");
  }
  if (truth_.calls_to_live > 0) --truth_.calls_to_live;
  return answer;
}

inline absl::Status FakeInjector::Next(std::vector<absl::Status>& answers) {
  if (answers.empty()) return absl::OkStatus();
  const absl::Status first = answers.front();
  answers.erase(answers.begin());
  return first;
}

inline absl::Status FakeInjector::Uninstall() {
  ++log_->uninstalls;
  if (absl::Status status = Enter("uninstall", Next(truth_.uninstall_answers)); !status.ok())
    return status;
  log_->installed = false;
  log_->jumps.clear();
  return absl::OkStatus();
}

inline VariantName FakeInjector::BaseOf(const VariantName& name) const {
  const auto it = truth_.bases.find(name.Text());
  return it == truth_.bases.end() ? SingleVariant(Change::kRef) : *ParseVariantName(it->second);
}

inline absl::StatusOr<std::vector<InstalledLoop>> FakeInjector::Install(
    std::vector<LoopToInject> loops) {
  ++log_->installs;
  log_->asked = loops;
  if (absl::Status status = Enter("install", Next(truth_.install_answers)); !status.ok())
    return status;
  std::vector<InstalledLoop> installed = Make(loops, true);
  installed.resize(installed.size() - static_cast<size_t>(truth_.loops_forgotten));
  return installed;
}

inline absl::StatusOr<std::vector<InstalledLoop>> FakeInjector::Add(
    std::vector<LoopToInject> loops) {
  if (absl::Status status = Enter("add", Next(truth_.add_answers)); !status.ok()) return status;
  for (const LoopToInject& loop : loops) log_->added.push_back(loop.loop_id);
  return Make(loops, false);
}

inline std::vector<InstalledLoop> FakeInjector::Make(const std::vector<LoopToInject>& loops,
                                                     bool jumps) {
  log_->installed = true;
  std::vector<InstalledLoop> installed;
  for (const LoopToInject& loop : loops) {
    InstalledLoop out;
    out.status = truth_.install_status;
    if (truth_.shares_code) ShareCode(&out);
    out.excluded_paths = truth_.excluded_paths;
    out.names = {SingleVariant(Change::kRef), SingleVariant(Change::kCount),
                 SingleVariant(Change::kTrace)};
    for (const VariantName& name : loop.variants) {
      const bool refused = std::find(truth_.refused.begin(), truth_.refused.end(), name.Text()) !=
                           truth_.refused.end();
      if (refused)
        out.refusals.push_back({name.Text(), 0, "the loop has none", 1});
      else
        out.names.push_back(name);
      if (const VariantName base = BaseOf(name);
          std::find(out.names.begin(), out.names.end(), base) == out.names.end())
        out.names.push_back(base);
    }
    const size_t variants = truth_.counts_variants ? out.names.size() : 0;
    for (size_t i = 3; i < variants; ++i) out.names.push_back(Counted(out.names[i]));
    for (size_t i = 0; i < out.names.size(); ++i) {
      CodeCopy copy;
      copy.base = BaseOf(out.names[i]);
      for (int32_t place = 1; truth_.places && place < kPlacements; ++place)
        copy.places.shifts.push_back(64 * static_cast<uint64_t>(place));
      const std::string name = out.names[i].Text();
      const bool idle =
          std::find(truth_.idle.begin(), truth_.idle.end(), name) != truth_.idle.end();
      copy.changed.resize(idle ? 0 : i);
      copy.edits.changed = static_cast<int32_t>(copy.changed.size());
      copy.edits.pinned = static_cast<int32_t>(i) + 1;
      copy.edits.accesses = static_cast<int32_t>(i) + 2;
      copy.references = {{.instruction = loop.code.header,
                          .reads = true,
                          .writes = false,
                          .bytes = 8,
                          .group = 0}};
      copy.references.resize(1 + truth_.stores, {.instruction = loop.code.header + 4,
                                                 .reads = false,
                                                 .writes = true,
                                                 .bytes = 8,
                                                 .group = 1});
      out.copies.push_back(copy);
    }
    MakeBatches(&out);
    if (truth_.apart) MakeApart(loop, &out);
    if (jumps && out.status.ok()) log_->jumps.insert(static_cast<int32_t>(names_.size()));
    names_.push_back(out.names);
    installed.push_back(std::move(out));
  }
  return installed;
}

inline void FakeInjector::ShareCode(InstalledLoop* out) {
  for (const int32_t other : accepted_) {
    if (log_->released.count(other) > 0) continue;
    out->status = absl::FailedPreconditionError("it shares code with another loop");
    blocked_[static_cast<int32_t>(names_.size())] = other;
    return;
  }
  accepted_.insert(static_cast<int32_t>(names_.size()));
}

inline void FakeInjector::MakeBatches(InstalledLoop* out) {
  out->batches = truth_.batches;
  for (size_t i = 0; i < out->names.size() && truth_.batches.ok(); ++i) {
    const std::string name = out->names[i].Text();
    const bool refused = std::find(truth_.not_batched.begin(), truth_.not_batched.end(), name) !=
                         truth_.not_batched.end();
    if (refused)
      out->batched.push_back(absl::FailedPreconditionError("it prepares each instance"));
    else
      out->batched.push_back(out->copies[i]);
    if (truth_.turns && out->batched.back().ok()) out->batched.back()->places.turn = 1;
  }
}

inline void FakeInjector::MakeApart(const LoopToInject& loop, InstalledLoop* out) {
  ApartCopies& set = out->apart.emplace();
  for (size_t i = 0; i < out->names.size(); ++i) {
    CodeCopy copy = out->copies[i];
    if (i > 2) copy.pairs.taken_apart = {{loop.code.header + 4, loop.code.header}};
    if (i > 2) copy.edits.pinned += 100;
    set.copies.emplace_back(copy);
    set.traced.emplace_back(copy);
  }
}

inline ShadowRun FakeInjector::Answer(const ShadowRequest& shadow, int32_t run, int32_t thread) {
  const RunSpec& request = shadow.runs[static_cast<size_t>(run)];
  const std::vector<VariantName>& names = names_[static_cast<size_t>(shadow.loop)];
  const std::string name = names[static_cast<size_t>(request.variant)].Text();
  ShadowRun out{.run = run,
                .thread = thread,
                .cycles = 0,
                .iterations = 0,
                .ok = name != truth_.faulting,
                .outcome = truth_.outcome,
                .failure = ""};
  if (truth_.memory_carried && run > 0 && !request.restore) out.ok = false;
  if (!out.ok) out.failure = truth_.failure;
  noise_ = noise_ * 6364136223846793005u + 1442695040888963407u;
  const double jitter = 1 + 0.01 * static_cast<double>(noise_ >> 40) / static_cast<double>(1 << 24);
  const auto& saturation = trips_ < truth_.iterations ? truth_.short_saturation : truth_.saturation;
  const auto it = saturation.find(name);
  double cycles = truth_.ref_cycles * jitter * (it == saturation.end() ? 1 : it->second);
  cycles *= static_cast<double>(trips_) / static_cast<double>(truth_.iterations);
  if (request.evict == Evict::kFirst) cycles *= truth_.first_factor;
  if (request.evict == Evict::kSecond) cycles *= truth_.second_factor;
  if (request.evict == Evict::kAll)
    cycles *= truth_.cold_factor > 0 ? truth_.cold_factor : truth_.live_factor;
  const auto before = shadow.runs.begin() + run;
  if (std::any_of(shadow.runs.begin(), before, [&](const RunSpec& earlier) {
        return earlier.variant == request.variant && earlier.place == request.place;
      }))
    cycles *= truth_.learnt_factor;
  if (request.successive) {
    cycles *= truth_.successive_factor * (request.instances == 1 ? truth_.alone_factor : 1);
    if (thread == 0) ++log_->successive_runs;
    if (log_->shadows > truth_.cut_short_from) out.ok = false, out.outcome = RunOutcome::kCutShort;
  }
  if (request.natural) {
    cycles *= truth_.natural_factor;
    if (thread == 0) ++log_->natural_runs;
    if (log_->shadows > truth_.arrives_until) out.ok = false, out.outcome = RunOutcome::kNotRun;
  }
  if (thread + 1 == shadow.team) cycles *= truth_.last_thread_factor;
  if (run == 0) cycles *= truth_.first_run_factor;
  if (request.instances > 0) {
    out.instances = std::min(request.instances, truth_.most_instances);
    cycles *= static_cast<double>(out.instances) * truth_.around_factor;
    log_->longest_batch = std::max(log_->longest_batch, request.instances);
  }
  out.cycles = static_cast<uint64_t>(cycles) + truth_.probe_cycles;
  if (name == "COUNT") out.iterations = trips_;
  if (absl::StartsWith(name, "COUNT+")) {
    const auto other = truth_.variant_trips.find(name.substr(6));
    out.iterations = other == truth_.variant_trips.end() ? trips_ : other->second;
  }
  const bool traced = name == "TRACE" || request.form == CopyForm::kApartTraced;
  if (traced) out.iterations = trips_;
  out.differs = request.form == CopyForm::kApartTraced && name == truth_.differing;
  if (thread == 0) ++log_->forms[static_cast<size_t>(request.form)];
  out.iterations *= out.instances;
  if (traced) out.iterations = std::min(out.iterations, request.iteration_limit);
  log_->restored_runs += request.restore ? 1 : 0;
  if (thread == 0) ++log_->evicting_runs[static_cast<size_t>(request.evict)];
  log_->learning_runs += request.learn ? 1 : 0;
  return out;
}

inline absl::StatusOr<ShadowAnswer> FakeInjector::RunShadow(const ShadowRequest& request) {
  log_->waits_ns.push_back(request.timeout_ns);
  if (absl::Status status = Enter("shadow", truth_.shadow_status); !status.ok()) return status;
  log_->footprints.push_back(request.footprint);
  if (request.footprint && !truth_.trim_status.ok()) return truth_.trim_status;
  const auto instance = static_cast<size_t>(log_->shadows++);
  trips_ = truth_.trips.empty() ? truth_.iterations : truth_.trips[instance % truth_.trips.size()];
  ShadowAnswer answer;
  if (request.footprint) answer.missed_memory = truth_.misses-- > 0;
  answer.outcome = "done";
  answer.probe_cycles = truth_.probe_cycles;
  answer.fork_ns = truth_.fork_ns;
  answer.pause_begin_ns = SystemClock().MonotonicNs();
  answer.pause_ns = truth_.fork_ns;
  for (size_t run = 0; run < request.runs.size(); ++run) {
    for (int32_t thread = 0; thread < request.team; ++thread) {
      answer.runs.push_back(Answer(request, static_cast<int32_t>(run), thread));
      if (thread == 0) answer.pause_ns += static_cast<int64_t>(answer.runs.back().cycles) / 2;
    }
  }
  answer.pause_ns =
      static_cast<int64_t>(static_cast<double>(answer.pause_ns) * truth_.pause_factor);
  answer.traces.assign(static_cast<size_t>(request.team), {{0x10000, 0x10800, 0x10000, 257}});
  uint64_t written = truth_.in_situ ? 0x10000 : 0x90000;
  for (std::vector<TraceRecord>& trace : answer.traces) {
    for (uint64_t i = 0; i < truth_.stores; ++i) {
      const uint64_t begin = written + i * 0x2000;
      trace.push_back({begin, begin + 0x800, begin, 257});
    }
    written += (truth_.stores - 1) * 0x2000;
  }
  if (log_->shadows < truth_.load_from) {
    for (std::vector<TraceRecord>& trace : answer.traces) trace.front() = {~uint64_t{0}, 0, 0, 0};
  }
  if (truth_.on_shadow) {
    if (absl::Status status = truth_.on_shadow(request, answer); !status.ok()) return status;
  }
  if (!truth_.excluded_paths.empty()) {
    const bool by_excluded_path =
        truth_.ends_by_excluded_path > 0 && log_->shadows % truth_.ends_by_excluded_path == 0;
    answer.left_by_excluded_path.assign(static_cast<size_t>(request.team), false);
    answer.left_by_excluded_path.back() = by_excluded_path;
  }
  log_->pause_ns += answer.pause_ns;
  return answer;
}

}  // namespace perfd::agent

#endif  // TESTS_UNIT_EXPERIMENT_FAKE_INJECTOR_H_
