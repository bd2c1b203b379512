// core/model/loop_measurement.h - what the variants of one loop told on one rank.
//
// Shape    a LoopMeasurement replaces every earlier one with the same (profile, node, pid, loop): it is cumulative, so
//          merging is "the highest revision wins" and order does not matter.
// Units    cycles are TSC cycles per loop instance (entry to exit), probe cost subtracted; intervals are 95 %.
// Source   Sat(V, base) = T(V) / T(base): Bendifallah 2015, 4.3; stability (median - min) / min: ibid. 8.5.
#ifndef CORE_MODEL_LOOP_MEASUREMENT_H_
#define CORE_MODEL_LOOP_MEASUREMENT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/code.h"
#include "core/model/provenance.h"

namespace perfd {

// A ratio with its 95 % interval; value 0 with low == high == 0: not measured. A value with low == high == 0 has no interval.
struct Ratio {
  double value = 0;
  double low = 0;
  double high = 0;

  bool has_interval() const { return high > 0; }

  bool operator==(const Ratio&) const = default;
};

// What the caches held before each run of a shadow.
enum class CachesBefore : uint8_t {
  kUnknown,
  kWarm,       // what the run before it left there
  kL1Evicted,  // the first level was emptied
  kL2Evicted,  // the second as well
  kCold,       // all were
};
inline constexpr int kCachesBeforeCount = 5;

// Why the loop takes another time in shadows than in the rank itself, as far as that is known.
enum class FidelityReason : uint8_t {
  kUnknown,
  kWarmerCaches,  // more than the first level holds, and runs in place find it nearer than the program does
  kColderCaches,  // warm runs are faster than the program, and those after emptying caches are slower
  kBetween,       // runs over many instances hold what lies between them
  kSharedLines,  // lines are shared between threads, and what they cost depends on who comes when
};
inline constexpr int kFidelityReasonCount = 5;
const char* FidelityReasonKey(FidelityReason reason);   // "warmer_caches"; "" of kUnknown
const char* FidelityReasonName(FidelityReason reason);  // for people; "" of kUnknown

// T(REF, shadow) / T(REF, live) with its 95 % interval, drawn from live instances and from runs in shadows; and what it is of.
// Value 0: not measured.
struct Fidelity {
  double value = 0;
  double low = 0;
  double high = 0;
  uint64_t live_instances = 0;  // that were timed in the rank itself; 0: not told
  uint32_t runs = 0;            // of REF in shadows
  uint32_t shadows = 0;
  CachesBefore caches = CachesBefore::kUnknown;
  FidelityReason reason = FidelityReason::kUnknown;

  Ratio ratio() const { return {value, low, high}; }
  bool operator==(const Fidelity&) const = default;
};

// What is known of a refusal besides its text.
enum class RefusalKind : uint8_t {
  kOther,
  kMachineChanged,  // the runs around it differ: the next ones may not
  kNotRun,          // the shadow had no time left for it
};

// Why a run did not count, or a loop or variant was not measured at all.
struct Refusal {
  std::string variant;       // canonical name; empty: the whole loop
  uint64_t instruction = 0;  // ELF address of the culprit; 0: none
  std::string reason;        // for people, with the instruction's text
  uint64_t count = 1;        // runs, where runs were invalid
  RefusalKind kind = RefusalKind::kOther;

  bool operator==(const Refusal&) const = default;
};

// What a variant did to the instructions of its loop.
struct EditCounts {
  int32_t changed = 0;   // instructions
  int32_t kept = 0;      // of the variant's class, that had to stay as they are
  int32_t pinned = 0;    // DL1: accesses
  int32_t accesses = 0;  // memory accesses of the loop body
  // Nothing that was changed lies on a chain of dependences on which the value of an access comes back to an address, or through memory to
  // an access. False: it may, or it is not known.
  bool unchained = false;
  // Passes may wait for each other through memory - what one has stored the next loads, computes with and stores again - and something
  // of this was changed: the variant would be faster also where memory and arithmetic are not the limit.
  bool cuts_memory_chain = false;

  bool operator==(const EditCounts&) const = default;
};

// Of a figure, to have an interval that means something.
inline constexpr uint32_t kLeastRuns = 3;

inline constexpr int32_t kTeam = -1;  // the slowest thread of each instance

struct VariantFigures {
  std::string variant;     // canonical name (core/model/variant_name.h)
  std::string base;        // REF, REF_FTZ or REF_CTL
  int32_t thread = kTeam;  // index of the thread in the team, or kTeam
  Ratio saturation;        // median of the runs paired with their neighbouring base
  double cycles = 0;       // median per instance
  double cycles_min = 0;
  double iterations = 0;  // median trip count of the instances
  double stability = 0;
  uint32_t valid_runs = 0;
  uint32_t invalid_runs = 0;
  uint32_t shadows = 0;  // independent loop instances behind the runs
  EditCounts edits;

  bool operator==(const VariantFigures&) const = default;
};

// With its interval where there are runs enough for one.
Ratio ShownRatio(const VariantFigures& figures);

// Trip counts of the instances seen, in ten equal shares from short to long.
struct TripCounts {
  uint64_t instances = 0;
  std::array<double, 11> decile{};  // minimum, 10 % ... 90 %, maximum

  bool operator==(const TripCounts&) const = default;
};

// Instances of like length, judged apart from the others. Only made where trip counts differ a lot
// (core/analysis/trip_classes.h).
struct TripClass {
  uint64_t shortest = 0;  // trips of its shortest instance, on the thread that makes most
  uint64_t longest = 0;
  uint32_t instances = 0;
  std::vector<VariantFigures> figures;  // of the team; bases included

  bool operator==(const TripClass&) const = default;
};

// What one instruction touched in the traced instance.
struct TracedReference {
  uint64_t instruction = 0;  // ELF address
  bool reads = false;
  bool writes = false;
  int32_t group = -1;    // static group
  int32_t bytes = 0;     // per access
  uint64_t lowest = 0;   // run-time addresses
  uint64_t highest = 0;  // one past the last byte
  // Of lines that one thread writes and another touches, often enough to matter. False: not, or not known.
  bool shared = false;
  bool operator==(const TracedReference&) const = default;
};

// One line of the assembly listing; `original` and `changed` side by side.
struct ListingLine {
  uint64_t address = 0;  // ELF address
  std::string original;
  std::string changed;  // empty: the same
  bool operator==(const ListingLine&) const = default;
};

struct VariantListing {
  std::string variant;
  std::vector<ListingLine> lines;
  bool operator==(const VariantListing&) const = default;
};

// What measuring cost the rank, in ns of wall time.
struct InjectionCost {
  uint64_t stops = 0;
  int64_t stop_ns = 0;
  int64_t longest_stop_ns = 0;
  uint64_t shadows = 0;
  uint64_t failed_arms = 0;  // the team did not meet in time
  int64_t pause_ns = 0;      // the team waited for shadows
  int64_t longest_pause_ns = 0;
  int64_t later_fault_ns = 0;   // estimated: first writes to pages the fork had write-protected
  int64_t pass_through_ns = 0;  // estimated: entries x cost of an idle entry
  uint64_t recoveries = 0;      // recovery mode: copies that ran in the rank itself
  int64_t recovery_ns = 0;      // what they added to its entries
  int64_t shadow_cpu_ns = 0;    // CPU time of shadows, which counts to the rank's children

  bool operator==(const InjectionCost&) const = default;
};

// Of a dry run: what one shadow of the loop would cost, in ns of wall time. All zero: not predicted.
struct PredictedCost {
  int64_t fork_ns = 0;         // the team waits while the rank is forked
  int64_t later_fault_ns = 0;  // afterwards: first writes to pages the fork has protected
  // The longest that the runs may take: how long they do take is known once an instance was timed.
  int64_t most_run_ns = 0;

  bool operator==(const PredictedCost&) const = default;
};

// LoopMeasurement::protocol of copies that ran in the rank itself.
inline constexpr char kInSituProtocol[] = "recovery";
// LoopMeasurement::protocol of runs that go on from each other, over instances that nothing has touched before.
inline constexpr char kSuccessiveProtocol[] = "successive instances";
inline constexpr char kNaturalProtocol[] = "natural arrivals";

enum class MeasureState { kOpen, kMeasured, kRefused, kNeverEntered };

const char* MeasureStateName(MeasureState state);

// How many ranks a figure was measured on, of those that were asked and enter the loop. All 0: not told.
struct MeasuredRanks {
  uint32_t measured = 0;
  uint32_t asked = 0;

  bool all() const { return measured >= asked; }
  bool operator==(const MeasuredRanks&) const = default;
};

struct LoopMeasurement {
  std::string profile_id;
  std::string node;
  int32_t pid = 0;
  int32_t rank = 0;
  std::string loop_id;       // LocationId of the loop
  std::string location_key;  // LocationKey, for people and for joins
  uint64_t revision = 0;
  MeasureState state = MeasureState::kOpen;
  std::string reason;  // of kRefused, kNeverEntered, and what is still open in kOpen
  int32_t team = 0;    // threads that meet at the loop
  Fidelity fidelity;
  // What the caches held before each run: "warm", "L1 evicted", "L2 evicted", "cold"; "successive instances": what the program
  // left in them; "recovery": runs in the rank itself.
  // ", branches as new": no run stood where the same copy ran before.
  std::string protocol;
  uint64_t instances = 0;  // that one run went on over, times are of one of them; 0: one alone
  TripCounts trips;
  std::vector<TripClass> trip_classes;  // from short to long; none: the instances are alike
  std::vector<VariantFigures> figures;
  std::vector<Refusal> refusals;
  std::vector<std::string> open;  // variants the budget has not yet bought
  std::vector<std::string>
      excluded_paths;  // instructions (calls) on paths left out: measured is what lies between them
  std::vector<TracedReference> references;
  std::vector<VariantListing> listings;
  InjectionCost cost;
  PredictedCost predicted;  // of a dry run; `open` then names the variants that could be made
  Provenance provenance = Provenance::kShadow;

  bool operator==(const LoopMeasurement&) const = default;
};

// Some of its accesses are to lines that threads take away from each other.
bool SharesLines(const LoopMeasurement& loop);

// The actions of the audit log; whatever else an agent says counts as the last.
inline constexpr std::array<const char*, 8> kAuditActions = {
    "map", "install", "shadow", "restore", "unmap", "heal", "recovery", "other"};
size_t AuditActionIndex(const std::string& action);

// Who stands behind an entry of the audit log. In the store both are perfd's own words, not the agent's.
struct AuditOrigin {
  std::string requester;  // user name or uid
  std::string
      brought_by;  // the connection: "uid 30001", "certificate agent/node1"; empty: not known

  bool operator==(const AuditOrigin&) const = default;
};

// One injection into a rank, for the audit log. Never altered once written.
struct AuditEntry {
  int64_t unix_ns = 0;
  std::string profile_id;
  AuditOrigin origin;
  std::string node;
  int32_t pid = 0;
  std::string loop_id;         // empty: the whole rank (map, unmap)
  std::string action;          // "map", "install", "shadow", "recovery", "restore", "unmap", "heal"
  uint64_t address = 0;        // run-time address of changed text
  std::string original_bytes;  // hex
  std::string written_bytes;   // hex
  int64_t pause_ns = 0;
  std::string outcome;  // "ok" or what went wrong

  bool operator==(const AuditEntry&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_LOOP_MEASUREMENT_H_
