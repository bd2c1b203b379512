#include "agent/pipeline/resolver.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

namespace perfd::agent {
namespace {

constexpr int64_t kReaderIdleNs = 30 * kNsPerSecond;
// Long enough for the first look at a binary of some hundred MB on a busy node.
constexpr absl::Duration kLookupTimeout = absl::Seconds(30);

}  // namespace

Resolver::Resolver(OpenCodeSource open, const Clock& clock, AnonymousPorts anonymous)
    : index_(std::move(open), clock, ProcessIsAlive, std::move(anonymous)),
      thread_([this] { Run(); }) {
  pthread_setname_np(thread_.native_handle(), "perfd-resolve");
}

Resolver::~Resolver() {
  queue_.Close();
  thread_.join();
}

bool Resolver::Submit(std::unique_ptr<RawWindow>& raw, std::shared_ptr<ReadBudget> budget,
                      Done done) {
  Task task{std::move(raw), std::move(budget), std::move(done), nullptr};
  if (queue_.TryPush(std::move(task))) return true;
  raw = std::move(task.raw);  // NOLINT(bugprone-use-after-move): TryPush moves only what it takes
  return false;
}

bool Resolver::Post(std::function<void(CodeIndex&)> work) {
  return queue_.TryPush(Task{nullptr, nullptr, nullptr, std::move(work)});
}

void Resolver::Resolve(Task task) {
  UnreadableModules unreadable;
  const absl::Duration timeout =
      queue_.closed() ? absl::ZeroDuration() : std::min(kLookupTimeout, task.budget->Left());
  const int64_t waited_ns = index_.waited_ns();
  Window window = ResolveWindow(std::move(*task.raw), index_, timeout, &unreadable);
  task.budget->Spend(index_.waited_ns() - waited_ns);
  task.done(std::move(window), std::move(unreadable));
}

void Resolver::Run() {
  while (true) {
    auto task = queue_.Pop(absl::Seconds(5));
    if (task.has_value() && task->work) {
      if (!queue_.closed()) task->work(index_);
    } else if (task.has_value()) {
      Resolve(*std::move(task));
    } else if (queue_.closed()) {
      return;
    }
    index_.CloseIdleReaders(kReaderIdleNs);
  }
}

}  // namespace perfd::agent
