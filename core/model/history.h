// core/model/history.h - one program over many profiles: what of each profile is worth comparing.
//
// Shape    made of a Report by core/analysis/jobs/history.h, or of an archived file by core/json/history_json.h.
// Units    shares 0..1; cycles of the TSC per entry into the loop: comparable between nodes of one kind only.
#ifndef CORE_MODEL_HISTORY_H_
#define CORE_MODEL_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/loop_verdict.h"
#include "core/model/profile.h"
#include "core/model/report.h"

namespace perfd {

inline constexpr size_t kMaxHistoryLoops = 40;   // of one profile, by share
inline constexpr size_t kMaxHistoryText = 1024;  // bytes of a name; longer ones are cut

struct HistoryShare {
  double share = 0;
  Interval interval;

  bool operator==(const HistoryShare&) const = default;
};

struct HistoryGain {
  double value = 0;     // of the job's time, at most
  MeasuredRanks ranks;  // that it rests on

  bool operator==(const HistoryGain&) const = default;
};

struct HistoryLoop {
  std::string id;  // LocationId
  std::string function;
  std::string file;
  int32_t first_line = 0;
  int32_t last_line = 0;
  std::string module;                // base name
  int32_t depth = 0;                 // 0: unknown
  HistoryShare cpu;                  // of CPU time
  std::optional<HistoryShare> wall;  // of elapsed time; none: it was not divided
  double cycles = 0;                 // of one entry, the median rank's median; 0: not measured
  double cycles_min = 0;             // of its fastest entry
  double iterations = 0;             // of that entry; 0: unknown
  Bound bound = Bound::kUnknown;
  bool sure = false;
  HistoryGain gain;  // the best

  bool operator==(const HistoryLoop&) const = default;
};

struct HistoryProfile {
  std::string id;
  std::string command;  // base name of the executable of most ranks
  std::string user;
  std::string job;  // the batch system's number; empty: unknown
  ProfileState state = ProfileState::kDone;
  int64_t started_unix_ns = 0;
  int32_t ranks = 0;
  int32_t nodes = 0;
  std::string build;               // build-id of the heaviest loop's module; empty: no loops
  std::vector<HistoryLoop> loops;  // heaviest first

  bool operator==(const HistoryProfile&) const = default;
};

struct ProgramHistory {
  std::string command;
  std::vector<HistoryProfile> profiles;  // oldest first
  std::string incomplete;                // why older profiles were not looked at; empty: all were

  bool operator==(const ProgramHistory&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_HISTORY_H_
