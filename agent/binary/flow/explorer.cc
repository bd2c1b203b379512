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
    out_.map = PartMap(code.parts, kMaxFunctionBytes);
    out_.truncated = out_.map.cut();
    out_.step_at.assign(out_.map.size(), kNoStep);
    covered_.assign(out_.map.size(), false);
  }

  Exploration Run() {
    if (const auto entry = out_.map.PositionOf(code_.entry)) Reach(*entry);
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

  void Reach(size_t position) {
    const uint32_t first = static_cast<uint32_t>(out_.steps.size());
    leads_.push_back({out_.map.AddressAt(position), kNoStep});
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
    while (!Full()) {
      const std::optional<size_t> position = out_.map.PositionOf(lead.address);
      if (!position || out_.step_at[*position] != kNoStep) return;
      const auto instruction = Decode(out_.map.BytesAt(*position), lead.address);
      if (!instruction) {
        ++out_.undecodable;
        covered_[*position] = true;
        return;
      }
      const uint32_t step = Record(*instruction, *position, lead.from);
      if (HasTargetInCode(*instruction)) leads_.push_back({instruction->target, step});
      if (out_.steps[step].landing_pad != 0) leads_.push_back({out_.steps[step].landing_pad, step});
      if (instruction->flow == Flow::kIndirectJump) ResolveTable(step);
      if (!FallsThrough(*instruction) || out_.steps[step].ends) return;
      lead = {instruction->end(), step};
    }
  }

  uint32_t Record(const Instruction& instruction, size_t position, uint32_t from) {
    const uint32_t step = static_cast<uint32_t>(out_.steps.size());
    out_.step_at[position] = step;
    for (size_t i = 0; i < instruction.length; ++i) covered_[position + i] = true;
    out_.steps.push_back({instruction, from, phase_});
    const bool direct = instruction.flow == Flow::kCall;
    if (!direct && instruction.flow != Flow::kIndirectCall) return step;
    out_.steps.back().ends =
        direct && code_.never_returns && code_.never_returns(instruction.target);
    if (const LandingPad* pad = LandingPadOf(code_.landing_pads, instruction.address))
      out_.steps.back().landing_pad = pad->address;
    return step;
  }

  void ResolveTable(uint32_t step) {
    std::vector<Instruction> path;
    for (uint32_t at = step; at != kNoStep && path.size() < kPathLength;
         at = out_.steps[at].previous)
      path.push_back(out_.steps[at].instruction);
    std::vector<uint64_t> targets;
    if (code_.read) targets = FindJumpTable(path, {&out_.map, &code_.read});
    if (targets.empty()) {
      out_.unresolved.push_back(step);
      return;
    }
    for (const uint64_t target : targets) leads_.push_back({target, step});
    out_.tables.push_back({step, std::move(targets)});
  }

  // The next byte that no instruction covers and that is not padding; advances `position`.
  std::optional<size_t> NextOrphan(size_t& position) {
    while (position < out_.map.size() && !Full()) {
      if (covered_[position]) {
        ++position;
        continue;
      }
      const std::span<const std::byte> bytes = out_.map.BytesAt(position);
      const auto instruction = Decode(bytes, out_.map.AddressAt(position));
      if (instruction && !instruction->padding && bytes[0] != std::byte{0}) return position;
      if (!instruction) ++out_.undecodable;
      position += instruction && instruction->padding ? instruction->length : size_t{1};
    }
    return std::nullopt;
  }

  size_t PartOf(uint32_t step) const {
    return out_.map.PartAt(*out_.map.PositionOf(out_.steps[step].instruction.address));
  }

  // With a single unresolved jump, code of its part that nothing else reaches is taken for its targets. With several, pairing them
  // would invent loops; in the other parts it is as a rule what handlers of exceptions reach.
  void AdoptOrphans() {
    if (out_.unresolved.size() != 1 || out_.roots.size() < 2) return;
    TableJump jump{out_.unresolved[0], {}};
    std::vector<uint32_t> others = {out_.roots[0]};
    std::vector<bool> adopted(out_.roots.size());
    for (uint32_t phase = 1; phase < out_.roots.size(); ++phase) {
      const uint32_t root = out_.roots[phase];
      adopted[phase] = PartOf(root) == PartOf(jump.step);
      if (adopted[phase]) jump.targets.push_back(out_.steps[root].instruction.address);
      if (!adopted[phase]) others.push_back(root);
    }
    for (Step& step : out_.steps) step.phase = adopted[step.phase] ? 0 : step.phase;
    out_.tables.push_back(std::move(jump));
    out_.roots = std::move(others);
  }

  const FunctionCode& code_;
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
