// agent/binary/return_oracle.h - whether a called function ever comes back: what stands after the call depends on it.
//
// Shape    NeverReturns(callee): by name (abort, throw), else when every path from its entry ends in a trap or in calls
//          that never return. Stripped binaries have such functions of their own (error exits); taking what follows them
//          for reachable would give loops a second entry. What catches an exception of one of its calls is a path, too.
// Limits   kMaxInstructionsFollowed per question, kMaxCallDepth; beyond them a function is taken to return.
// Threads  thread-bound (answers are cached).
#ifndef AGENT_BINARY_RETURN_ORACLE_H_
#define AGENT_BINARY_RETURN_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace perfd::agent {

class ReturnOracle {
 public:
  static constexpr int kMaxInstructionsFollowed = 1000;
  static constexpr int kMaxCallDepth = 6;

  using ReadCode =
      std::function<std::span<const std::byte>(uint64_t address)>;    // to the end of the code
  using NameAt = std::function<absl::string_view(uint64_t address)>;  // empty: unknown
  // Where an exception that comes out of the call at this address goes on in the calling function.
  using PadAt = std::function<std::optional<uint64_t>(uint64_t call)>;

  ReturnOracle(ReadCode read, NameAt name, PadAt pad)
      : read_(std::move(read)), name_(std::move(name)), pad_(std::move(pad)) {}

  bool NeverReturns(uint64_t callee);

 private:
  bool Ask(uint64_t callee, int depth);
  bool Follow(uint64_t callee, int depth);

  ReadCode read_;
  NameAt name_;
  PadAt pad_;
  int budget_ = 0;  // instructions left for this question
  absl::flat_hash_map<uint64_t, bool> known_;
};

}  // namespace perfd::agent

#endif  // AGENT_BINARY_RETURN_ORACLE_H_
