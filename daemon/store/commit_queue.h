// daemon/store/commit_queue.h - writes that wait for the next commit, so that many share one.
//
// Shape    a batch is everything that waits, once the oldest has waited `delay` or one of them is urgent. What depends on nothing
//          that waits goes ahead of it, in its own order: a new profile does not wait for the windows of all others.
//          What would hold up everybody is done in pieces, each a write behind what waits by then.
// Units    bounded by count and by bytes, as is a batch; Push refuses what does not fit.
// Threads  thread-safe; one thread takes batches.
#ifndef DAEMON_STORE_COMMIT_QUEUE_H_
#define DAEMON_STORE_COMMIT_QUEUE_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "daemon/store/database.h"

namespace perfd::daemon {

class CommitQueue {
 public:
  struct Write {
    std::function<absl::Status(Database&)>
        run;  // inside the transaction; may be called a second time after a rollback
    std::function<void(absl::Status)> done;  // after the commit, or with the reason there was none
    size_t bytes = 0;
    bool urgent = false;
    bool ahead = false;
  };

  static constexpr size_t kMaxWrites = size_t{1} << 17;
  static constexpr size_t kMaxBytes = size_t{512} << 20;
  static constexpr size_t kMaxBatch = 512;
  // A commit of more would hold up the urgent ones behind it for seconds; one write alone may have more.
  static constexpr size_t kMaxBatchBytes = size_t{16} << 20;
  static constexpr size_t kBytesBesideAhead = size_t{1}
                                              << 20;  // of a batch with writes that went ahead

  explicit CommitQueue(absl::Duration delay) : delay_(delay) {}

  absl::Status Push(Write write);
  // Waits for work; empty once closed and drained.
  std::vector<Write> Drain();
  void Close();
  size_t size() const;

  // Work of which a piece says whether there is more, and what one of them weighs. Before the first BeginPieces.
  using Piece = std::function<absl::StatusOr<bool>(Database&)>;
  void SetPieces(size_t bytes, Piece piece);
  // Nothing while it is being done. Where the queue is full or a piece fails, the next call goes on.
  void BeginPieces();

 private:
  size_t Waiting() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ahead_.size() + writes_.size();
  }
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || Waiting() > 0; }
  bool ShouldCommit() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ || urgent_ > 0 || Waiting() >= kMaxBatch || bytes_ >= kMaxBatchBytes;
  }

  absl::Status PushLocked(Write write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndPiece(bool more);

  const absl::Duration delay_;
  mutable Mutex mutex_;
  std::deque<Write> ahead_ ABSL_GUARDED_BY(mutex_);
  std::deque<Write> writes_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t urgent_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  size_t piece_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  Piece piece_ ABSL_GUARDED_BY(mutex_);
  bool piece_waits_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_COMMIT_QUEUE_H_
