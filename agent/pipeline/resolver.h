// agent/pipeline/resolver.h - the thread that turns raw windows into windows, one after the other.
//
// Shape    Submit(task); the callback gets the resolved window on the resolver's thread.
// Threads  Submit is thread-safe; one thread of its own ("perfd-resolve").
// Bounds   at most kMaxQueued windows wait; Submit returns false beyond (the caller keeps or counts them).
#ifndef AGENT_PIPELINE_RESOLVER_H_
#define AGENT_PIPELINE_RESOLVER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "agent/pipeline/code_index.h"
#include "agent/pipeline/resolve_window.h"
#include "core/base/bounded_queue.h"

namespace perfd {

class Resolver {
 public:
  static constexpr size_t kMaxQueued = 64;
  using Done = std::function<void(Window, UnreadableModules)>;

  Resolver(OpenCodeSource open, const Clock& clock);
  ~Resolver();  // finishes what is queued, at most a few seconds

  // `raw` is consumed only on success.
  bool Submit(std::unique_ptr<RawWindow>& raw, Done done);

 private:
  struct Task {
    std::unique_ptr<RawWindow> raw;
    Done done;
  };
  void Run();

  CodeIndex index_;
  BoundedQueue<Task> queue_{kMaxQueued};
  std::thread thread_;
};

}  // namespace perfd

#endif  // AGENT_PIPELINE_RESOLVER_H_
