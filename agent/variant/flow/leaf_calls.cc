#include "agent/variant/flow/leaf_calls.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "agent/variant/decode.h"
#include "agent/variant/flow/body.h"
#include "agent/variant/flow/edges.h"

namespace perfd::agent {
namespace {

using Code = std::map<uint64_t, LoopInstruction>;

bool IsCall(const LoopInstruction& i) {
  return i.flow == LoopFlow::kCall;
}

bool IsReturn(const LoopInstruction& i) {
  constexpr uint8_t kNear = 0xc3;  // the others take more than an address off the stack
  return i.flow == LoopFlow::kEnd && i.mnemonic == "ret" && i.bytes[i.length - 1u] == kNear;
}

// An instruction that only moves control.
void MakeJump(uint64_t target, LoopInstruction* i) {
  i->flow = LoopFlow::kJump;
  i->target = target;
  i->branch_at = 1;
  i->traits = 0;
  i->reads = i->writes = i->kills = i->address_reads = 0;
  i->memory.reset();
  i->refusal.clear();
}

// Source: Intel SDM vol. 2, ENDBR64: where an indirect call may arrive; does nothing.
void ForgetMark(LoopInstruction* i) {
  if (i->mnemonic != "endbr64") return;
  i->traits = kNopTrait;
  i->reads = i->writes = i->kills = 0;
  i->refusal.clear();
}

// Text where a called function begins; empty: it is not known.
std::span<const uint8_t> TextAt(const LoopBytes& bytes, uint64_t address) {
  for (const CodeText& text : bytes.called) {
    if (address >= text.address && address < text.end())
      return std::span(text.bytes).subspan(address - text.address);
  }
  return {};
}

bool MayStandIn(const LoopInstruction& i) {
  if (IsReturn(i)) return true;
  const bool moves =
      i.flow == LoopFlow::kPlain || i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump;
  const RegisterSet stack = (i.reads | i.writes | i.address_reads) & Bit(kStackPointer);
  return moves && i.refusal.empty() && stack == 0;
}

std::vector<uint64_t> After(const LoopInstruction& i) {
  std::vector<uint64_t> next;
  if (i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump) next.push_back(i.target);
  if (i.flow == LoopFlow::kPlain || i.flow == LoopFlow::kBranch) next.push_back(i.end());
  return next;
}

// Instructions overlap where something jumps into the middle of one.
bool Overlap(const Code& code) {
  uint64_t end = 0;
  for (const auto& [address, i] : code) {
    if (address < end) return true;
    end = i.end();
  }
  return false;
}

bool GoesRound(const Code& code, uint64_t at, std::map<uint64_t, bool>* open) {
  const auto [seen, first] = open->try_emplace(at, true);
  if (!first) return seen->second;
  for (const uint64_t to : After(code.at(at))) {
    if (GoesRound(code, to, open)) return true;
  }
  (*open)[at] = false;
  return false;
}

// All that is reached from its entry; none: it is no leaf.
std::optional<Code> ReadLeaf(const LoopBytes& bytes, uint64_t entry) {
  Code code;
  std::vector<uint64_t> work = {entry};
  bool returns = false;
  while (!work.empty()) {
    const uint64_t at = work.back();
    work.pop_back();
    if (code.contains(at)) continue;
    std::optional<LoopInstruction> i = DecodeLoopInstruction(TextAt(bytes, at), at, bytes.bias);
    if (!i || code.size() >= kMostLeafInstructions) return std::nullopt;
    ForgetMark(&*i);
    if (!MayStandIn(*i)) return std::nullopt;
    returns = returns || IsReturn(*i);
    for (const uint64_t to : After(*i)) work.push_back(to);
    code.emplace(at, *std::move(i));
  }
  std::map<uint64_t, bool> open;
  if (!returns || Overlap(code) || GoesRound(code, entry, &open)) return std::nullopt;
  return code;
}

std::vector<CodeRange> RangesOf(const Code& code) {
  std::vector<CodeRange> ranges;
  for (const auto& [address, i] : code) {
    if (!ranges.empty() && ranges.back().high == address)
      ranges.back().high = i.end();
    else
      ranges.push_back({address, i.end()});
  }
  return ranges;
}

// Nothing of it is in the loop already, or in the function around.
bool StandsApart(const LoopCode& loop, const std::vector<CodeRange>& ranges) {
  const auto meets = [&ranges](const CodeRange& other) {
    return std::any_of(ranges.begin(), ranges.end(), [&other](const CodeRange& range) {
      return range.low < other.high && other.low < range.high;
    });
  };
  return std::none_of(loop.function.begin(), loop.function.end(), meets) &&
         std::none_of(loop.leaves.begin(), loop.leaves.end(), meets);
}

bool CalledOnce(const LoopCode& loop, uint64_t entry) {
  return std::count_if(
             loop.instructions.begin(), loop.instructions.end(),
             [entry](const LoopInstruction& i) { return IsCall(i) && i.target == entry; }) == 1;
}

bool TakeIn(const LoopBytes& bytes, uint64_t call, LoopCode* loop) {
  const auto at = static_cast<size_t>(InstructionAt(*loop, call));
  const uint64_t entry = loop->instructions[at].target;
  const uint64_t back = loop->instructions[at].end();
  if (InstructionAt(*loop, back) < 0 || !CalledOnce(*loop, entry)) return false;
  std::optional<Code> leaf = ReadLeaf(bytes, entry);
  if (!leaf) return false;
  const std::vector<CodeRange> ranges = RangesOf(*leaf);
  if (!StandsApart(*loop, ranges)) return false;
  if (loop->instructions.size() + leaf->size() > static_cast<size_t>(kMaxLoopInstructions))
    return false;
  MakeJump(entry, &loop->instructions[at]);
  for (auto& [address, i] : *leaf) {
    if (IsReturn(i)) MakeJump(back, &i);
    loop->instructions.push_back(std::move(i));
  }
  std::sort(
      loop->instructions.begin(), loop->instructions.end(),
      [](const LoopInstruction& a, const LoopInstruction& b) { return a.address < b.address; });
  loop->leaves.insert(loop->leaves.end(), ranges.begin(), ranges.end());
  return true;
}

}  // namespace

bool TakeInLeaves(const LoopBytes& bytes, LoopCode* loop) {
  std::vector<uint64_t> calls;
  for (const LoopInstruction& i : loop->instructions) {
    // Five bytes: the jump that stands for it has as many.
    if (IsCall(i) && i.target != 0 && i.branch_at == 1 && i.refusal.empty())
      calls.push_back(i.address);
  }
  bool any = false;
  for (const uint64_t call : calls) any = TakeIn(bytes, call, loop) || any;
  return any;
}

std::vector<uint64_t> CalledBy(const LoopBytes& bytes) {
  std::vector<uint64_t> targets;
  for (const CodeRange& range : bytes.body) {
    for (uint64_t at = range.low; at < range.high;) {
      const std::optional<FlowStep> step = DecodeFlow(BytesAt(bytes, at), at);
      if (!step || step->length == 0) break;
      if (step->flow == LoopFlow::kCall && step->target != 0) targets.push_back(step->target);
      at += step->length;
    }
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return targets;
}

bool InLeaf(const LoopCode& loop, uint64_t address) {
  return std::any_of(loop.leaves.begin(), loop.leaves.end(),
                     [address](const CodeRange& range) { return range.Contains(address); });
}

}  // namespace perfd::agent
