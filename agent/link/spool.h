// agent/link/spool.h - windows on disk until the daemon has them in its store.
//
// Shape    Append gives a window its sequence and writes it; Next reads the oldest after a
//          sequence; Acknowledge removes. One file per window: "<sequence>.window" = CRC-32 (4
//          bytes, little endian) + serialised v1::Window.
// Errors   kResourceExhausted: the spool is at its limit, or its user at three quarters of it, or the disk is full (nothing was written).
// Threads  thread-safe.
// Loss     a file that does not match its checksum, or is not ours, is set aside as
//          "<sequence>.window.damaged" and counted; one that is gone is counted.
// Crash    a window is synced before it gets its name (some 3 ms on ext4), once per window of
//          seconds, in the session's thread: nobody else waits. After a power cut the last one may
//          be missing; none is cut. A stream-id that is lost is that of the windows that wait.
// Safety   the folder is ours (core/files/own_folder.h). A sequence is never used twice, not even after a crash: each that was ever used is
//          either on disk here or stored by the daemon, which says so when it welcomes us
//          (ContinueAfter).
#ifndef AGENT_LINK_SPOOL_H_
#define AGENT_LINK_SPOOL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"
#include "core/files/own_folder.h"
#include "core/model/window.h"

namespace perfd::agent {

struct SpooledWindow {
  uint64_t sequence = 0;
  std::string bytes;  // serialised v1::Window
};

// What waits of one profile.
struct SpoolBacklog {
  int64_t covered_ns = 0;  // sampling time of the windows
  uint64_t last_sequence = 0;
};

// Whose windows a spool has: one user's, or those of all users of a node, of whom one leaves a quarter to the others.
enum class SpoolUsers { kOne, kMany };

class Spool {
 public:
  static absl::StatusOr<std::unique_ptr<Spool>> Create(const std::string& directory,
                                                       uint64_t limit_bytes, SpoolUsers users);

  const std::string& stream_id() const { return stream_id_; }
  // The daemon has everything up to `stored`: the next sequence is above it.
  void ContinueAfter(uint64_t stored);
  // From the next window on; what is there already stays.
  void SetLimit(uint64_t bytes);
  absl::StatusOr<uint64_t> Append(Window window);
  // The oldest window with a sequence above `after`, if any.
  std::optional<SpooledWindow> Next(uint64_t after);
  void Acknowledge(uint64_t sequence);
  // Sets a window aside that the daemon will not have: it counts as damaged.
  void GiveUp(uint64_t sequence);
  // Takes an empty spool off the disk, and says whether it did: nothing waits, nothing was set aside. Windows have no
  // place in it any more.
  bool RemoveEmpty();
  // The windows of a profile with a sequence above `after`.
  SpoolBacklog Waiting(const std::string& profile_id, uint64_t after) const;
  uint64_t windows() const;
  uint64_t bytes() const;
  uint64_t damaged() const;  // set aside since Create
  // Profiles with windows that are not yet acknowledged.
  std::set<std::string> profiles() const;

 private:
  struct Entry {
    uint64_t bytes = 0;
    int64_t duration_ns = 0;
    std::string profile_id;
    uint32_t uid = 0;  // of its ranks
  };
  // So that one user's windows leave room for the others'.
  struct Use {
    uint64_t bytes = 0;
    std::map<uint32_t, uint64_t> of_user;

    void Add(const Entry& entry);
    void Remove(const Entry& entry);
  };
  // What a file of the spool holds.
  struct Found {
    Entry entry;
    std::string stream_id;
  };
  Spool(OwnFolder folder, uint64_t limit_bytes, SpoolUsers users, UniqueFd lock);
  absl::Status Load();
  absl::StatusOr<std::string> ReadStreamId() const;
  absl::Status ChooseStream(const std::map<uint64_t, Found>& found);
  absl::StatusOr<Found> ReadFound(uint64_t sequence) const;
  absl::StatusOr<std::string> ReadChecked(uint64_t sequence) const;
  absl::StatusOr<std::string> Encode(const Window& window) const;
  absl::Status CheckRoom(size_t bytes, uint32_t uid) const;
  void SetAside(uint64_t sequence, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(uint64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const OwnFolder folder_;
  const SpoolUsers users_;
  UniqueFd lock_;  // one agent per spool
  std::string stream_id_;
  Mutex append_;  // one window at a time; before mutex_, which is not held while the disk writes
  mutable Mutex mutex_;
  uint64_t limit_bytes_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  Use use_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t damaged_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perfd::agent

#endif  // AGENT_LINK_SPOOL_H_
