#include "daemon/store/commit_queue.h"

#include <utility>

#include "core/base/mutex.h"

namespace perfd::daemon {

absl::Status CommitQueue::Push(Write write) {
  MutexLock lock(&mutex_);
  if (closed_) return absl::UnavailableError("the store is closing");
  if (writes_.size() >= kMaxWrites || bytes_ + write.bytes > kMaxBytes) {
    return absl::UnavailableError("the store cannot keep up: its queue is full");
  }
  bytes_ += write.bytes;
  if (write.urgent) ++urgent_;
  writes_.push_back(std::move(write));
  return absl::OkStatus();
}

std::vector<CommitQueue::Write> CommitQueue::Drain() {
  MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &CommitQueue::HasWork));
  mutex_.AwaitWithTimeout(absl::Condition(this, &CommitQueue::ShouldCommit), delay_);
  std::vector<Write> batch;
  size_t batch_bytes = 0;
  while (!writes_.empty() && batch.size() < kMaxBatch) {
    const size_t bytes = writes_.front().bytes;
    if (!batch.empty() && batch_bytes + bytes > kMaxBatchBytes) break;
    batch_bytes += bytes;
    bytes_ -= bytes;
    if (writes_.front().urgent) --urgent_;
    batch.push_back(std::move(writes_.front()));
    writes_.pop_front();
  }
  return batch;
}

void CommitQueue::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
}

size_t CommitQueue::size() const {
  MutexLock lock(&mutex_);
  return writes_.size();
}

}  // namespace perfd::daemon
