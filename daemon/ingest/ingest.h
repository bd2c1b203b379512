// daemon/ingest/ingest.h - the way of a window: admission, store, acknowledgement, merge.
//
// Shape    done(OK) is the acknowledgement: the window is committed, was committed before, or is of no use to anyone
//          (unknown or finished profile: counted by reason). Stored windows are merged in the order of commits.
// Errors   done(error): not stored; the agent keeps the window and sends it again.
// Threads  thread-safe. `done` and `merge` run on threads of the ports; at most `capacity` windows are under way.
#ifndef DAEMON_INGEST_INGEST_H_
#define DAEMON_INGEST_INGEST_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/model/window.h"

namespace perfd {

struct IncomingWindow {
  Window window;
  std::string body;  // the same, serialised: what is stored
};

// What the store did with a window.
struct Appended {
  bool duplicate = false;
  int64_t row_id = 0;
  uint64_t stream_missing = 0;
};

// What a window's profile wants with it.
enum class ProfileFate {
  kActive,
  kLate,     // over, but incomplete: late data are still welcome
  kOver,     // complete, failed or cancelled
  kUnknown,  // never existed or was deleted
};

enum class WindowDrop { kUnknownProfile, kProfileOver, kQueueFull, kStoreFailed, kMalformed };
inline constexpr size_t kWindowDropCount = 5;
const char* WindowDropName(WindowDrop reason);

struct IngestFigures {
  uint64_t stored = 0;
  uint64_t duplicate = 0;
  std::array<uint64_t, kWindowDropCount> dropped{};
  std::array<uint64_t, kCategoryCount> samples{};  // of stored windows, by category
  Accounting accounting;                           // of stored windows
  uint64_t under_way = 0;
};

class Ingest {
 public:
  struct Ports {
    std::function<ProfileFate(const std::string& profile_id)> fate;
    std::function<absl::Status(const IncomingWindow&,
                               std::function<void(absl::StatusOr<Appended>)>)>
        append;
    // Takes the window; calls back when it is merged. False: no room.
    std::function<bool(std::shared_ptr<const IncomingWindow>, Appended, std::function<void()>)>
        merge;
  };

  Ingest(Ports ports, uint64_t capacity) : ports_(std::move(ports)), capacity_(capacity) {}

  void Take(IncomingWindow window, std::function<void(absl::Status)> done);
  // A message that was no window at all.
  void CountMalformed() { Drop(WindowDrop::kMalformed); }
  IngestFigures figures() const;

 private:
  void Stored(std::shared_ptr<const IncomingWindow> window, const Appended& appended);
  void Drop(WindowDrop reason);
  void Leave() { under_way_.fetch_sub(1); }

  const Ports ports_;
  const uint64_t capacity_;
  std::atomic<uint64_t> under_way_{0};
  mutable absl::Mutex mutex_;
  IngestFigures figures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd

#endif  // DAEMON_INGEST_INGEST_H_
