// core/model/profile.h - the life of one profile: its states and the messages that explain them.
//
// Shape    PENDING -> DISCOVERING -> SAMPLING -> INJECTING -> ANALYZING -> DONE | PARTIAL | FAILED | CANCELLED
#ifndef CORE_MODEL_PROFILE_H_
#define CORE_MODEL_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/model/identity.h"
#include "core/model/profile_spec.h"

namespace perfd {

enum class ProfileState {
  kPending,
  kDiscovering,
  kSampling,
  kInjecting,
  kAnalyzing,
  kDone,
  kPartial,  // some ranks or nodes are missing from the result, with reasons
  kFailed,
  kCancelled,
};

const char* ProfileStateName(ProfileState state);
bool IsFinal(ProfileState state);
// True when the state machine allows the step.
bool CanGo(ProfileState from, ProfileState to);

struct NamedProcess {
  int32_t pid = 0;
  std::string command;  // base name of the executable

  bool operator==(const NamedProcess&) const = default;
};

// Processes of the target that only wait for their children (time, timeout, a shell, mpirun).
struct LauncherNote {
  static constexpr size_t kMaxNamed = 8;
  enum class Disposition {
    kRefused,  // nothing of the target is measured: only launchers are named
    kLeftOut,  // the others are measured
  };
  Disposition disposition = Disposition::kRefused;
  std::vector<NamedProcess> launchers;  // at most kMaxNamed, as the next
  int32_t launcher_count = 0;           // all of them
  std::vector<NamedProcess> working;    // below them
  int32_t working_count = 0;

  bool operator==(const LauncherNote&) const = default;
};

// Something a user must know about the result, with the node or rank it concerns.
struct Notice {
  enum class Severity { kInfo, kWarning, kError };
  Severity severity = Severity::kInfo;
  absl::StatusCode code = absl::StatusCode::kOk;  // kind of trouble, kOk for plain information
  std::string node;                               // empty: all
  int32_t pid = 0;                                // 0: none
  std::string text;                               // what happened and what to change
  std::optional<LauncherNote> launchers = {};     // what it is about; `text` says less

  bool operator==(const Notice&) const = default;
};

struct NodeProgress {
  enum class Phase {
    kAsked,
    kDiscovering,
    kSampling,
    kAnalyzing,
    kFinished,
    kFailed,
    kDisconnected
  };
  std::string node;
  Phase phase = Phase::kAsked;
  int32_t ranks = 0;
  int32_t threads = 0;
  int64_t covered_ns = 0;  // span of the windows stored so far
  uint64_t windows = 0;

  bool operator==(const NodeProgress&) const = default;
};

const char* NodePhaseName(NodeProgress::Phase phase);

// Why a profile has ended.
enum class EndReason {
  kNone,           // it has not, or it was not told
  kTime,           // its duration is over
  kKnown,          // every hot loop is known
  kNothingLearnt,  // some are not, and nothing was learnt of them for long
  kRanksEnded,     // the processes ended
  kJobEnded,       // the scheduler said so
  kCancelled,
  kNodesLost,  // no agent was left
};
inline constexpr int kEndReasonCount = 8;
// perfd ended it itself, since no more was to be learnt.
inline bool KnowsEnough(EndReason reason) {
  return reason == EndReason::kKnown || reason == EndReason::kNothingLearnt;
}
const char* EndReasonKey(EndReason reason);  // "time"; "" of kNone

// How far a profile is with the loops that it measures.
struct LoopProgress {
  int32_t hot = 0;        // loops measured now; 0: none was chosen yet
  int32_t known = 0;      // of those: measured, or refused with a reason
  double done_ratio = 0;  // of what is to be learnt of them, 0..1
  int64_t left_ns = 0;    // estimated, until all are known; 0: not known

  bool operator==(const LoopProgress&) const = default;
};

// Where a profile stands between its beginning and its end.
struct ProfileCourse {
  double progress_ratio = 0;  // 0..1 of the sampling time
  LoopProgress loops;
  EndReason end = EndReason::kNone;

  bool operator==(const ProfileCourse&) const = default;
};

struct ProfileStatus {
  std::string id;  // "p-000042"
  std::string name;
  ProfileState state = ProfileState::kPending;
  Requester requester;
  ProfileSpec spec;
  int64_t submitted_unix_ns = 0;
  int64_t started_unix_ns = 0;            // first sample; 0: none yet
  int64_t finished_unix_ns = 0;           // 0: not yet
  int64_t submit_to_first_sample_ns = 0;  // 0: none yet
  ProfileCourse course;
  uint64_t samples = 0;
  std::vector<NodeProgress> nodes;
  std::vector<Notice> notices;

  bool operator==(const ProfileStatus&) const = default;
};

}  // namespace perfd

#endif  // CORE_MODEL_PROFILE_H_
