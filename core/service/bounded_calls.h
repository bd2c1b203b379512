// core/service/bounded_calls.h - calls into the system that may never return, each waited for no longer than a bound.
//
// Shape    Ask(within, question) -> its answer, or nothing when it takes longer. What a question works on must be its own:
//          one that comes too late goes on, and nobody hears of it.
// Limits   as many calls at a time as threads, kMostWaiting more. While every thread is stuck beyond its bound, nobody waits:
//          Ask gives nothing at once.
// Threads  thread-safe. Own threads; the destructor leaves those that are stuck behind, as nothing ends them.
#ifndef CORE_SERVICE_BOUNDED_CALLS_H_
#define CORE_SERVICE_BOUNDED_CALLS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"

namespace perfd {

class BoundedCalls {
 public:
  static constexpr size_t kMostWaiting = 1024;

  // `name` is at most 15 bytes (pthread_setname_np(3)).
  BoundedCalls(const std::string& name, size_t threads);
  ~BoundedCalls();
  BoundedCalls(const BoundedCalls&) = delete;
  BoundedCalls& operator=(const BoundedCalls&) = delete;

  template <typename Answer>
  std::optional<Answer> Ask(absl::Duration within, std::function<Answer()> question) {
    auto answer = std::make_shared<std::optional<Answer>>();  // shared with a call that is too late
    const bool came =
        Run(within, [answer, question = std::move(question)] { answer->emplace(question()); });
    if (!came) return std::nullopt;
    return std::move(*answer);
  }

 private:
  struct Shared;

  // True: `task` has ended.
  bool Run(absl::Duration within, std::function<void()> task);

  const std::shared_ptr<Shared> shared_;  // with threads that may outlive this
};

}  // namespace perfd

#endif  // CORE_SERVICE_BOUNDED_CALLS_H_
