#include "agent/binary/flow/explorer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/binary/flow/decoder.h"

namespace perfd::agent {
namespace {

constexpr size_t kPathLength =
    200;  // instructions looked back for a table address hoisted out of a loop

class Explorer {
 public:
  explicit Explorer(const FunctionCode& code) : code_(code) {
    out_.truncated = code_.bytes.size() > kMaxFunctionBytes;
    if (out_.truncated) code_.bytes = code_.bytes.first(kMaxFunctionBytes);
    out_.step_at.assign(code_.bytes.size(), kNoStep);
    covered_.assign(code_.bytes.size(), false);
  }

  Exploration Run() {
    if (!code_.bytes.empty()) Reach(0);
    size_t position = 0;
    while (const std::optional<size_t> orphan = NextOrphan(position)) Reach(*orphan);
    AdoptOrphans();
    return std::move(out_);
  }

 private:
  struct Lead {
    uint64_t address = 0;
    uint32_t from = kNoStep;
  };

  bool Full() {
    if (out_.steps.size() >= kMaxInstructions) out_.truncated = true;
    return out_.steps.size() >= kMaxInstructions;
  }

  bool Inside(uint64_t address) const {
    return address >= code_.low && address - code_.low < code_.bytes.size();
  }

  void Reach(size_t offset) {
    const uint32_t first = static_cast<uint32_t>(out_.steps.size());
    leads_.push_back({code_.low + offset, kNoStep});
    while (!leads_.empty()) {
      const Lead lead = leads_.back();
      leads_.pop_back();
      Follow(lead);
    }
    if (out_.steps.size() > first) {
      out_.roots.push_back(first);
      ++phase_;
    }
  }

  // Decodes from a lead until the flow ends or joins what is known.
  void Follow(Lead lead) {
    while (Inside(lead.address) && !Full()) {
      const size_t offset = lead.address - code_.low;
      if (out_.step_at[offset] != kNoStep) return;
      const auto instruction = Decode(code_.bytes.subspan(offset), lead.address);
      if (!instruction) {
        ++out_.undecodable;
        covered_[offset] = true;
        return;
      }
      const uint32_t step = Record(*instruction, lead.from);
      if (HasTargetInCode(*instruction)) leads_.push_back({instruction->target, step});
      if (instruction->flow == Flow::kIndirectJump) ResolveTable(step);
      if (!FallsThrough(*instruction) || out_.steps[step].ends) return;
      lead = {instruction->end(), step};
    }
  }

  uint32_t Record(const Instruction& instruction, uint32_t from) {
    const uint32_t step = static_cast<uint32_t>(out_.steps.size());
    const size_t offset = instruction.address - code_.low;
    out_.step_at[offset] = step;
    for (size_t i = 0; i < instruction.length && offset + i < covered_.size(); ++i)
      covered_[offset + i] = true;
    const bool ends = instruction.flow == Flow::kCall && code_.never_returns &&
                      code_.never_returns(instruction.target);
    out_.steps.push_back({instruction, from, phase_, ends});
    return step;
  }

  void ResolveTable(uint32_t step) {
    std::vector<Instruction> path;
    for (uint32_t at = step; at != kNoStep && path.size() < kPathLength;
         at = out_.steps[at].previous)
      path.push_back(out_.steps[at].instruction);
    std::vector<uint64_t> targets;
    if (code_.read) targets = FindJumpTable(path, {code_.low, code_.high(), &code_.read});
    if (targets.empty()) {
      out_.unresolved.push_back(step);
      return;
    }
    for (const uint64_t target : targets) leads_.push_back({target, step});
    out_.tables.push_back({step, std::move(targets)});
  }

  // The next byte that no instruction covers and that is not padding; advances `position`.
  std::optional<size_t> NextOrphan(size_t& position) {
    while (position < code_.bytes.size() && !Full()) {
      if (covered_[position]) {
        ++position;
        continue;
      }
      const auto instruction = Decode(code_.bytes.subspan(position), code_.low + position);
      if (instruction && !instruction->padding && code_.bytes[position] != std::byte{0})
        return position;
      if (!instruction) ++out_.undecodable;
      position += instruction && instruction->padding ? instruction->length : size_t{1};
    }
    return std::nullopt;
  }

  // With a single unresolved jump, code that nothing else reaches is taken for its targets. With several, pairing them
  // would invent loops.
  void AdoptOrphans() {
    if (out_.unresolved.size() != 1 || out_.roots.size() < 2) return;
    TableJump jump{out_.unresolved[0], {}};
    for (size_t i = 1; i < out_.roots.size(); ++i)
      jump.targets.push_back(out_.steps[out_.roots[i]].instruction.address);
    for (Step& step : out_.steps) step.phase = 0;
    out_.tables.push_back(std::move(jump));
    out_.roots.resize(1);
  }

  FunctionCode code_;
  Exploration out_;
  std::vector<bool> covered_;
  std::vector<Lead> leads_;
  uint32_t phase_ = 0;
};

}  // namespace

Exploration Explore(const FunctionCode& code) {
  return Explorer(code).Run();
}

}  // namespace perfd::agent
