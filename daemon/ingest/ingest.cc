#include "daemon/ingest/ingest.h"

#include <iterator>
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
  const ProfileHolder sender = incoming.sender;
  const uint64_t bytes = incoming.body.size();
  if (const absl::Status entered = Enter(sender, bytes); !entered.ok()) return done(entered);
  // Shared by the commit and the merge, which run on different threads.
  auto window = std::make_shared<const IncomingWindow>(std::move(incoming));
  auto committed = [this, life = life_, window, done](const absl::StatusOr<Appended>& appended) {
    ReaderMutexLock lock(&life->mutex);
    if (life->over) return done(absl::UnavailableError("perfd is stopping"));
    Committed(window, appended, done);
  };
  const absl::Status queued = ports_.append(*window, committed);
  if (queued.ok()) return;
  Release(sender, bytes);
  Drop(WindowDrop::kQueueFull);
  done(queued);
}

void Ingest::AcceptAuditOnly(WindowDrop reason, const IncomingWindow& incoming,
                             std::function<void(absl::Status)> done) {
  const StreamKey stream = incoming.stream;
  const ProfileHolder sender = incoming.sender;
  const uint64_t sequence = incoming.window.sequence;
  if (incoming.window.audit.empty() || !ports_.keep_audit)
    return Refuse(reason, sender, stream, sequence, done);
  const uint64_t bytes = incoming.body.size();
  if (const absl::Status entered = Enter(sender, bytes); !entered.ok()) return done(entered);
  auto kept = [this, life = life_, reason, sender, stream, sequence, bytes,
               done](const absl::Status& status) {
    ReaderMutexLock lock(&life->mutex);
    if (life->over) return done(absl::UnavailableError("perfd is stopping"));
    Release(sender, bytes);
    // Entries that can never be stored (no such profile number) must not come back for ever.
    if (status.ok() || absl::IsInvalidArgument(status))
      return Refuse(reason, sender, stream, sequence, done);
    Drop(WindowDrop::kStoreFailed);
    done(status);
  };
  const absl::Status queued = ports_.keep_audit(incoming, kept);
  if (queued.ok()) return;
  Release(sender, bytes);
  Drop(WindowDrop::kQueueFull);
  done(queued);
}

void Ingest::Refuse(WindowDrop reason, ProfileHolder sender, const StreamKey& stream,
                    uint64_t sequence, const std::function<void(absl::Status)>& done) {
  if (const absl::Status entered = Enter(sender, 0); !entered.ok()) return done(entered);
  auto skipped = [this, life = life_, reason, sender, done](const absl::Status& status) {
    ReaderMutexLock lock(&life->mutex);
    if (life->over) return done(absl::UnavailableError("perfd is stopping"));
    Release(sender, 0);
    // A sequence that cannot even be remembered is not worth a second try either.
    const bool settled = status.ok() || absl::IsInvalidArgument(status);
    Drop(settled ? reason : WindowDrop::kStoreFailed);
    done(settled ? absl::OkStatus() : status);
  };
  const absl::Status queued = ports_.skip(stream, sequence, skipped);
  if (queued.ok()) return;
  Release(sender, 0);
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
  Release(window->sender, window->body.size());
  const bool never = absl::IsInvalidArgument(appended.status());
  Drop(never ? WindowDrop::kInvalid : WindowDrop::kStoreFailed);
  done(never ? absl::OkStatus() : appended.status());
}

void Ingest::Stored(std::shared_ptr<const IncomingWindow> window, const Appended& appended) {
  const ProfileHolder sender = window->sender;
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
  if (appended.duplicate) return Release(sender, bytes);
  // The store has it: should there ever be no room here, the aggregate is rebuilt from the store at the next start.
  if (!ports_.merge(std::move(window), appended,
                    [this, sender, bytes] { Release(sender, bytes); })) {
    Release(sender, bytes);
    LogError("a stored window could not be merged: the merge queue is full or closing");
  }
}

absl::Status Ingest::Enter(ProfileHolder sender, uint64_t bytes) {
  MutexLock lock(&mutex_);
  if (closed_) return absl::UnavailableError("perfd is stopping");
  if (all_.windows >= limits_.most_windows || all_.bytes + bytes > limits_.most_bytes) {
    ++figures_.dropped[static_cast<size_t>(WindowDrop::kQueueFull)];
    return absl::UnavailableError("too many windows are under way: send it again later");
  }
  const auto add = [bytes](Lot& lot) {
    ++lot.windows;
    lot.bytes += bytes;
  };
  add(all_);
  if (!HasRoomOfItsOwn(sender)) add(of_user_[sender]);
  return absl::OkStatus();
}

void Ingest::Leave(Lot& lot, uint64_t bytes, uint64_t windows_limit, uint64_t bytes_limit,
                   std::vector<std::function<void()>>& wake) {
  --lot.windows;
  lot.bytes -= bytes;
  // Not at the limit itself: every sender that wakes up brings a window.
  if (lot.windows > windows_limit / 2 || lot.bytes > bytes_limit / 2) return;
  std::move(lot.waiting.begin(), lot.waiting.end(), std::back_inserter(wake));
  lot.waiting.clear();
}

void Ingest::Release(ProfileHolder sender, uint64_t bytes) {
  std::vector<std::function<void()>> wake;
  {
    MutexLock lock(&mutex_);
    Leave(all_, bytes, limits_.windows, limits_.bytes, wake);
    if (const auto of = of_user_.find(sender); of != of_user_.end()) {
      Leave(of->second, bytes, limits_.user_windows, limits_.user_bytes, wake);
      if (of->second.windows == 0) of_user_.erase(of);
    }
  }
  for (const std::function<void()>& go_on : wake) go_on();
}

bool Ingest::AwaitRoom(ProfileHolder sender, std::function<void()> wake) {
  MutexLock lock(&mutex_);
  if (closed_) return false;
  if (const auto of = of_user_.find(sender);
      of != of_user_.end() &&
      (of->second.windows >= limits_.user_windows || of->second.bytes >= limits_.user_bytes)) {
    of->second.waiting.push_back(std::move(wake));
    return true;
  }
  if (all_.windows < limits_.windows && all_.bytes < limits_.bytes) return false;
  all_.waiting.push_back(std::move(wake));
  return true;
}

void Ingest::Close(absl::Duration within) {
  // May own the last of a stream: not under the lock.
  std::vector<std::vector<std::function<void()>>> forgotten;
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    forgotten.push_back(std::exchange(all_.waiting, {}));
    for (auto& [user, lot] : of_user_) forgotten.push_back(std::exchange(lot.waiting, {}));
    if (!mutex_.AwaitWithTimeout(absl::Condition(this, &Ingest::Idle), within))
      LogWarning("{} windows were still under way; agents send them again", all_.windows);
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
  IngestFigures figures = figures_;
  figures.under_way = all_.windows;
  return figures;
}

}  // namespace perfd::daemon
