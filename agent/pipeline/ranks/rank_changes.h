// agent/pipeline/ranks/rank_changes.h - the notices about ranks that come, go or change their
//                                       program.
//
// Shape    Began for those that are there first; Joined, Ended and Replaced as it happens; End says
//          how many more there were.
// Rules    each change is told once. Where a job is followed, programs end because the next one
//          begins: a note. Elsewhere a rank that ends is missing from then on: a warning
//          (kNotFound).
// Bounds   kMaxTold sentences of a kind; the rest is counted.
// Units    seconds since sampling began.
// Threads  thread-bound (the session's thread).
#ifndef AGENT_PIPELINE_RANKS_RANK_CHANGES_H_
#define AGENT_PIPELINE_RANKS_RANK_CHANGES_H_

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "agent/pipeline/session_notices.h"
#include "core/model/identity.h"

namespace perfd::agent {

class RankChanges {
 public:
  static constexpr uint64_t kMaxTold = 16;
  static constexpr size_t kMaxNumbers = 65'536;  // beyond, a rank that goes on is said to join

  RankChanges(bool follows_job, SessionNotices* notices)
      : follows_job_(follows_job), notices_(notices) {}

  void Began(const RankInfo& rank);
  void Joined(const RankInfo& rank, double seconds);
  void Ended(const RankInfo& rank, double seconds);
  // `executable`: what it runs now.
  void Replaced(const RankInfo& rank, const std::string& executable, double seconds);
  void End();

 private:
  enum Kind { kJoined, kEnded, kReplaced, kKinds };
  // False: it is only counted.
  bool MayReport(Kind kind) { return ++count_[kind] <= kMaxTold; }

  const bool follows_job_;
  SessionNotices* const notices_;
  std::set<int32_t> numbers_;                // of ranks that are or were there
  std::map<int32_t, std::string> programs_;  // by pid, as told
  std::array<uint64_t, kKinds> count_{};
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_RANKS_RANK_CHANGES_H_
