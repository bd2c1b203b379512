// agent/replay/replay_session.h - one profile of a recording: its samples become the windows of a node, as fast as they are taken.
//
// Shape    Run() does everything and returns when the profile is over; Stop() ends it early from another thread. The windows are of the
//          recording's time, moved so that it ends when the agent began.
// Rules    rows count the samples of one event (RecordingIndex::TimeEvent); accesses to memory are of every event that tells of some.
//          A profile that is shorter than the recording has the beginning of it, and says so.
// Errors   never returned: every trouble becomes a Notice with what to change.
// Threads  Run on one thread of its own; Stop is thread-safe.
#ifndef AGENT_REPLAY_REPLAY_SESSION_H_
#define AGENT_REPLAY_REPLAY_SESSION_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/pipeline/raw_window.h"
#include "agent/pipeline/resolver.h"
#include "agent/pipeline/session_update.h"
#include "agent/pipeline/window_delivery.h"
#include "agent/replay/recorded_files.h"
#include "agent/replay/recording_index.h"
#include "agent/replay/replayed_processes.h"
#include "core/base/clock.h"
#include "core/perfdata/recording.h"

namespace perfd::agent {

struct ReplayTools {
  std::string path;
  const RecordingIndex* index = nullptr;
  RecordedFiles* files = nullptr;
  Resolver* resolver = nullptr;
  SessionOutput* output = nullptr;
  const Clock* clock = nullptr;
  std::string node;
  std::function<bool()> has_room;  // for one more window; it is waited for
  int64_t end_unix_ns = 0;         // when the recording ended, as its windows tell it
};

// What a session says at once: its ranks, or why there are none.
SessionUpdate FirstUpdate(const ReplayTools& tools, const SessionRequest& request);

// The processes of the recording that the target names, as ranks in the order of their pids.
// kNotFound: none; the text names those there are. kInvalidArgument: a target that a recording does not have.
absl::StatusOr<std::vector<RankInfo>> RanksOfTarget(const RecordingIndex& index,
                                                    const SessionRequest& request,
                                                    const std::string& node);

class ReplaySession {
 public:
  ReplaySession(SessionRequest request, ReplayTools tools);

  void Run();
  void Stop() { end_ = std::max(end_.load(), End::kStop); }
  // Ends it without saying so: the agent ends.
  void Suspend() { end_ = End::kSuspend; }
  const std::string& profile_id() const { return request_.profile_id; }

 private:
  enum class End { kNo, kStop, kSuspend };
  bool ended() const { return end_ != End::kNo; }
  void Announce(NodeProgress::Phase phase);
  void Notify(Notice::Severity severity, absl::StatusCode code, std::string text);
  void Fail(const absl::Status& status);
  absl::Status Replay();
  void OnRecord(const EventSet::Decoded& record);
  void OnSample(size_t event, const Sample& sample);
  const RankInfo* RankOf(int32_t pid) const;  // null: it is not asked for
  RawLocation Place(const Sample& sample);
  bool IsPast(uint64_t time_ns) const;  // what the profile has room for
  void CloseWindow(uint64_t end_ns);
  bool AwaitRoom();  // false: the agent ends, or nobody takes windows
  void Lose(const RawWindow& window);
  void SayWhatIsMissing(const Recording& recording);

  const SessionRequest request_;
  const ReplayTools tools_;
  std::atomic<End> end_ = End::kNo;
  std::vector<RankInfo> ranks_;  // by pid
  ReplayedProcesses processes_;
  std::shared_ptr<WindowDelivery> delivery_;  // also held by the resolver's callbacks
  std::shared_ptr<ReadBudget> budget_;        // also held by the resolver
  WindowBuilder builder_;
  struct Open {
    uint64_t begin_ns = 0;
    uint64_t last_ns = 0;  // of its samples
  };
  std::optional<Open> window_;  // in the recording's time
  bool cut_ = false;
  std::vector<Notice> notices_;  // not yet told
};

}  // namespace perfd::agent

#endif  // AGENT_REPLAY_REPLAY_SESSION_H_
