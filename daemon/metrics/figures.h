// daemon/metrics/figures.h - one look at the daemon, as plain values: what /metrics shows.
//
// Units    in the names; counters count since the start of the daemon.
#ifndef DAEMON_METRICS_FIGURES_H_
#define DAEMON_METRICS_FIGURES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace perfd {

struct LoopFigure {
  std::string loop;  // LocationId
  std::string function;
  std::string file;
  int32_t line = 0;
  std::string module;
  double share_ratio = 0;
};

struct SaturationFigure {
  std::string variant;
  double ratio = 0;  // of the median rank
};

// A loop measured by variants.
struct MeasuredFigure {
  std::string loop;       // LocationId
  double gain_ratio = 0;  // the best
  std::vector<SaturationFigure> saturations;
};

struct ProfileFigure {
  std::string id;
  std::string name;
  std::string user;
  std::vector<LoopFigure> loops;                                      // heaviest first
  std::vector<MeasuredFigure> measured = {};                          // largest gain first
  std::vector<std::pair<std::string, uint64_t>> measure_states = {};  // loops by state
};

struct AgentFigure {
  std::string node;
  uint64_t resident_bytes = 0;
  double cpu_seconds = 0;
  uint64_t spool_bytes = 0;
  uint64_t set_aside_windows = 0;
};

using LabelledCount = std::pair<std::string, uint64_t>;

struct DaemonFigures {
  std::vector<LabelledCount> profiles;         // by state
  std::vector<LabelledCount> windows_dropped;  // by reason
  std::vector<LabelledCount> samples;          // by category
  std::vector<LabelledCount> samples_dropped;  // by reason
  std::vector<LabelledCount> injections;       // by action
  double injection_pause_seconds = 0;
  uint64_t agents_connected = 0;
  uint64_t windows_stored = 0;
  uint64_t windows_duplicate = 0;
  uint64_t samples_lost = 0;
  uint64_t streams_malformed = 0;
  uint64_t ingest_queue_windows = 0;
  uint64_t store_bytes = 0;
  bool store_healthy = true;
  std::vector<ProfileFigure> hot;  // active and recent profiles, newest first
  std::vector<AgentFigure> agents;
};

}  // namespace perfd

#endif  // DAEMON_METRICS_FIGURES_H_
