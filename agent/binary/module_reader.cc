#include "agent/binary/module_reader.h"

#include <algorithm>
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
               [this](uint64_t address) { return index_.NameAt(address); }) {
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

std::optional<ModuleReader::Found> ModuleReader::FindFunction(uint64_t address) {
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

FunctionFacts ModuleReader::Analyse(const Found& found) {
  FunctionFacts facts;
  facts.low = found.bounds.low;
  facts.high = found.bounds.high;
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
  const auto found = FindFunction(address);
  if (!found || found->bounds.high <= found->bounds.low) return nullptr;
  if (const auto known = cache_.find(found->bounds.low); known != cache_.end())
    return &known->second;
  return &cache_.emplace(found->bounds.low, Analyse(*found)).first->second;
}

CodeFacts ModuleReader::FunctionsAt(std::span<const ElfAddress> addresses) {
  if (cache_.size() > kMaxCachedFunctions) cache_.clear();
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
