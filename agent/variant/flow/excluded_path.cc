#include "agent/variant/flow/excluded_path.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/flow/leaf_calls.h"

namespace perfd::agent {
namespace {

constexpr size_t kMostExcludedPaths = 4;  // named to people

using Graph = std::vector<std::vector<uint32_t>>;

bool CannotBeCopied(const LoopInstruction& i) {
  return !i.refusal.empty() || i.flow == LoopFlow::kCall;
}

// Nobody knows where it leads, so nobody knows that it does not lead under the jump at the header.
bool LeadsAnywhere(const LoopInstruction& i) {
  return !i.refusal.empty() && i.flow != LoopFlow::kPlain && i.flow != LoopFlow::kCall &&
         i.target == 0;
}

// Edges between instructions that can be copied.
Graph Successors(const LoopCode& loop) {
  Graph next(loop.instructions.size());
  const auto add = [&](uint32_t from, uint64_t target) {
    const int to = InstructionAt(loop, target);
    if (to >= 0 && !CannotBeCopied(loop.instructions[static_cast<size_t>(to)]))
      next[from].push_back(static_cast<uint32_t>(to));
  };
  for (uint32_t n = 0; n < next.size(); ++n) {
    const LoopInstruction& i = loop.instructions[n];
    if (CannotBeCopied(i)) continue;
    if (i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump) add(n, i.target);
    if (i.flow != LoopFlow::kJump && i.flow != LoopFlow::kEnd) add(n, i.end());
  }
  return next;
}

Graph Reversed(const Graph& graph) {
  Graph reversed(graph.size());
  for (uint32_t n = 0; n < graph.size(); ++n)
    for (uint32_t to : graph[n]) reversed[to].push_back(n);
  return reversed;
}

std::vector<bool> ReachedFrom(uint32_t start, const Graph& graph) {
  std::vector<bool> reached(graph.size());
  std::vector<uint32_t> work = {start};
  reached[start] = true;
  while (!work.empty()) {
    const uint32_t at = work.back();
    work.pop_back();
    for (uint32_t to : graph[at]) {
      if (reached[to]) continue;
      reached[to] = true;
      work.push_back(to);
    }
  }
  return reached;
}

void AddRange(const LoopInstruction& i, std::vector<CodeRange>* ranges) {
  if (!ranges->empty() && ranges->back().high == i.address)
    ranges->back().high = i.end();
  else
    ranges->push_back({i.address, i.end()});
}

void NameExcludedPath(const LoopInstruction& i, LoopCode* loop) {
  if (!CannotBeCopied(i)) return;
  NameExcludedPath(absl::StrCat("0x", absl::Hex(i.listed.value()), " `", i.text, "`",
                                i.refusal.empty() ? "" : ": ", i.refusal),
                   loop);
}

void Retain(const std::vector<bool>& kept, LoopCode* loop) {
  std::vector<LoopInstruction> all = std::exchange(loop->instructions, {});
  loop->body.clear();
  for (size_t n = 0; n < all.size(); ++n) {
    if (!kept[n]) NameExcludedPath(all[n], loop);
    if (!InLeaf(*loop, all[n].address))
      AddRange(all[n], kept[n] ? &loop->body : &loop->excluded.ranges);
    if (kept[n]) loop->instructions.push_back(std::move(all[n]));
  }
}

}  // namespace

void ExcludePaths(LoopCode* loop) {
  const std::vector<LoopInstruction>& all = loop->instructions;
  if (std::none_of(all.begin(), all.end(), CannotBeCopied)) return;
  if (std::any_of(all.begin(), all.end(), LeadsAnywhere)) return;
  const int entry = InstructionAt(*loop, loop->header);
  if (entry < 0 || CannotBeCopied(all[static_cast<size_t>(entry)])) return;
  const auto start = static_cast<uint32_t>(entry);
  const Graph next = Successors(*loop);
  std::vector<bool> kept = ReachedFrom(start, next);
  const Graph previous = Reversed(next);
  const std::vector<bool> returning = ReachedFrom(start, previous);
  // A leaf's way out needs what leads to it.
  for (size_t n = 0; n < kept.size(); ++n)
    kept[n] = kept[n] && (returning[n] || InLeaf(*loop, all[n].address));
  const bool goes_round = std::any_of(previous[start].begin(), previous[start].end(),
                                      [&kept](uint32_t n) { return kept[n]; });
  if (goes_round) Retain(kept, loop);
}

void NameExcludedPath(const std::string& text, LoopCode* loop) {
  if (loop->excluded.texts.size() < kMostExcludedPaths) loop->excluded.texts.push_back(text);
}

bool InCut(const LoopCode& loop, uint64_t address) {
  return std::any_of(
      loop.excluded.ranges.begin(), loop.excluded.ranges.end(),
      [address](const CodeRange& r) { return address >= r.low && address < r.high; });
}

}  // namespace perfd::agent
