#include "daemon/store/commit_queue.h"

#include <memory>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {

absl::Status CommitQueue::Push(Write write) {
  MutexLock lock(&mutex_);
  return PushLocked(std::move(write));
}

absl::Status CommitQueue::PushLocked(Write write) {
  if (closed_) return absl::UnavailableError("the store is closing");
  if (Waiting() >= kMaxWrites || bytes_ + write.bytes > kMaxBytes) {
    return absl::UnavailableError("the store cannot keep up: its queue is full");
  }
  bytes_ += write.bytes;
  if (write.urgent) ++urgent_;
  (write.ahead ? ahead_ : writes_).push_back(std::move(write));
  return absl::OkStatus();
}

std::vector<CommitQueue::Write> CommitQueue::Drain() {
  MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &CommitQueue::HasWork));
  mutex_.AwaitWithTimeout(absl::Condition(this, &CommitQueue::ShouldCommit), delay_);
  std::vector<Write> batch;
  const size_t most_bytes = ahead_.empty() ? kMaxBatchBytes : kBytesBesideAhead;
  size_t batch_bytes = 0;
  while (Waiting() > 0 && batch.size() < kMaxBatch) {
    std::deque<Write>& from = ahead_.empty() ? writes_ : ahead_;
    const size_t bytes = from.front().bytes;
    if (!batch.empty() && batch_bytes + bytes > most_bytes) break;
    batch_bytes += bytes;
    bytes_ -= bytes;
    if (from.front().urgent) --urgent_;
    batch.push_back(std::move(from.front()));
    from.pop_front();
  }
  return batch;
}

void CommitQueue::SetPieces(size_t bytes, Piece piece) {
  MutexLock lock(&mutex_);
  piece_bytes_ = bytes;
  piece_ = std::move(piece);
}

void CommitQueue::BeginPieces() {
  MutexLock lock(&mutex_);
  if (piece_waits_ || !piece_) return;
  auto more = std::make_shared<bool>(false);  // shared by the two callbacks of one write
  Write write;
  write.bytes = piece_bytes_;
  write.run = [more, piece = piece_](Database& db) -> absl::Status {
    ASSIGN_OR_RETURN(*more, piece(db));
    return absl::OkStatus();
  };
  write.done = [this, more](const absl::Status& status) { EndPiece(status.ok() && *more); };
  piece_waits_ = PushLocked(std::move(write)).ok();
}

void CommitQueue::EndPiece(bool more) {
  {
    MutexLock lock(&mutex_);
    piece_waits_ = false;
  }
  if (more) BeginPieces();
}

void CommitQueue::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
}

size_t CommitQueue::size() const {
  MutexLock lock(&mutex_);
  return Waiting();
}

}  // namespace perfd::daemon
