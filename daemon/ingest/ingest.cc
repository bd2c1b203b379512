#include "daemon/ingest/ingest.h"

#include <utility>

#include "core/base/log.h"

namespace perfd {

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
  }
  return "unknown";
}

void Ingest::Take(IncomingWindow incoming, std::function<void(absl::Status)> done) {
  const ProfileFate fate = ports_.fate(incoming.window.profile_id);
  if (fate == ProfileFate::kUnknown || fate == ProfileFate::kOver) {
    Drop(fate == ProfileFate::kUnknown ? WindowDrop::kUnknownProfile : WindowDrop::kProfileOver);
    return done(absl::OkStatus());
  }
  if (under_way_.fetch_add(1) >= capacity_) {
    Leave();
    Drop(WindowDrop::kQueueFull);
    return done(absl::UnavailableError("too many windows are under way: send it again later"));
  }
  // Shared by the commit and the merge, which run on different threads.
  auto window = std::make_shared<const IncomingWindow>(std::move(incoming));
  auto committed = [this, window, done](const absl::StatusOr<Appended>& appended) {
    if (!appended.ok()) {
      Leave();
      Drop(WindowDrop::kStoreFailed);
      return done(appended.status());
    }
    done(absl::OkStatus());
    Stored(window, *appended);
  };
  const absl::Status queued = ports_.append(*window, committed);
  if (queued.ok()) return;
  Leave();
  Drop(WindowDrop::kQueueFull);
  done(queued);
}

void Ingest::Stored(std::shared_ptr<const IncomingWindow> window, const Appended& appended) {
  {
    absl::MutexLock lock(&mutex_);
    if (appended.duplicate) {
      ++figures_.duplicate;
    } else {
      ++figures_.stored;
      figures_.accounting += window->window.accounting;
      for (const WindowRow& row : window->window.rows) {
        if (row.location >= window->window.locations.size()) continue;
        figures_.samples[static_cast<size_t>(window->window.locations[row.location].category)] +=
            row.samples;
      }
    }
  }
  if (appended.duplicate) return Leave();
  // The store has it: should there ever be no room here, the aggregate is rebuilt from the store at the next start.
  if (!ports_.merge(std::move(window), appended, [this] { Leave(); })) {
    Leave();
    LogError("a stored window could not be merged: the merge queue is full or closing");
  }
}

void Ingest::Drop(WindowDrop reason) {
  absl::MutexLock lock(&mutex_);
  ++figures_.dropped[static_cast<size_t>(reason)];
}

IngestFigures Ingest::figures() const {
  absl::MutexLock lock(&mutex_);
  IngestFigures figures = figures_;
  figures.under_way = under_way_.load();
  return figures;
}

}  // namespace perfd
