#include "agent/variant/flow/edges.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/variant/decode.h"
#include "agent/variant/flow/body.h"
#include "agent/variant/flow/excluded_path.h"
#include "agent/variant/flow/far_branches.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

absl::Status AddEdge(uint64_t target, uint32_t from, LoopCode* loop) {
  const int to = InstructionAt(*loop, target);
  if (to >= 0) {
    loop->next[from].push_back(static_cast<uint32_t>(to));
    return absl::OkStatus();
  }
  if (InBody(*loop, target))
    return Refuse(loop->instructions[from], "leads into the middle of an instruction of the loop");
  loop->exits[from].push_back(target);
  return absl::OkStatus();
}

absl::Status AddEdges(uint32_t from, LoopCode* loop) {
  const LoopInstruction& i = loop->instructions[from];
  if (!i.refusal.empty()) return Refuse(i, i.refusal);
  if (i.flow == LoopFlow::kCall) loop->calls.push_back(from);
  if (i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump)
    RETURN_IF_ERROR(AddEdge(i.target, from, loop));
  if (i.flow != LoopFlow::kJump && i.flow != LoopFlow::kEnd)
    RETURN_IF_ERROR(AddEdge(i.end(), from, loop));
  return absl::OkStatus();
}

absl::Status CheckShape(const LoopCode& loop) {
  bool returns = false;
  bool leaves = false;
  for (size_t i = 0; i < loop.next.size(); ++i) {
    leaves = leaves || !loop.exits[i].empty();
    returns = returns ||
              std::find(loop.next[i].begin(), loop.next[i].end(), loop.entry) != loop.next[i].end();
  }
  const LoopInstruction& header = loop.instructions[loop.entry];
  if (!returns) return Refuse(header, "nothing in the body leads back to this header");
  if (!leaves) return Refuse(header, "the loop has no exit");
  return absl::OkStatus();
}

absl::Status SecondEntry(const LoopCode& loop, uint64_t from, uint64_t to) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the loop has a second entry: 0x", absl::Hex((RuntimeAddress(from) - loop.bias).value()),
      " leads to 0x", absl::Hex((RuntimeAddress(to) - loop.bias).value())));
}

// One stretch of a part of the function, between pieces of the loop. `falls`: control can run into its first byte.
struct Stretch {
  uint64_t low = 0;
  uint64_t high = 0;
  bool falls = true;
};

// The loop's own detours come back to its original text, which stays as it is but for the jump at the header.
bool Forbidden(const LoopCode& loop, uint64_t from, uint64_t to) {
  if (to == loop.header || !InBody(loop, to)) return false;
  return !InCut(loop, from) || (to > loop.header && to < loop.header + kJumpBytes);
}

absl::Status CheckStretch(const LoopBytes& bytes, const LoopCode& loop, const Stretch& stretch) {
  bool falls = stretch.falls;
  uint64_t at = stretch.low;
  uint64_t last = at;
  while (at < stretch.high) {
    const std::optional<FlowStep> step = DecodeFlow(BytesAt(bytes, at), at);
    if (!step) {
      ++at;
      continue;
    }
    const bool jumps = step->flow == LoopFlow::kBranch || step->flow == LoopFlow::kJump;
    if (jumps && Forbidden(loop, at, step->target)) return SecondEntry(loop, at, step->target);
    if (step->flow == LoopFlow::kJump || step->flow == LoopFlow::kEnd) falls = false;
    if (step->flow != LoopFlow::kJump && step->flow != LoopFlow::kEnd && !step->padding)
      falls = true;
    last = at;
    at += step->length;
  }
  if (falls && at == stretch.high && last < at && Forbidden(loop, last, at))
    return SecondEntry(loop, last, at);
  return absl::OkStatus();
}

constexpr size_t kMostPieces =
    8;  // of a body; of one with more every instruction of the function is decoded

// Where a branch into the body, but not to its header, may stand: a superset, without decoding what surrounds the loop (long
// functions have thousands of loops). Nothing: look everywhere.
std::optional<std::vector<uint64_t>> Suspects(const LoopBytes& bytes, const LoopCode& loop) {
  if (loop.body.size() > kMostPieces) return std::nullopt;
  std::vector<uint64_t> found;
  const auto search = [&](const CodeRange& target) {
    for (const CodeText& text : bytes.function) {
      const std::vector<uint64_t> from = BranchesInto(text.bytes, text.address, target, loop.body);
      found.insert(found.end(), from.begin(), from.end());
    }
  };
  for (const CodeRange& range : loop.body) {
    const bool split = range.Contains(loop.header);
    search({range.low, split ? loop.header : range.high});
    if (split) search({loop.header + 1, range.high});
  }
  return found;
}

// Whether decoding a stretch can find anything.
bool MayLeadIn(const LoopCode& loop, const Stretch& stretch,
               const std::optional<std::vector<uint64_t>>& suspects) {
  if (!suspects || (stretch.high != loop.header && InBody(loop, stretch.high))) return true;
  return std::any_of(suspects->begin(), suspects->end(), [&stretch](uint64_t from) {
    return from >= stretch.low && from < stretch.high;
  });
}

bool FallsThrough(const LoopCode& loop, uint64_t end) {
  for (const LoopInstruction& i : loop.instructions)
    if (i.end() == end) return i.flow != LoopFlow::kJump && i.flow != LoopFlow::kEnd;
  return false;
}

}  // namespace

absl::Status Refuse(const LoopInstruction& instruction, absl::string_view reason) {
  return absl::FailedPreconditionError(absl::StrCat("0x", absl::Hex(instruction.listed.value()),
                                                    " `", instruction.text, "`: ", reason));
}

bool InBody(const LoopCode& loop, uint64_t address) {
  return std::any_of(loop.body.begin(), loop.body.end(), [address](const CodeRange& r) {
    return address >= r.low && address < r.high;
  });
}

int InstructionAt(const LoopCode& loop, uint64_t address) {
  const auto at =
      std::lower_bound(loop.instructions.begin(), loop.instructions.end(), address,
                       [](const LoopInstruction& i, uint64_t value) { return i.address < value; });
  if (at == loop.instructions.end() || at->address != address) return -1;
  return static_cast<int>(at - loop.instructions.begin());
}

absl::Status BuildEdges(LoopCode* loop) {
  const size_t count = loop->instructions.size();
  const int entry = InstructionAt(*loop, loop->header);
  if (entry < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no instruction of the body starts at the header 0x", absl::Hex(loop->header)));
  }
  loop->entry = static_cast<uint32_t>(entry);
  loop->next.assign(count, {});
  loop->exits.assign(count, {});
  loop->calls.clear();
  for (uint32_t i = 0; i < count; ++i) RETURN_IF_ERROR(AddEdges(i, loop));
  return CheckShape(*loop);
}

absl::Status CheckEntries(const LoopBytes& bytes, const LoopCode& loop) {
  const std::optional<std::vector<uint64_t>> suspects = Suspects(bytes, loop);
  const auto check = [&](const Stretch& stretch) {
    return MayLeadIn(loop, stretch, suspects) ? CheckStretch(bytes, loop, stretch)
                                              : absl::OkStatus();
  };
  for (const CodeRange& part : loop.function) {
    Stretch stretch{.low = part.low, .high = part.high, .falls = true};
    for (const CodeRange& range : loop.body) {
      if (range.high <= part.low || range.low >= part.high) continue;
      stretch.high = std::max(range.low, part.low);
      RETURN_IF_ERROR(check(stretch));
      const uint64_t end = std::min(range.high, part.high);
      stretch = {end, part.high, FallsThrough(loop, end)};
    }
    RETURN_IF_ERROR(check(stretch));
  }
  return absl::OkStatus();
}

std::vector<uint32_t> ForwardOrder(const LoopCode& loop) {
  std::vector<bool> seen(loop.next.size());
  std::vector<std::pair<uint32_t, size_t>> stack = {{loop.entry, 0}};
  std::vector<uint32_t> order;
  seen[loop.entry] = true;
  while (!stack.empty()) {
    auto& [at, edge] = stack.back();
    if (edge == loop.next[at].size()) {
      order.push_back(at);
      stack.pop_back();
      continue;
    }
    const uint32_t to = loop.next[at][edge++];
    if (seen[to]) continue;
    seen[to] = true;
    stack.emplace_back(to, 0);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace perfd::agent
