// daemon/metrics/figures.h - one look at the daemon, as plain values: what /metrics shows.
//
// Units    in the names; counters count since the start of the daemon.
#ifndef DAEMON_METRICS_FIGURES_H_
#define DAEMON_METRICS_FIGURES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace perfd::daemon {

// Names of people, jobs, programs, functions, modules and files: whoever reaches the page reads them.
enum class MetricNames { kHidden, kShown };

// How evenly the ranks share a loop, and the threads of the rank that has most of it.
struct SpreadFigure {
  double rank_min_seconds = 0;
  double rank_median_seconds = 0;
  double rank_max_seconds = 0;
  double rank_imbalance_ratio = 1;    // max / mean
  double thread_imbalance_ratio = 1;  // max / mean
};

// Of sampled accesses to memory; nothing where they do not tell.
struct MemoryFigure {
  std::optional<double> beyond_l2_ratio;  // of the time of loads
  std::optional<double> walks_ratio;      // accesses whose page the DTLB did not have
};

struct LoopFigure {
  std::string loop;  // LocationId
  std::string function;
  std::string file;
  int32_t line = 0;
  std::string module;
  double share_ratio = 0;
  std::optional<SpreadFigure> spread = {};  // once the profile is over
  MemoryFigure memory = {};                 // the same
};

struct SaturationFigure {
  std::string variant;
  double ratio = 0;  // of the median rank
};

// A loop measured by variants.
struct MeasuredFigure {
  std::string loop;                  // LocationId
  std::optional<double> gain_ratio;  // the best; none is known of a loop without one
  double gain_ranks_ratio = 1;       // of the ranks that were asked, those that it was measured on
  std::vector<SaturationFigure> saturations = {};
  std::string bound = {};  // BoundName
  std::string level = {};  // DataLevelName
};

// How far a profile is.
struct ProgressFigure {
  std::string state;
  uint64_t samples = 0;
  uint64_t nodes = 0;
  uint64_t ranks = 0;
  uint64_t threads = 0;
  double progress_ratio = 0;
  double budget_ratio = 0;       // added wall time over elapsed time, at most
  double submitted_seconds = 0;  // since the epoch
  double finished_seconds = 0;   // since the epoch; 0: not yet
};

// What only the report of a profile tells.
struct OutcomeFigure {
  double missing_ratio = 0;            // samples
  double sampling_overhead_ratio = 0;  // of the job's CPU time
  double added_time_ratio = 0;         // by variants, of the elapsed time
  double imbalance_ratio = 1;          // of the ranks' compute time, max / mean
  std::vector<std::pair<std::string, double>> category_shares = {};
};

struct ProfileFigure {
  std::string id;
  std::string name;
  std::string user;
  std::vector<LoopFigure> loops;                                      // heaviest first
  std::vector<MeasuredFigure> measured = {};                          // largest gain first
  std::vector<std::pair<std::string, uint64_t>> measure_states = {};  // loops by state
  std::string command = {};    // of the target, else once it is over of its ranks; may be empty
  std::string slurm_job = {};  // of the target; may be empty
  ProgressFigure progress = {};
  std::optional<OutcomeFigure> outcome = {};  // once it is over
};

struct AgentFigure {
  std::string node;
  uint64_t resident_bytes = 0;
  double cpu_seconds = 0;
  uint64_t spool_bytes = 0;
  uint64_t set_aside_windows = 0;
  std::optional<int64_t> certificate_expiry_seconds = {};  // since the epoch; with TLS
  uint64_t ring_bytes = 0;
};

// The folder of finished reports.
struct ArchiveFigure {
  uint64_t written = 0;   // files, since the start
  uint64_t failures = 0;  // attempts that failed; they are made again
  uint64_t dropped = 0;   // reports that will not be archived
  uint64_t pending = 0;   // reports that wait
  uint64_t deleted = 0;   // files, for their age or for room
  uint64_t files = 0;     // at the last look
  uint64_t bytes = 0;     // at the last look
  bool healthy = true;    // the last attempt was successful
};

struct StoreFigure {
  uint64_t bytes = 0;
  bool healthy = true;
  bool readable = true;
};

// The audit log: its size, and what retention deleted of it.
struct AuditFigure {
  uint64_t bytes = 0;  // as of the last retention
  uint64_t trimmed_for_age = 0;
  uint64_t trimmed_for_size = 0;
};

using LabelledCount = std::pair<std::string, uint64_t>;

// What was asked for and not had.
struct RefusalFigure {
  uint64_t http = 0;
  std::vector<LabelledCount> limits;  // by the limit that was reached
};

// Of the TCP door; without one both are empty or zero.
struct TlsFigure {
  std::vector<LabelledCount> refused = {};  // calls and streams, by reason
  std::vector<std::pair<std::string, int64_t>> expiry_seconds =
      {};  // when a file of ours ends, since the epoch
};

// What schedulers' hooks asked, and were told.
struct HookFigure {
  std::vector<LabelledCount> jobs = {};   // by decision
  std::vector<LabelledCount> calls = {};  // by result
  std::optional<bool> policy_read = {};   // the policy file was taken when it was last read
};

struct DaemonFigures {
  MetricNames names = MetricNames::kHidden;
  std::vector<LabelledCount> profiles;         // by state
  std::vector<LabelledCount> windows_dropped;  // by reason
  std::vector<LabelledCount> samples;          // by category
  std::vector<LabelledCount> samples_dropped;  // by reason
  std::vector<LabelledCount> injections;       // by action
  std::vector<LabelledCount> agent_versions;   // connected agents, by version
  HookFigure hook = {};
  double injection_pause_seconds = 0;
  uint64_t agents_connected = 0;
  uint64_t agents_known = 0;       // heard of within a day, connected or not
  uint64_t agents_can_inject = 0;  // connected, and loops can be altered there
  uint64_t windows_stored = 0;
  uint64_t windows_duplicate = 0;
  uint64_t samples_lost = 0;
  uint64_t sampling_throttled = 0;
  uint64_t streams_malformed = 0;
  RefusalFigure refused = {};
  uint64_t ingest_queue_windows = 0;
  StoreFigure store = {};
  TlsFigure tls = {};
  AuditFigure audit = {};
  std::vector<ProfileFigure> hot;  // active and recent profiles, newest first
  std::vector<AgentFigure> agents;
  std::optional<ArchiveFigure> archive = {};  // where there is one
};

}  // namespace perfd::daemon

#endif  // DAEMON_METRICS_FIGURES_H_
