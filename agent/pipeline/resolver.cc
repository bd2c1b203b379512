#include "agent/pipeline/resolver.h"

#include <pthread.h>

#include <utility>

namespace perfd {
namespace {

constexpr int64_t kReaderIdleNs = 30 * kNsPerSecond;
// Long enough for the first look at a binary of some hundred MB on a busy node.
constexpr absl::Duration kLookupTimeout = absl::Seconds(30);

}  // namespace

Resolver::Resolver(OpenCodeSource open, const Clock& clock)
    : index_(std::move(open), clock), thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "perfd-resolve");
}

Resolver::~Resolver() {
  queue_.Close();
  thread_.join();
}

bool Resolver::Submit(std::unique_ptr<RawWindow>& raw, Done done) {
  Task task{std::move(raw), std::move(done)};
  if (queue_.TryPush(std::move(task))) return true;
  raw = std::move(task.raw);
  return false;
}

void Resolver::Run() {
  while (true) {
    auto task = queue_.Pop(absl::Seconds(5));
    if (task.has_value()) {
      UnreadableModules unreadable;
      Window window = ResolveWindow(std::move(*task->raw), index_, kLookupTimeout, &unreadable);
      task->done(std::move(window), std::move(unreadable));
    } else if (queue_.closed()) {
      return;
    }
    index_.CloseIdleReaders(kReaderIdleNs);
  }
}

}  // namespace perfd
