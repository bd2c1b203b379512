#include "agent/binary/flow/part_jumps.h"

#include <algorithm>

#include "agent/binary/flow/decoder.h"
#include "agent/binary/flow/explorer.h"

namespace perfd::agent {
namespace {

constexpr int kMaxChain = 8;  // parts of parts

// In the order of the bytes: compilers put no data between instructions.
std::vector<uint64_t> JumpsOut(const CodeRange& range, std::span<const std::byte> bytes) {
  std::vector<uint64_t> targets;
  bytes = bytes.first(std::min(bytes.size(), kMaxFunctionBytes));
  for (size_t at = 0; at < bytes.size();) {
    const auto instruction = Decode(bytes.subspan(at), range.low + at);
    at += instruction ? instruction->length : size_t{1};
    if (instruction && HasTargetInCode(*instruction) && !range.Contains(instruction->target))
      targets.push_back(instruction->target);
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  if (targets.size() > PartJumps::kMaxTargets) targets.clear();
  return targets;
}

}  // namespace

const std::vector<uint64_t>& PartJumps::Targets(const CodeRange& range) {
  if (const auto known = targets_.find(range.low); known != targets_.end()) return known->second;
  return targets_.emplace(range.low, JumpsOut(range, read_(range))).first->second;
}

bool PartJumps::JumpsInto(const CodeRange& from, const CodeRange& to) {
  const std::vector<uint64_t>& targets = Targets(from);
  const auto first = std::lower_bound(targets.begin(), targets.end(), to.low);
  return first != targets.end() && *first < to.high;
}

bool PartJumps::Linked(const CodeRange& a, const CodeRange& b) {
  return JumpsInto(a, b) || JumpsInto(b, a);
}

bool PartJumps::LeadsThere(const CodeRange& whole, const CodeRange& part) {
  return JumpsInto(whole, part) && JumpsInto(part, {whole.low + 1, whole.high});
}

// Where each of two pieces without names may be a part of the other: a function's first byte is not where its loops and
// branches come back to, a part's may be. Source of the rest: ld puts .text.unlikely before .text.
bool PartJumps::IsPartOf(const Piece& part, const Piece& whole) {
  if (part.named || !LeadsThere(whole.range, part.range)) return false;
  if (whole.named || !LeadsThere(part.range, whole.range)) return true;
  const uint64_t a = part.range.low;
  const uint64_t b = whole.range.low;
  const bool to_part = JumpsInto(whole.range, {a, a + 1});
  const bool to_whole = JumpsInto(part.range, {b, b + 1});
  return to_part != to_whole ? to_part : a < b;
}

std::optional<PartJumps::Piece> PartJumps::WholeOf(const Piece& part) {
  if (part.named) return std::nullopt;
  for (const uint64_t target : std::vector<uint64_t>(Targets(part.range))) {
    const auto whole = find_(target);
    if (whole && whole->range != part.range && IsPartOf(part, *whole)) return whole;
  }
  return std::nullopt;
}

uint64_t PartJumps::EntryOf(const Piece& piece) {
  if (targets_.size() > kMaxKept) targets_.clear();
  Piece at = piece;
  for (int n = 0; n < kMaxChain; ++n) {
    const auto whole = WholeOf(at);
    if (!whole) break;
    at = *whole;
  }
  return at.range.low;
}

std::vector<CodeRange> PartJumps::PartsOf(const Piece& entry) {
  if (targets_.size() > kMaxKept) targets_.clear();
  std::vector<Piece> pieces = {entry};
  for (size_t n = 0; n < pieces.size() && pieces.size() < kMaxParts; ++n) {
    const Piece from = pieces[n];
    for (const uint64_t target : std::vector<uint64_t>(Targets(from.range))) {
      const auto part = find_(target);
      const bool known = !part || std::any_of(pieces.begin(), pieces.end(), [&](const Piece& p) {
        return p.range == part->range;
      });
      if (known || part->named || pieces.size() == kMaxParts || EntryOf(*part) != entry.range.low)
        continue;
      pieces.push_back(*part);
    }
  }
  std::vector<CodeRange> parts;
  for (size_t n = 1; n < pieces.size(); ++n) parts.push_back(pieces[n].range);
  return parts;
}

}  // namespace perfd::agent
