// agent/shadow/rank_injector.h - experiments on the loops of one running rank: install copies, run shadows, take everything out.
//
// Shape    Open -> Install (once) -> any number of Add / CountEntries / RunShadow / TimeLive -> Uninstall. Waiting is
//          sleeping; every call has a bound. Several injectors (ranks of one node) may run their shadows at the same time.
// Units    ns of CLOCK_MONOTONIC; cycles are TSC ticks, the cost of the probes included (see ShadowAnswer::probe_cycles).
// Errors   kFailedPrecondition: unsafe, the reason is in the message (P6); kUnavailable: not at this moment, try again;
//          kNotFound: the rank is gone; kDeadlineExceeded: the loop was not entered or the team did not meet in time;
//          kOutOfRange: the team did not meet, though its threads came; kAborted: memory could not be left out of a shadow,
//          a whole one may still do.
// Threads  thread-compatible; OriginalAddress is thread-safe. The Tracer is called from the thread that calls the injector.
// Source   design section 6; hazards.
#ifndef AGENT_SHADOW_RANK_INJECTOR_H_
#define AGENT_SHADOW_RANK_INJECTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/attach/tracer.h"
#include "agent/procfs/admission.h"
#include "agent/shadow/calls/trapped_call.h"
#include "agent/shadow/cpu_state.h"
#include "agent/shadow/forking/trimmed_fork.h"
#include "agent/shadow/journal.h"
#include "agent/shadow/recovery_request.h"
#include "agent/variant/batch.h"
#include "agent/variant/copy.h"
#include "agent/variant/loop_code.h"
#include "agent/variant/thread_block.h"
#include "core/analysis/saturation.h"
#include "core/base/address.h"
#include "core/model/identity.h"
#include "core/model/loop_measurement.h"

namespace perfd::agent {

struct InjectorOptions {
  Tracer* tracer = nullptr;                  // none: the injector can only rehearse
  const Journal* journal = nullptr;          // of the node; none: nothing is altered
  std::optional<Admission> admitted;         // none: as it is found when it is opened
  int64_t max_stop_ns = 20'000'000;          // budget.stop
  int64_t max_shadow_ns = 500'000'000;       // budget.shadow
  int64_t heal_patience_ns = 5'000'000'000;  // of one rank, with what is in the way
  int32_t ranks_at_once = 1;                 // of the node, whose shadows may run at the same time
  bool recovery = false;  // copies may run in the rank itself (outside P1): site AND request say so
  // True: whatever waits for the rank gives up, nothing more is begun (kCancelled). May be empty; called by who waits.
  std::function<bool()> cancelled;
  // Not OK: whoever reads the rank's memory now waits with it; asked before a rank is opened and before
  // it is restored. May be empty.
  std::function<absl::Status(int32_t pid)> answers;
  std::function<void(AuditEntry)>
      audit;  // every change of the rank; profile and requester are filled in by the caller
};

struct LoopToInject {
  std::string loop_id;
  LoopCode code;
  // In private memory of the program's own, which was seen to be a file's code. Other code of no file is never altered.
  bool moved = false;
  // Not OK: the loop is run one instance at a time.
  absl::StatusOr<BatchCode> batch =
      absl::UnimplementedError("the code around the loop was not decoded");
  std::vector<VariantName>
      variants;  // REF, COUNT and TRACE are always made, and every base that a variant needs
  // The same two where more may be changed once a trace has shown accesses to be apart. None: nothing more could be.
  std::optional<LoopCode> apart;
  std::optional<BatchCode> batch_apart;
};

// The copy of a variant that also counts its passes: it shows whether the variant makes as many as the loop.
VariantName Counted(VariantName name);

// Copies that rest on accesses being apart (CodeCopy::taken_apart), one of each kind per name; not OK: it could not be made. REF,
// COUNT and TRACE rest on nothing. `traced` show whether the variant accesses what the loop does.
struct ApartCopies {
  std::vector<absl::StatusOr<CodeCopy>> copies;
  std::vector<absl::StatusOr<CodeCopy>> traced;
};

// What became of a loop's copies. Indices are those of RunSpec::variant.
struct InstalledLoop {
  absl::Status status;             // not OK: the loop is refused
  std::vector<VariantName> names;  // REF, COUNT, TRACE, what could be made, Counted ones of these
  std::vector<CodeCopy> copies;    // one per name
  std::vector<std::pair<uint64_t, std::string>> texts;  // of the loop's instructions, by address
  std::vector<Refusal> refusals;                        // variants that could not be made
  std::vector<absl::StatusOr<CodeCopy>> batched;  // over many instances (agent/variant/batch.h)
  absl::Status batches =
      absl::UnimplementedError("no copies over many instances were made");  // not OK: none can
  std::vector<std::string> excluded_paths;  // paths that the copies leave out
  absl::Status in_situ = absl::UnimplementedError(
      "whether its copies may run in the rank itself was not found out");  // OK: see Recover
  std::vector<bool> in_situ_copies;                 // which of the copies may
  std::optional<ApartCopies> apart, batched_apart;  // none: no more could be changed
};

// Which copy of a variant is run.
enum class CopyForm : uint8_t { kUsual, kApart, kApartTraced };

struct EntryCount {
  int32_t team = 0;               // threads that enter the loop
  double entries_per_second = 0;  // of the whole rank
};

// Instances that a thread of the rank ran through, one after the other.
struct LiveBatch {
  uint64_t ticks = 0;  // without what reading them costs
  uint64_t turns = 0;  // of the loop around (agent/variant/batch.h)
};

struct RunSpec {
  int32_t variant = 0;
  CopyForm form = CopyForm::kUsual;
  int32_t place = 0;              // counted round: 0 is CodeCopy::entry, others follow its shifts
  Evict evict = Evict::kNothing;  // before
  bool restore = false;           // copy ShadowRequest::restores back before
  bool learn = false;  // afterwards, note what it changed of them: later runs restore only that
  // Of a batch: goes on with the instances after those of the last such run, which nothing has touched yet.
  bool successive = false;
  // Made when the team, which goes on through the program's own code in the shadow, comes to the loop again.
  bool natural = false;
  int64_t warm_ns = 0;    // of the first such run: arrivals pass for so long before
  bool baseline = false;  // TRACE: those of kApartTraced after it are held against what it says
  uint64_t iteration_limit = 0;  // of what counts or traces only; 0: none
  uint64_t instances =
      0;  // in a chain, at most so many; 0: this one, and no chain (a step fills in the loop's)
};

// Runs that one shadow of such a team may have, RunSpec::learn and all; the injector's own come on top.
int32_t MostRuns(int32_t team);

// What the runs of a shadow write, each page of which becomes a copy; and what they read.
struct WrittenMemory {
  uint64_t most_bytes = 0;
  std::vector<std::pair<uint64_t, uint64_t>>
      ranges;  // that are known and not brought back: address, bytes
  // Each page of these is read once before the runs, for it is as the fork left it.
  std::vector<std::pair<uint64_t, uint64_t>> read_once;
};

struct ShadowRequest {
  int32_t loop = 0;
  int32_t team = 1;
  int64_t countdown = 0;   // entries to let pass first
  int64_t shadow_ns = 0;   // hard limit of the pause; at most InjectorOptions::max_shadow_ns
  int64_t timeout_ns = 0;  // for the loop to be entered and the team to meet
  // CLOCK_MONOTONIC: it is armed no earlier and disarmed by then (core/model/pause_lease.h); 0: at once, for timeout_ns.
  int64_t arm_from_ns = 0, arm_until_ns = 0;
  std::vector<RunSpec> runs;
  WrittenMemory written;
  std::vector<std::pair<uint64_t, uint64_t>> restores;  // address, bytes
  std::vector<int32_t> writers;  // of restores: the only thread that does; -1, or none: unknown
  std::optional<Footprint> footprint;  // set: large memory outside it is left out of the shadow
};

struct ShadowRun {
  int32_t run = 0;     // index into ShadowRequest::runs
  int32_t thread = 0;  // place in the team
  uint64_t cycles = 0;
  uint64_t iterations = 0;    // 0 where the copy does not count
  uint64_t inner_passes = 0;  // likewise, of all loops inside the loop
  uint64_t instances = 1;     // that were run; of a chain the first one is what was left of it
  // Of kApartTraced: the variant did not access the same as the loop, or went another way.
  bool differs = false;
  bool ok = false;
  RunOutcome outcome = RunOutcome::kFault;  // of those that are not ok
  std::string failure;  // "SIGSEGV at 0x... (instruction 0x...)", "not run: time was up"
};

struct ShadowAnswer {
  std::vector<ShadowRun> runs;
  std::vector<std::vector<TraceRecord>>
      traces;  // per thread, of the last TRACE run; index as CodeCopy::references
  // Per thread: the last run that counted or traced left through a path that the copies leave out. Empty: it has none.
  std::vector<bool> left_by_excluded_path;
  uint64_t probe_cycles = 0;   // an empty copy, median of the shadow's own runs of it
  int64_t pause_begin_ns = 0;  // CLOCK_MONOTONIC
  int64_t pause_ns = 0;        // the team stood still
  int64_t fork_ns = 0;
  int64_t later_fault_ns = 0;  // to be expected in the rank, of what was forked
  int32_t failed_gathers = 0;
  std::string outcome;                 // "done", or what ended it early
  std::optional<TrappedCall> trapped;  // the system call that ended it
  bool missed_memory = false;          // the first fault was at memory that had been left out
};

// What the next shadow of this rank would cost by /proc/PID/smaps_rollup and the rates measured so far.
struct ShadowPrediction {
  absl::Status status;  // kFailedPrecondition: refused, and why (memory headroom, O_DIRECT, ...)
  int64_t fork_ns = 0;
  int64_t later_fault_ns = 0;  // in the rank, afterwards
  int64_t copy_ns_per_mb = 0;  // of what the runs write, in the shadow
};

class RankInjector {
 public:
  virtual ~RankInjector() = default;

  // Checks that the rank may be touched at all (P6), and is the one that was admitted; maps nothing yet.
  static absl::StatusOr<std::unique_ptr<RankInjector>> Open(const RankInfo& rank,
                                                            InjectorOptions options);

  // One entry per loop, in order. Not OK as a whole: nothing was left in the rank, and it may be tried again.
  virtual absl::StatusOr<std::vector<InstalledLoop>> Install(std::vector<LoopToInject> loops) = 0;
  // More loops, once some are installed: numbers go on, and the loops that are there go on undisturbed. The jumps of the new
  // ones are not in the text yet: SetPatched puts them in. Not OK: nothing has changed for the others.
  virtual absl::StatusOr<std::vector<InstalledLoop>> Add(
      std::vector<
          LoopToInject> /*loops*/) {  // NOLINT(performance-unnecessary-value-param): taken over
    return absl::UnimplementedError("this injector takes no loops later");
  }
  // What Install would answer: everything is laid out and built, the rank is only read. Instead of Install, once.
  virtual absl::StatusOr<std::vector<InstalledLoop>> Rehearse(
      std::vector<
          LoopToInject> /*loops*/) {  // NOLINT(performance-unnecessary-value-param): taken over
    return absl::UnimplementedError("this injector cannot rehearse");
  }
  virtual absl::StatusOr<EntryCount> CountEntries(int32_t loop, int64_t ns) = 0;
  virtual ShadowPrediction PredictShadow() = 0;
  // The same, of a shadow without the memory outside the footprint. kFailedPrecondition: the rank must not be narrowed.
  virtual ShadowPrediction PredictTrimmed(const Footprint& /*footprint*/, int32_t /*team*/) {
    return {absl::UnimplementedError("this injector cannot leave memory out"), 0, 0, 0};
  }
  virtual absl::StatusOr<ShadowAnswer> RunShadow(const ShadowRequest& request) = 0;
  // Ticks of the next `count` instances of the unchanged loop in the rank itself, without what reading them costs.
  virtual absl::StatusOr<std::vector<uint64_t>> TimeLive(int32_t loop, int32_t count,
                                                         int64_t timeout_ns) = 0;
  // The same over batches of `turns` turns, of which threads make one at a time. kFailedPrecondition: this loop has none that can run in the
  // rank.
  virtual absl::StatusOr<std::vector<LiveBatch>> TimeLiveBatches(int32_t /*loop*/,
                                                                 int32_t /*count*/,
                                                                 uint64_t /*turns*/,
                                                                 int64_t /*timeout_ns*/) {
    return absl::UnimplementedError("this injector times no batches in the rank");
  }
  // Only for loops and copies whose InstalledLoop::in_situ says so. Outside P1. Nothing is forked and no thread waits for another.
  virtual absl::StatusOr<RecoveryAnswer> Recover(const RecoveryRequest& /*request*/) {
    return absl::UnimplementedError("this injector has no recovery mode");
  }
  // Takes the jump of one loop out of the text (retreat rule); puts it back with `patched`.
  virtual absl::Status SetPatched(int32_t loop, bool patched) = 0;
  // The loop whose code a refused one shares; none: it was refused for something else.
  virtual std::optional<int32_t> BlockedBy(int32_t /*loop*/) const { return std::nullopt; }
  // Takes the jump of one loop out for good: loops that share its code may be added.
  virtual absl::Status Release(int32_t /*loop*/) {
    return absl::UnimplementedError("this injector lets go of no loop");
  }
  // Restores every byte, checks it, unmaps. Repeats for a few seconds while threads are in the way.
  virtual absl::Status Uninstall() = 0;
  // The original instruction for an address in the code cache: samples there belong to the loop.
  virtual std::optional<RuntimeAddress> OriginalAddress(RuntimeAddress address) const = 0;
  virtual InjectionCost cost() const = 0;
  // kPermissionDenied: its rights are not those of its admission any more. Thread-safe; every call that alters it looks, too.
  virtual absl::Status StillAdmitted() const { return absl::OkStatus(); }
};

// Restores a rank without its agent: from the journal and the region in the rank. OK when nothing of ours is (left) in it.
struct HealReport {
  int32_t pid = 0;
  absl::Status status;
  std::string done;  // "restored 3 loops, unmapped 1.2 MB", "nothing was injected"
};
HealReport HealRank(int32_t pid, const InjectorOptions& options);
// Every rank the journals of the node name; those that are left when options.cancelled says so keep their journals.
std::vector<HealReport> HealAll(const InjectorOptions& options);
// Before a rank is altered: what our journals say an earlier agent has left in it is taken out. kFailedPrecondition: that
// failed, or something is in it that our journals do not know, which may be the work of another agent.
absl::Status HealBefore(const RankInfo& rank, const InjectorOptions& options);

}  // namespace perfd::agent

#endif  // AGENT_SHADOW_RANK_INJECTOR_H_
