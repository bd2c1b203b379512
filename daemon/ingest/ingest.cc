#include "daemon/ingest/ingest.h"

#include <utility>

#include "core/base/log.h"
#include "core/base/mutex.h"

namespace perfd::daemon {

const char* WindowDropName(WindowDrop reason) {
  switch (reason) {
    case WindowDrop::kUnknownProfile:
      return "unknown_profile";
    case WindowDrop::kProfileOver:
      return "profile_over";
    case WindowDrop::kQueueFull:
      return "queue_full";
    case WindowDrop::kStoreFailed:
      return "store_failed";
    case WindowDrop::kMalformed:
      return "malformed";
    case WindowDrop::kInvalid:
      return "invalid";
    case WindowDrop::kNotPermitted:
      return "not_permitted";
    case WindowDrop::kForeign:
      return "foreign";
  }
  return "unknown";
}

void Ingest::Accept(IncomingWindow incoming, std::function<void(absl::Status)> done) {
  const absl::StatusOr<ProfileDisposition> disposition =
      ports_.disposition(incoming.window.profile_id);
  if (!disposition.ok()) {
    Drop(WindowDrop::kStoreFailed);
    return done(disposition.status());
  }
  if (*disposition == ProfileDisposition::kUnknown || *disposition == ProfileDisposition::kOver) {
    const WindowDrop reason = *disposition == ProfileDisposition::kUnknown
                                  ? WindowDrop::kUnknownProfile
                                  : WindowDrop::kProfileOver;
    return AcceptAuditOnly(reason, incoming, std::move(done));
  }
  const uint64_t bytes = incoming.body.size();
  if (const absl::Status entered = Enter(bytes); !entered.ok()) return done(entered);
  // Shared by the commit and the merge, which run on different threads.
  auto window = std::make_shared<const IncomingWindow>(std::move(incoming));
  auto committed = [this, life = life_, window, done](const absl::StatusOr<Appended>& appended) {
    ReaderMutexLock lock(&life->mutex);
    if (life->over) return done(absl::UnavailableError("perfd is stopping"));
    Committed(window, appended, done);
  };
  const absl::Status queued = ports_.append(*window, committed);
  if (queued.ok()) return;
  Release(bytes);
  Drop(WindowDrop::kQueueFull);
  done(queued);
}

void Ingest::AcceptAuditOnly(WindowDrop reason, const IncomingWindow& incoming,
                             std::function<void(absl::Status)> done) {
  const StreamKey stream = incoming.stream;
  const uint64_t sequence = incoming.window.sequence;
  if (incoming.window.audit.empty() || !ports_.keep_audit)
    return Refuse(reason, stream, sequence, done);
  const uint64_t bytes = incoming.body.size();
  if (const absl::Status entered = Enter(bytes); !entered.ok()) return done(entered);
  auto kept = [this, life = life_, reason, stream, sequence, bytes,
               done](const absl::Status& status) {
    ReaderMutexLock lock(&life->mutex);
    if (life->over) return done(absl::UnavailableError("perfd is stopping"));
    Release(bytes);
    // Entries that can never be stored (no such profile number) must not come back for ever.
    if (status.ok() || absl::IsInvalidArgument(status))
      return Refuse(reason, stream, sequence, done);
    Drop(WindowDrop::kStoreFailed);
    done(status);
  };
  const absl::Status queued = ports_.keep_audit(incoming, kept);
  if (queued.ok()) return;
  Release(bytes);
  Drop(WindowDrop::kQueueFull);
  done(queued);
}

void Ingest::Refuse(WindowDrop reason, const StreamKey& stream, uint64_t sequence,
                    const std::function<void(absl::Status)>& done) {
  if (const absl::Status entered = Enter(0); !entered.ok()) return done(entered);
  auto skipped = [this, life = life_, reason, done](const absl::Status& status) {
    ReaderMutexLock lock(&life->mutex);
    if (life->over) return done(absl::UnavailableError("perfd is stopping"));
    Release(0);
    // A sequence that cannot even be remembered is not worth a second try either.
    const bool settled = status.ok() || absl::IsInvalidArgument(status);
    Drop(settled ? reason : WindowDrop::kStoreFailed);
    done(settled ? absl::OkStatus() : status);
  };
  const absl::Status queued = ports_.skip(stream, sequence, skipped);
  if (queued.ok()) return;
  Release(0);
  Drop(WindowDrop::kQueueFull);
  done(queued);
}

void Ingest::Committed(std::shared_ptr<const IncomingWindow> window,
                       const absl::StatusOr<Appended>& appended,
                       const std::function<void(absl::Status)>& done) {
  if (appended.ok()) {
    Stored(std::move(window), *appended);
    return done(absl::OkStatus());
  }
  Release(window->body.size());
  const bool never = absl::IsInvalidArgument(appended.status());
  Drop(never ? WindowDrop::kInvalid : WindowDrop::kStoreFailed);
  done(never ? absl::OkStatus() : appended.status());
}

void Ingest::Stored(std::shared_ptr<const IncomingWindow> window, const Appended& appended) {
  const uint64_t bytes = window->body.size();
  {
    MutexLock lock(&mutex_);
    if (appended.duplicate) {
      ++figures_.duplicate;
    } else {
      ++figures_.stored;
      figures_.accounting += window->window.accounting;
      for (const AuditEntry& entry : window->window.audit) {
        ++figures_.injections[AuditActionIndex(entry.action)];
        figures_.injection_pause_ns += static_cast<uint64_t>(entry.pause_ns);
      }
      for (const WindowRow& row : window->window.rows) {
        if (row.location >= window->window.locations.size()) continue;
        figures_.samples[static_cast<size_t>(window->window.locations[row.location].category)] +=
            row.samples;
      }
    }
  }
  if (appended.duplicate) return Release(bytes);
  // The store has it: should there ever be no room here, the aggregate is rebuilt from the store at the next start.
  if (!ports_.merge(std::move(window), appended, [this, bytes] { Release(bytes); })) {
    Release(bytes);
    LogError("a stored window could not be merged: the merge queue is full or closing");
  }
}

absl::Status Ingest::Enter(uint64_t bytes) {
  MutexLock lock(&mutex_);
  if (closed_) return absl::UnavailableError("perfd is stopping");
  if (figures_.under_way >= limits_.most_windows || bytes_ + bytes > limits_.most_bytes) {
    ++figures_.dropped[static_cast<size_t>(WindowDrop::kQueueFull)];
    return absl::UnavailableError("too many windows are under way: send it again later");
  }
  ++figures_.under_way;
  bytes_ += bytes;
  return absl::OkStatus();
}

void Ingest::Release(uint64_t bytes) {
  std::vector<std::function<void()>> wake;
  {
    MutexLock lock(&mutex_);
    --figures_.under_way;
    bytes_ -= bytes;
    // Not at the limit itself: every sender that wakes up brings a window.
    if (figures_.under_way <= limits_.windows / 2 && bytes_ <= limits_.bytes / 2)
      wake.swap(waiting_);
  }
  for (const std::function<void()>& go_on : wake) go_on();
}

bool Ingest::AwaitRoom(std::function<void()> wake) {
  MutexLock lock(&mutex_);
  if (closed_ || (figures_.under_way < limits_.windows && bytes_ < limits_.bytes)) return false;
  waiting_.push_back(std::move(wake));
  return true;
}

void Ingest::Close(absl::Duration within) {
  std::vector<std::function<void()>> forgotten;  // may own the last of a stream: not under the lock
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    forgotten.swap(waiting_);
    if (!mutex_.AwaitWithTimeout(absl::Condition(this, &Ingest::Idle), within))
      LogWarning("{} windows were still under way; agents send them again", figures_.under_way);
  }
  MutexLock lock(&life_->mutex);
  life_->over = true;
}

void Ingest::Drop(WindowDrop reason) {
  MutexLock lock(&mutex_);
  ++figures_.dropped[static_cast<size_t>(reason)];
}

IngestFigures Ingest::figures() const {
  MutexLock lock(&mutex_);
  return figures_;
}

}  // namespace perfd::daemon
