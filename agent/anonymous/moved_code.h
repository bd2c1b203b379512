// agent/anonymous/moved_code.h - code of a file that a program has copied to anonymous memory in the file's own place.
//
// Shape    BiasOfMoved: where the file is loaded, by a mapping of it that is still there; pure. MovedCode::Check: whether a range
//          of the file's code is in the process, page by page; what was found equal stays so for that program.
// Units    run-time addresses, ELF addresses; pages of 4 KiB.
// Errors   Check: kFailedPrecondition (other bytes, or beyond the code of the file), and those of reading.
// Bounds   kMaxProcesses are remembered, those that were asked about last.
// Threads  thread-bound.
// Source   ELF gABI, Program Loading: segments keep their distance to each other, and are mapped in whole pages.
#ifndef AGENT_ANONYMOUS_MOVED_CODE_H_
#define AGENT_ANONYMOUS_MOVED_CODE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/anonymous/process_id.h"
#include "core/base/address.h"
#include "core/model/module.h"
#include "core/model/stack.h"

namespace perfd::agent {

// None: [start, end) is not where code of the file belongs, or two places would do.
std::optional<LoadBias> BiasOfMoved(const ModuleFacts& facts, RuntimeAddress start,
                                    RuntimeAddress end, const FileNeighbour& beside);

class MovedCode {
 public:
  static constexpr size_t kMaxProcesses = 512;
  using ReadMemory =
      std::function<absl::StatusOr<std::string>(int32_t pid, RuntimeAddress at, size_t bytes)>;
  // Whether the file has these bytes there.
  using HasBytes = absl::FunctionRef<absl::StatusOr<bool>(ElfAddress at, absl::string_view bytes)>;

  // `read` may be empty: nothing is ever found equal.
  explicit MovedCode(ReadMemory read) : read_(std::move(read)) {}

  // All pages that hold a byte of [range.low, range.high), ELF addresses.
  absl::Status Check(const ProcessId& process, const ModuleFacts& facts, LoadBias bias,
                     const CodeRange& range, HasBytes has_bytes);

 private:
  struct Known {
    absl::flat_hash_set<RuntimeAddress> equal;  // pages
    uint64_t asked = 0;
  };
  Known& Of(const ProcessId& process);

  const ReadMemory read_;
  uint64_t asked_ = 0;
  absl::flat_hash_map<ProcessId, Known> known_;
};

}  // namespace perfd::agent

#endif  // AGENT_ANONYMOUS_MOVED_CODE_H_
