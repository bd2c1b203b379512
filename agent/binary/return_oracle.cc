#include "agent/binary/return_oracle.h"

#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "agent/binary/flow/decoder.h"
#include "agent/binary/symbol_name.h"

namespace perfd::agent {

bool ReturnOracle::NeverReturns(uint64_t callee) {
  budget_ = kMaxInstructionsFollowed;
  return Ask(callee, 0);
}

bool ReturnOracle::Ask(uint64_t callee, int depth) {
  if (const auto known = known_.find(callee); known != known_.end()) return known->second;
  if (perfd::agent::NeverReturns(name_(callee))) return known_[callee] = true;
  if (depth == kMaxCallDepth || budget_ <= 0) return false;  // not an answer to be kept
  known_[callee] = false;                                    // while it is looked into: recursion
  const bool never = Follow(callee, depth);
  if (budget_ <= 0) {
    known_.erase(callee);
    return false;
  }
  return known_[callee] = never;
}

bool ReturnOracle::Follow(uint64_t callee, int depth) {
  std::vector<uint64_t> todo = {callee};
  absl::flat_hash_set<uint64_t> seen;
  while (!todo.empty()) {
    uint64_t at = todo.back();
    todo.pop_back();
    while (seen.insert(at).second) {
      const auto instruction = Decode(read_(at), at);
      if (!instruction || --budget_ <= 0) return false;
      if (HasTargetInCode(*instruction)) todo.push_back(instruction->target);
      if (instruction->flow == Flow::kTrap || instruction->flow == Flow::kJump) break;
      if (!FallsThrough(*instruction)) return false;  // a return, or a jump to who knows where
      if (instruction->flow == Flow::kCall) {
        if (const auto pad = pad_(at)) todo.push_back(*pad);
        if (Ask(instruction->target, depth + 1)) break;
      }
      at = instruction->end();
    }
  }
  return true;
}

}  // namespace perfd::agent
