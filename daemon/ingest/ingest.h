// daemon/ingest/ingest.h - the way of a window: admission, store, acknowledgement, merge.
//
// Shape    done(OK) is the acknowledgement: the window is committed, was committed before, or is of no use to anyone
//          (unknown or finished profile, refused: counted by reason; its sequence is remembered, so that it is no gap).
//          Stored windows are merged in the order of commits.
// Errors   done(error): not stored; the agent keeps the window and sends it again.
// Limits   above `windows` or `bytes` under way AwaitRoom asks the senders to wait; beyond `most_windows` or
//          `most_bytes` a window is turned away. A user's own agents wait sooner, for each other: no user fills the way of all.
// Threads  thread-safe. `done` and `merge` run on threads of the ports; after Close they touch nothing of ours.
#ifndef DAEMON_INGEST_INGEST_H_
#define DAEMON_INGEST_INGEST_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/model/window.h"
#include "daemon/store/records.h"

namespace perfd::daemon {

struct IncomingWindow {
  Window window;
  std::string body;  // the same, serialised: what is stored
  StreamKey stream = {};
  ProfileHolder owner = kSite;   // whose profile it is of
  ProfileHolder sender = kSite;  // whose agent it is from
};

// What the store did with a window.
struct Appended {
  bool duplicate = false;
  int64_t row_id = 0;
  uint64_t stream_missing = 0;
};

// What a window's profile wants with it.
enum class ProfileDisposition {
  kActive,
  kLate,     // over, but incomplete: late data are still welcome
  kOver,     // complete, failed or cancelled
  kUnknown,  // never existed or was deleted
};

enum class WindowDrop {
  kUnknownProfile,
  kProfileOver,
  kQueueFull,     // not acknowledged: comes again
  kStoreFailed,   // not acknowledged: comes again
  kMalformed,     // a message that was no window at all
  kInvalid,       // a window that contradicts itself or is beyond the limits
  kNotPermitted,  // of a profile the agent may not speak for
  kForeign,       // of a stream or node that is not the agent's
};
inline constexpr size_t kWindowDropCount = 8;
const char* WindowDropName(WindowDrop reason);

struct IngestFigures {
  uint64_t stored = 0;
  uint64_t duplicate = 0;
  std::array<uint64_t, kWindowDropCount> dropped{};
  std::array<uint64_t, kCategoryCount> samples{};           // of stored windows, by category
  Accounting accounting;                                    // of stored windows
  std::array<uint64_t, kAuditActions.size()> injections{};  // of stored windows, by action
  uint64_t injection_pause_ns = 0;
  uint64_t under_way = 0;
};

struct IngestLimits {
  // What the agents of one user may have under way before they wait.
  uint64_t user_windows = 256;
  uint64_t user_bytes = uint64_t{16} << 20;
  uint64_t windows = 4096;
  uint64_t bytes = uint64_t{128} << 20;
  uint64_t most_windows = 65536;  // one per stream that was already reading
  uint64_t most_bytes = uint64_t{512} << 20;
};

class Ingest {
 public:
  struct Ports {
    // An error: it cannot be told now.
    std::function<absl::StatusOr<ProfileDisposition>(const std::string& profile_id)> disposition;
    std::function<absl::Status(const IncomingWindow&,
                               std::function<void(absl::StatusOr<Appended>)>)>
        append;
    // Remembers the sequence of a window that is not wanted.
    std::function<absl::Status(const StreamKey& stream, uint64_t sequence,
                               std::function<void(absl::Status)>)>
        skip;
    // Stores the audit entries of a window that is not wanted: the log misses nothing. May be empty.
    std::function<absl::Status(const IncomingWindow&, std::function<void(absl::Status)>)>
        keep_audit = {};
    // Takes the window; calls back when it is merged. False: no room.
    std::function<bool(std::shared_ptr<const IncomingWindow>, Appended, std::function<void()>)>
        merge;
  };

  explicit Ingest(Ports ports, IngestLimits limits = {})
      : ports_(std::move(ports)), limits_(limits) {}

  void Accept(IncomingWindow window, std::function<void(absl::Status)> done);
  // A window that will never be taken: counted, remembered, acknowledged.
  void Refuse(WindowDrop reason, ProfileHolder sender, const StreamKey& stream, uint64_t sequence,
              const std::function<void(absl::Status)>& done);
  // False: send on. True: too much is under way; `wake` is called once when there is room again.
  bool AwaitRoom(ProfileHolder sender, std::function<void()> wake);
  // Takes nothing more and waits until nothing is under way, at most so long.
  void Close(absl::Duration within);
  // A message that was no window at all.
  void CountMalformed() { Drop(WindowDrop::kMalformed); }
  IngestFigures figures() const;

 private:
  // Commits may be answered after the wait in Close: then there is nobody left to hear them.
  struct Life {
    Mutex mutex;
    bool over ABSL_GUARDED_BY(mutex) = false;
  };

  // What is under way of all, or of one user's agents, and who waits until it is less.
  struct Lot {
    uint64_t windows = 0;
    uint64_t bytes = 0;
    std::vector<std::function<void()>> waiting = {};
  };

  // Nobody wants the window, but its injections happened.
  void AcceptAuditOnly(WindowDrop reason, const IncomingWindow& incoming,
                       std::function<void(absl::Status)> done);
  void Committed(std::shared_ptr<const IncomingWindow> window,
                 const absl::StatusOr<Appended>& appended,
                 const std::function<void(absl::Status)>& done);
  void Stored(std::shared_ptr<const IncomingWindow> window, const Appended& appended);
  void Drop(WindowDrop reason);
  absl::Status Enter(ProfileHolder sender, uint64_t bytes);
  void Release(ProfileHolder sender, uint64_t bytes);
  // One window less; whoever waits for that is moved to `wake` once it is at half of the limits.
  static void Leave(Lot& lot, uint64_t bytes, uint64_t windows_limit, uint64_t bytes_limit,
                    std::vector<std::function<void()>>& wake);
  bool Idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return all_.windows == 0; }

  const Ports ports_;
  const IngestLimits limits_;
  const std::shared_ptr<Life> life_ = std::make_shared<Life>();  // shared with queued commits
  mutable Mutex mutex_;
  IngestFigures figures_ ABSL_GUARDED_BY(mutex_);
  Lot all_ ABSL_GUARDED_BY(mutex_);
  std::map<ProfileHolder, Lot> of_user_
      ABSL_GUARDED_BY(mutex_);  // those who have something under way
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace perfd::daemon

#endif  // DAEMON_INGEST_INGEST_H_
