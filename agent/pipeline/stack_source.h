// agent/pipeline/stack_source.h - who turns copies of stacks into call paths: a confined process, a table in tests.
//
// Errors   Open: why no call path of the process can be read. Unwind: kDeadlineExceeded, kInternal; the source is then of
//          no more use.
// Threads  thread-bound to the thread that opened it.
#ifndef AGENT_PIPELINE_STACK_SOURCE_H_
#define AGENT_PIPELINE_STACK_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/stack.h"

namespace perfd::agent {

// A process as it was mapped at one moment.
struct StackTarget {
  int32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t image = 0;                   // counts the programs the process has run (exec)
  uint64_t generation = 0;              // of the mappings
  std::vector<CodeMapping> mappings{};  // by start, disjoint
};

class StackSource {
 public:
  virtual ~StackSource() = default;
  virtual absl::StatusOr<CallPath> Unwind(const StackCopy& copy, absl::Duration timeout) = 0;
  // CPU time it has used outside this process so far, ns.
  virtual uint64_t cpu_ns() const = 0;
};
using OpenStackSource =
    std::function<absl::StatusOr<std::unique_ptr<StackSource>>(const StackTarget&)>;

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_STACK_SOURCE_H_
