// agent/pipeline/resolver.h - the thread that turns raw windows into windows, one after the other.
//
// Shape    Submit(task); the callback gets the resolved window on the resolver's thread.
// Threads  Submit is thread-safe; one thread of its own ("perfd-resolve").
// Bounds   at most kMaxQueued windows wait; Submit returns false beyond (the caller keeps or counts them). A window waits
//          for readers as long as its profile's budget allows, and kLookupTimeout at most for all its modules.
#ifndef AGENT_PIPELINE_RESOLVER_H_
#define AGENT_PIPELINE_RESOLVER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "agent/pipeline/code_index.h"
#include "agent/pipeline/read_budget.h"
#include "agent/pipeline/resolve_window.h"
#include "core/base/bounded_queue.h"

namespace perfd::agent {

class Resolver {
 public:
  static constexpr size_t kMaxQueued = 64;
  using Done = std::function<void(Window, UnreadableModules)>;

  Resolver(OpenCodeSource open, const Clock& clock, AnonymousPorts anonymous = {});
  ~Resolver();  // finishes what is queued, with what is known by then

  // Work with what is known about code. False: no room.
  bool Post(std::function<void(CodeIndex&)> work);
  // `raw` is consumed only on success. The budget is used by the resolver's thread alone.
  bool Submit(std::unique_ptr<RawWindow>& raw, std::shared_ptr<ReadBudget> budget, Done done);

 private:
  struct Task {
    std::unique_ptr<RawWindow> raw;
    std::shared_ptr<ReadBudget> budget;
    Done done;
    std::function<void(CodeIndex&)> work;  // instead of a window
  };
  void Run();
  void Resolve(Task task);

  CodeIndex index_;
  BoundedQueue<Task> queue_{kMaxQueued};
  std::thread thread_;
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_RESOLVER_H_
