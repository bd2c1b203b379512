// agent/experiment/loop/knowledge.h - all that is known about one loop on one rank, and what follows from it.
//
// Shape    LoopKnowledge is a value: steps write into it what they have learnt, everything else is asked of it. The functions
//          here answer and change nothing; those that forget say so in their names.
// Units    ns of wall time; cycles of the TSC, of one instance where nothing else is said.
// Threads  thread-compatible; the functions are pure.
// Source   design section 6, steps 5 to 8.
#ifndef AGENT_EXPERIMENT_LOOP_KNOWLEDGE_H_
#define AGENT_EXPERIMENT_LOOP_KNOWLEDGE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/experiment/plan/loop_step.h"
#include "agent/experiment/plan/trace_summary.h"
#include "agent/shadow/rank_injector.h"
#include "core/analysis/saturation.h"
#include "core/model/loop_measurement.h"

namespace perfd::agent {

inline constexpr int32_t kRefIndex = 0, kCountIndex = 1, kTraceIndex = 2;  // of every loop's copies
inline constexpr int64_t kFirstEntryCountNs = 50'000'000;

struct LiveTimes {
  double cycles = 0;  // median instance of the slowest thread; 0: not timed
  std::vector<uint64_t> instances;
  std::vector<uint32_t>
      clusters;        // of `instances`, those that resemble each other; none: each for itself
  uint64_t timed = 0;  // instances of the whole team behind them
};

// Of the rank's own run.
struct LiveFindings {
  EntryCount entries;
  int64_t next_count_ns = kFirstEntryCountNs;  // how long the next entry count takes
  LiveTimes times;
  // Where `times` are of batches in the rank, each divided by its turns: those of instances timed one by one. These cannot overlap with
  // their neighbours, as they do in a batch and in the program.
  std::optional<LiveTimes> alone;
  // That `times` were multiplied with, as a shadow has shown: turns that an instance takes, or, of instances timed one by one, what is
  // left where they overlap.
  double factor = 1;
  // Its threads come to the loop each in its own time: a shadow has one of them, and the others go on.
  bool lone = false;
  int32_t missed_gatherings = 0;  // armings in which they did not meet, while none has yet
};
void SetFactor(LiveFindings& live, double factor);
// Of instances one by one, as timed.
void ForgetLiveBatches(LiveFindings& live);

// What the first shadows told: whether runs can follow each other, and what they touch.
struct ProbeFindings {
  TraceSummary trace;
  bool trace_alone = false;             // a probe of several runs failed
  int32_t short_probes = 0;             // over before the loop ran, or little but entry and exit
  bool short_by_excluded_path = false;  // one of them ended in one
};

// What caches and branch predictors hold before each run.
struct Protocol {
  Evict evict = Evict::kNothing;
  bool evict_chosen = false;
  bool new_placements = false;       // no run stands where the same copy stood before
  bool placements_compared = false;  // both ways were compared with live
  // Each run goes on with the instances after those of the last one, as the program does (loop/succession.h).
  bool successive = false;
  bool succession_compared = false;
  // Each run waits until the program comes to the loop by itself (docs/adr/0040-natural-arrivals.md).
  bool natural = false;
  bool natural_compared = false;
  int32_t cut_short = 0;  // shadows one after another in which no such run counted
};

// Instances that one run goes on over (agent/variant/batch.h).
struct BatchState {
  uint64_t instances = 0;  // 0: one alone
  bool tried = false;
  int32_t early_ends = 0;         // batches one after another that were left after few instances
  std::vector<Refusal> refusals;  // why there is none, or of single variants
};

// Which variants run as copies that rest on accesses being apart (loop/apart.h).
struct ApartState {
  std::vector<bool> usable;  // by variant; empty: none
  // One of the accesses was on a path that no thread took. Each shadow shows that its instances do not take it, either.
  bool rests_on_paths = false;
  int32_t other_paths = 0;        // shadows one after another that did, or could not show it
  std::set<std::string> checked;  // variants whose accesses were held against the loop's
  std::vector<Refusal> refusals;  // why none, after all
};

struct TripFindings {
  std::vector<uint64_t> counts;   // one per counted instance; none: the loop was not probed
  std::set<std::string> checked;  // variants whose passes have been counted
  std::vector<Refusal> refusals;  // and who makes not as many as the loop
};

// Shadows without the memory that the loop does not touch.
struct TrimState {
  int32_t misses = 0;          // shadows that touched what had been left out
  int32_t failures = 0;        // one after another
  int32_t guess_failures = 0;  // of what a probe touches
  std::string record;          // why memory cannot be left out
};

// Recovery mode: copies run in the rank itself.
struct InSituState {
  bool on = false;
  std::vector<Refusal> refusals;  // why not, of the loop or of single variants
  uint32_t clusters = 0;          // of runs, so far
  double besides_ns = 0;          // what one run adds besides an instance; 0: not yet known
  std::vector<double> likeness;   // REF against the loop before which nothing ran
};

struct ShadowTotals {
  uint32_t count = 0;
  std::vector<uint64_t> probes;  // of empty copies; of a shadow: one
  double probe_cycles = 0;
  InjectionCost cost;
};

struct RunFindings {
  double cycles = 0;  // of REF in a shadow
  std::vector<RunSample> samples;
  Reduction reduction;
  std::vector<TripClass> trip_classes;
  // What is still wanted, the next first (UpdateMissing); and in further instances only.
  std::vector<std::string> missing, missing_instances;
};

struct LoopKnowledge {
  LoopSetup setup;
  InstalledLoop installed;
  LiveFindings live;
  ProbeFindings probe;
  ApartState apart;
  Protocol protocol;
  BatchState batch;
  TripFindings trips;
  TrimState trim;
  InSituState in_situ;
  ShadowTotals shadows;
  RunFindings runs;
};

// -1: there is none.
int32_t IndexOf(const LoopKnowledge& known, const std::string& variant);
int32_t BaseOf(const LoopKnowledge& known, int32_t variant);
// The form that a variant is run in. The copies of that form, alone or over a batch of instances; null: there are none.
CopyForm FormOf(const LoopKnowledge& known, int32_t variant);
const std::optional<ApartCopies>& ApartCopiesOf(const LoopKnowledge& known);
// The copy of a variant that is run.
const CodeCopy& CopyOf(const LoopKnowledge& known, size_t variant);
bool IsBatched(const LoopKnowledge& known, int32_t variant);
// It tells passes, not times: nobody asked for it.
bool IsTripCheck(const LoopKnowledge& known, int32_t variant);
// It counts how often the loop was entered; others, in a batch, the turns of the loop around it.
bool CountsEntries(const LoopKnowledge& known, const RunSpec& run);
// Which variant makes number `variant` of the loop not worth a run: itself, where its copy is idle, or a part of it that is. Null:
// it is worth it, or may be once it is known what is apart.
const VariantName* IdlePartOf(const LoopKnowledge& known, size_t variant);

bool IsProbed(const LoopKnowledge& known);
int32_t TeamOf(const LoopKnowledge& known);      // threads that enter it; at least 1
int32_t ShadowTeam(const LoopKnowledge& known);  // those that a shadow has; at least 1
// Nothing says that its threads ever meet: they may be looked at one at a time (docs/adr/0039-lone-threads.md).
bool MayBeLone(const LoopKnowledge& known);
// Of reading the clock, for one of the instances that a run goes on over.
double ProbeCyclesOfRun(const LoopKnowledge& known);
double InstanceNs(const LoopKnowledge& known);
double InstancesNs(const LoopKnowledge& known);  // of all that one run goes on over
int64_t EvictNs(Evict level);
int64_t RestoreNs(const LoopKnowledge& known);
// Of a thread, from one entry of the loop to the next.
int64_t PeriodNs(const LoopKnowledge& known);
// Of one run; what is known of it so far.
int64_t RunNs(const LoopKnowledge& known);
// Whether runs learn what to bring back: whole ranges are copied only where that takes little of an instance's time.
bool LearnsWrites(const LoopKnowledge& known);
int64_t LongestShadowNs(const LoopKnowledge& known);  // as it is planned

// Times of another protocol must not be put together with those that come.
void ForgetRuns(LoopKnowledge& known);
// Where runs are of other instances from now on, or of one again: other copies may run (FormOf), whose passes nobody has counted.
void ForgetPasses(LoopKnowledge& known);
// Instances are looked at alone from now on, for this reason: all that was learnt of batches is forgotten.
void ForgetBatch(LoopKnowledge& known, const std::string& why);
void SetAlone(LoopKnowledge& known, const std::string& why);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_LOOP_KNOWLEDGE_H_
