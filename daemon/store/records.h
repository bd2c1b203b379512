// daemon/store/records.h - the values that go into the store and come out of it.
#ifndef DAEMON_STORE_RECORDS_H_
#define DAEMON_STORE_RECORDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "core/model/identity.h"
#include "core/model/profile.h"
#include "core/model/report.h"

namespace perfd::daemon {

// A stream of windows is its owner's: nobody else can mark its sequences as seen.
struct StreamKey {
  std::string id;
  std::string owner = {};    // as perfd found out, not as the agent says; empty: not known
  bool takes_over = false;   // whoever had it
  int64_t most_gaps = 1024;  // in its sequences: each costs every later window
};

// One window as it arrived; stream and sequence are its identity for ever.
struct WindowRecord {
  std::string profile_id;
  StreamKey stream;
  uint64_t sequence = 0;  // 1..2^62
  std::string node;
  std::string body;                    // serialised v1.Window
  std::vector<AuditEntry> audit = {};  // those of the body; all of one origin
  int64_t received_unix_ns = 0;        // by perfd's clock; what audit retention goes by
};

// Entries of the audit log that retention deleted.
struct AuditTrim {
  int64_t uid = 0;         // of whose profiles; -1: of profiles that are gone
  std::string brought_by;  // AuditOrigin
  bool aged = false;       // else: above the bytes of that user
  uint64_t entries = 0;
};

// What became of the audit log. Retention says its size.
struct AuditChange {
  std::vector<AuditTrim> trimmed;
  std::optional<int64_t> bytes;
};

struct AppendResult {
  std::vector<AuditTrim> trimmed;
  bool duplicate = false;
  int64_t row_id = 0;  // position in the order of commits; 0 for a duplicate
  uint64_t stream_missing =
      0;  // sequences of the stream, between its first and last, that are not stored
};

struct StreamState {
  uint64_t last = 0;     // highest sequence stored or skipped; 0: none
  uint64_t missing = 0;  // sequences before it that were never seen
  std::string owner;     // who brought its first stored window, or took it over; empty: nobody yet
};

// Who answers for the room that a profile takes: its user, by uid; all users whom the system does not know, together; or the site, when
// a scheduler asked for it.
using ProfileHolder = int64_t;
inline constexpr ProfileHolder kUnknownHolder = -1, kSite = -2;
inline ProfileHolder HolderOf(const Requester& requester) {
  return absl::StartsWith(requester.name, kUnknownUser) ? kUnknownHolder : requester.uid;
}
// Root and the site may have what they need.
inline bool HasRoomOfItsOwn(ProfileHolder holder) {
  return holder == 0 || holder == kSite;
}

// What the store has of a profile's measurements. An error of a visitor ends the reading.
struct ResultsVisitor {
  std::function<void(ProfileHolder holder)> holder = {};  // before all else; may be empty
  // First; empty: no aggregate. Every window of the profile with a row id up to `up_to_row_id` is in the aggregate or
  // among the windows that follow.
  std::function<absl::Status(const std::string& body, int64_t up_to_row_id)> aggregate;
  std::function<absl::Status(int64_t row_id, const std::string& body)>
      window;  // in the order of commits
};

// Everything a profile leaves behind when it ends; stored in one transaction, its windows are then deleted.
struct FinalRecord {
  ProfileStatus status;
  Report report;
  std::string aggregate;     // serialised; base for windows that arrive late
  int64_t up_to_row_id = 0;  // windows up to here are contained in the aggregate
};

struct ProfileQuery {
  std::optional<uint32_t> uid;  // only this owner's
  bool active_only = false;
  int32_t limit = 50;
};

struct AuditQuery {
  std::string profile_id;       // empty: of every profile
  std::optional<uint32_t> uid;  // only this owner's
  int32_t limit = 1000;
};

// The audit log has room of its own, apart from that of profiles, and as much for each user.
struct AuditRetention {
  int64_t keep_ns = 0;     // entries are kept so long; 0: for ever
  int64_t user_bytes = 0;  // above it that user's oldest entries go; 0: no limit
};

// What profiles take in the store, with their windows and reports.
struct ProfileBytes {
  int64_t active = 0;
  int64_t finished = 0;
};
using BytesByHolder = std::map<ProfileHolder, ProfileBytes>;

// Profiles; as many again of users with too much. Who has the most at once asks again: others' commits have their turn in between.
inline constexpr int kMaxDeletedPerCall = 16;
inline constexpr int64_t kMaxDeletedBytesPerCall = 8 << 20;  // and one profile more

struct RetentionPolicy {
  int64_t keep_ns = 0;    // final profiles older than this go; 0: keep for ever
  int64_t max_bytes = 0;  // above it final profiles go; 0: no limit
  std::vector<std::string> spared =
      {};  // never deleted for their age: whatever the clock says, they are new
  // Of a user who has more finished ones the oldest go, but of root. Above `max_bytes`, which active ones do not count for, those of
  // who has most.
  int64_t user_bytes = 0;    // 0: no limit
  BytesByHolder bytes = {};  // as ReadBytes found them
  AuditRetention audit = {};
};

// One line of the history of a loop.
struct LoopHistory {
  std::string profile_id;
  std::string function;
  std::string file;
  int32_t first_line = 0;
  int32_t last_line = 0;
  double share = 0;
  Interval share_interval;
  uint64_t samples = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_RECORDS_H_
