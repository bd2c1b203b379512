#include "agent/binary/module_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/binary/loop_facts.h"
#include "agent/binary/symbol_name.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

std::span<const std::byte> ReadCode(const ElfFile& file, uint64_t address) {
  const ModuleSegment* segment = file.SegmentAt(address);
  if (segment == nullptr || !segment->executable) return {};
  return file.ReadToEnd(address);
}

std::unique_ptr<ElfFile> OpenDebug(const ElfFile& main, UniqueFd fd) {
  if (!fd.valid()) return nullptr;
  auto debug = ElfFile::Open(std::move(fd));
  if (!debug.ok() || !IsDebugFileOf(**debug, main)) return nullptr;
  return *std::move(debug);
}

// The file whose lines are read; null: none.
const ElfFile* WithLines(const ElfFile& main, const ElfFile* debug, ModuleDetail detail) {
  if (main.HasDebugInfo() || debug == nullptr) return &main;
  return detail == ModuleDetail::kLines ? debug : nullptr;
}

}  // namespace

CodeRange ModuleReader::RangeOf(const Found& part) {
  return {part.bounds.low, part.bounds.high};
}

// Only unwind entries and DWARF tell of pieces without a name.
PartJumps::Piece ModuleReader::PieceOf(const Found& part) {
  const FunctionSource source = part.bounds.source;
  return {RangeOf(part), source != FunctionSource::kEhFrame && source != FunctionSource::kDwarf};
}

absl::StatusOr<std::unique_ptr<ModuleReader>> ModuleReader::Open(UniqueFd main, UniqueFd debug,
                                                                 ModuleDetail detail) {
  ASSIGN_OR_RETURN(std::unique_ptr<ElfFile> file, ElfFile::Open(std::move(main)));
  std::unique_ptr<ElfFile> debug_file = OpenDebug(*file, std::move(debug));
  return std::unique_ptr<ModuleReader>(
      new ModuleReader(std::move(file), std::move(debug_file), detail));
}

ModuleReader::ModuleReader(std::unique_ptr<ElfFile> main, std::unique_ptr<ElfFile> debug,
                           ModuleDetail detail)
    : main_(std::move(main)),
      debug_(std::move(debug)),
      index_(*main_, debug_.get()),
      returns_([this](uint64_t address) { return ReadCode(*main_, address); },
               [this](uint64_t address) { return index_.NameAt(address); },
               [this](uint64_t call) { return index_.LandingPadAt(call); }),
      jumps_([this](uint64_t address) { return PieceAt(address); },
             [this](const CodeRange& r) { return main_->Read(r.low, r.high - r.low); }) {
  const ElfFile* with_lines = WithLines(*main_, debug_.get(), detail);
  if (with_lines != nullptr) debug_info_ = DebugInfo::Open(*with_lines, &facts_.lines_problem);
  facts_.lines_unread = with_lines == nullptr && debug_->HasDebugInfo();
  facts_.build_id = main_->build_id();
  if (facts_.build_id.empty()) facts_.code_hash = main_->CodeHash();
  facts_.file = main_->version();
  facts_.segments = main_->segments();
  facts_.has_lines = debug_info_ != nullptr;
  facts_.has_symbols = main_->FindSection(".symtab") != nullptr ||
                       (debug_ != nullptr && debug_->FindSection(".symtab") != nullptr);
}

std::optional<ModuleReader::Found> ModuleReader::FindPart(uint64_t address) {
  if (const auto bounds = index_.Find(address)) return Found{*bounds, std::string(bounds->symbol)};
  const ModuleSegment* segment = main_->SegmentAt(address);
  if (segment == nullptr || !segment->executable) return std::nullopt;
  if (debug_info_ != nullptr) {
    if (auto subprogram = debug_info_->FindSubprogram(address)) {
      const CodeRange& range = subprogram->range;
      return Found{{range.low, range.high, {}, FunctionSource::kDwarf},
                   std::move(subprogram->name)};
    }
  }
  if (const auto bounds = index_.Guess(address)) return Found{*bounds, ""};
  return std::nullopt;
}

// Nothing: no bounds that can be relied on.
std::optional<PartJumps::Piece> ModuleReader::PieceAt(uint64_t address) {
  const auto found = FindPart(address);
  if (!found || found->bounds.source == FunctionSource::kGuess) return std::nullopt;
  return PieceOf(*found);
}

// Ranges of the function, the one with its entry first, at most kMaxParts; empty: it is in one piece, or there is no DWARF.
std::vector<CodeRange> ModuleReader::DwarfRanges(uint64_t address) {
  if (debug_info_ == nullptr) return {};
  auto subprogram = debug_info_->FindSubprogram(address);
  if (!subprogram || subprogram->ranges.size() < 2) return {};
  subprogram->ranges.resize(std::min(subprogram->ranges.size(), kMaxParts));
  return std::move(subprogram->ranges);
}

uint64_t ModuleReader::EntryOf(const Found& part) {
  const uint64_t low = part.bounds.low;
  const std::vector<uint64_t> wholes = index_.named_parts().WholesOf(low);
  for (const uint64_t whole : wholes) {
    const auto found = FindPart(whole);
    if (!found || found->bounds.low != whole) continue;
    if (wholes.size() == 1 || jumps_.Linked(RangeOf(*found), RangeOf(part))) return whole;
  }
  const auto piece = PieceOf(part);
  if (piece.named) return low;
  if (const auto ranges = DwarfRanges(low); !ranges.empty()) return ranges[0].low;
  return index_.has_local_symbols() ? low : jumps_.EntryOf(piece);
}

std::vector<CodeRange> ModuleReader::FurtherPartsOf(const Found& entry) {
  const uint64_t low = entry.bounds.low;
  std::vector<uint64_t> candidates = index_.named_parts().PartsOf(low);
  for (const CodeRange& range : DwarfRanges(low)) candidates.push_back(range.low);
  if (!index_.has_local_symbols() && entry.bounds.source != FunctionSource::kGuess)
    for (const CodeRange& range : jumps_.PartsOf(PieceOf(entry))) candidates.push_back(range.low);
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::vector<CodeRange> parts;
  const CodeRange first = RangeOf(entry);
  for (const uint64_t candidate : candidates) {
    if (parts.size() == kMaxParts) break;
    const auto part = FindPart(candidate);
    if (!part || part->bounds.low != candidate) continue;
    const CodeRange range = RangeOf(*part);
    const bool apart = (parts.empty() || parts.back().high <= range.low) &&
                       (range.high <= first.low || first.high <= range.low);
    if (apart && EntryOf(*part) == low) parts.push_back(range);
  }
  return parts;
}

// The part with the entry. In a strange file names, DWARF and jumps may disagree: then the part is a function of its own.
ModuleReader::Found ModuleReader::WholeOf(const Found& part) {
  const uint64_t low = EntryOf(part);
  if (low == part.bounds.low) return part;
  const auto entry = FindPart(low);
  if (!entry || entry->bounds.low != low) return part;
  const std::vector<CodeRange> parts = FurtherPartsOf(*entry);
  return std::find(parts.begin(), parts.end(), RangeOf(part)) == parts.end() ? part : *entry;
}

FunctionFacts ModuleReader::Analyse(const Found& found, std::vector<CodeRange> further_parts) {
  FunctionFacts facts;
  facts.low = found.bounds.low;
  facts.high = found.bounds.high;
  facts.further_parts = std::move(further_parts);
  facts.source = found.bounds.source;
  facts.openmp = OpenMpOf(found.name);
  FunctionLines lines;
  if (debug_info_ != nullptr) lines = debug_info_->Lines(facts.low, PartsOf(facts));
  // A stripped binary with a debug file without symbols still has names in DWARF.
  std::string name = found.name;
  if (name.empty() && !lines.frames.empty()) name = lines.frames[0].name;
  facts.name = name.empty() ? absl::StrCat("sub_", absl::Hex(facts.low)) : ReadableName(name);
  facts.declaration = lines.declaration;
  FunctionCode code;
  code.entry = facts.low;
  bool unread = false;
  for (const CodeRange& part : PartsOf(facts)) {
    code.parts.push_back({part.low, main_->Read(part.low, part.high - part.low)});
    unread = unread || code.parts.back().bytes.empty();
    const std::vector<LandingPad> pads = index_.LandingPadsOf(part.low);
    code.landing_pads.insert(code.landing_pads.end(), pads.begin(), pads.end());
  }
  code.read = [this](uint64_t address, size_t size) { return main_->Read(address, size); };
  code.never_returns = [this](uint64_t callee) { return returns_.NeverReturns(callee); };
  LoopAnalysis analysis = AnalyseLoops(code, lines);
  facts.loops = std::move(analysis.loops);
  facts.spans = std::move(analysis.spans);
  facts.note = unread ? "code bytes are not in the file" : std::move(analysis.note);
  return facts;
}

const FunctionFacts* ModuleReader::FunctionAt(uint64_t address) {
  const auto part = FindPart(address);
  if (!part || part->bounds.high <= part->bounds.low) return nullptr;
  if (const auto known = entry_of_.find(part->bounds.low); known != entry_of_.end())
    return &cache_.at(known->second);
  const Found whole = WholeOf(*part);
  FunctionFacts facts = Analyse(whole, FurtherPartsOf(whole));
  for (const CodeRange& range : PartsOf(facts)) entry_of_[range.low] = facts.low;
  const uint64_t low = facts.low;
  return &cache_.insert_or_assign(low, std::move(facts)).first->second;
}

bool ModuleReader::HasBytes(ElfAddress address, absl::string_view bytes) const {
  const std::span<const std::byte> code = main_->Read(address, bytes.size());
  return !code.empty() && code.size() == bytes.size() &&
         std::memcmp(code.data(), bytes.data(), bytes.size()) == 0;
}

CodeFacts ModuleReader::FunctionsAt(std::span<const ElfAddress> addresses) {
  if (cache_.size() > kMaxCachedFunctions) {
    cache_.clear();
    entry_of_.clear();
  }
  CodeFacts out;
  std::map<uint64_t, const FunctionFacts*> found;
  for (const ElfAddress address : addresses) {
    if (const FunctionFacts* function = FunctionAt(address.value())) {
      found[function->low] = function;
    } else {
      out.unresolved.push_back(address);
    }
  }
  for (const auto& [low, function] : found) out.functions.push_back(*function);
  std::sort(out.unresolved.begin(), out.unresolved.end());
  out.unresolved.erase(std::unique(out.unresolved.begin(), out.unresolved.end()),
                       out.unresolved.end());
  return out;
}

}  // namespace perfd::agent
