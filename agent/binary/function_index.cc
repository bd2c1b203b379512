#include "agent/binary/function_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace perfd::agent {
namespace {

EhFrame ReadFrames(const ElfFile& file) {
  const ElfSection* section = file.FindSection(".eh_frame");
  if (section != nullptr && !section->bytes.empty())
    return ParseEhFrame(section->bytes, section->address.value());
  // Without section headers: through the program header, which tells the start but not the end; a terminator follows.
  const uint64_t header = file.eh_frame_header();
  if (header == 0) return {};
  const uint64_t address = EhFrameAddress(file.ReadToEnd(header), header);
  return address == 0 ? EhFrame() : ParseEhFrame(file.ReadToEnd(address), address);
}

template <typename T>
const T* LastBefore(const std::vector<T>& sorted, uint64_t address) {
  auto at = std::upper_bound(sorted.begin(), sorted.end(), address,
                             [](uint64_t a, const T& item) { return a < item.low; });
  return at == sorted.begin() ? nullptr : &*std::prev(at);
}

std::vector<FunctionSymbol> ReadSymbols(const ElfFile& main, const ElfFile* debug) {
  std::vector<FunctionSymbol> symbols;
  AppendSymbols(main, main, symbols);
  if (debug != nullptr) AppendSymbols(*debug, main, symbols);
  return symbols;
}

}  // namespace

FunctionIndex::FunctionIndex(const ElfFile& main, const ElfFile* debug)
    : main_(main), stubs_(ReadPltStubs(main)) {
  std::vector<FunctionSymbol> symbols = ReadSymbols(main, debug);
  named_parts_ = NamedParts(symbols);
  has_local_symbols_ = std::any_of(symbols.begin(), symbols.end(),
                                   [](const FunctionSymbol& symbol) { return !symbol.global; });
  symbols_ = SymbolTable(std::move(symbols));
}

const EhFrame& FunctionIndex::Frames() {
  if (!frames_) {
    frames_ = ReadFrames(main_);
    const auto is_no_code = [this](const CodeRange& range) {
      const ModuleSegment* segment = main_.SegmentAt(range.low);
      return segment == nullptr || !segment->executable || range.high > segment->virtual_end();
    };
    std::erase_if(frames_->functions, is_no_code);
    std::erase_if(frames_->tables,
                  [&](const ExceptionTableAt& table) { return is_no_code(table.function); });
  }
  return *frames_;
}

std::vector<LandingPad> FunctionIndex::LandingPadsOf(uint64_t low) {
  const auto& tables = Frames().tables;
  const auto at = std::lower_bound(
      tables.begin(), tables.end(), low,
      [](const ExceptionTableAt& table, uint64_t address) { return table.function.low < address; });
  if (at == tables.end() || at->function.low != low) return {};
  return ReadLandingPads(main_.ReadToEnd(at->address), at->address, low);
}

std::optional<uint64_t> FunctionIndex::LandingPadAt(uint64_t call) {
  const auto& tables = Frames().tables;
  const auto behind = std::upper_bound(
      tables.begin(), tables.end(), call,
      [](uint64_t address, const ExceptionTableAt& table) { return address < table.function.low; });
  if (behind == tables.begin()) return std::nullopt;
  const CodeRange& function = std::prev(behind)->function;
  if (call >= function.high) return std::nullopt;
  const std::vector<LandingPad> pads = LandingPadsOf(function.low);
  const LandingPad* pad = LandingPadOf(pads, call);
  return pad == nullptr ? std::nullopt : std::optional(pad->address);
}

const PltStub* FunctionIndex::StubAt(uint64_t address) const {
  const PltStub* stub = LastBefore(stubs_, address);
  return stub != nullptr && address < stub->high ? stub : nullptr;
}

const CodeRange* FunctionIndex::EntryBefore(uint64_t address) {
  return LastBefore(Frames().functions, address);
}

absl::string_view FunctionIndex::NameAt(uint64_t address) const {
  if (const PltStub* stub = StubAt(address); stub != nullptr && stub->low == address)
    return absl::string_view(stub->name).substr(0, stub->name.size() - 4);
  const FunctionSymbol* symbol = symbols_.Before(address);
  return symbol != nullptr && symbol->low == address ? symbol->name : absl::string_view();
}

std::optional<FunctionBounds> FunctionIndex::Find(uint64_t address) {
  const ModuleSegment* segment = main_.SegmentAt(address);
  if (segment == nullptr || !segment->executable) return std::nullopt;
  if (const PltStub* stub = StubAt(address))
    return FunctionBounds{stub->low, stub->high, stub->name, FunctionSource::kSymbol};
  if (const FunctionSymbol* symbol = symbols_.Find(address))
    return FunctionBounds{symbol->low, symbol->high, symbol->name, FunctionSource::kSymbol};
  if (auto bounds = FindUnsized(address)) return bounds;
  const CodeRange* entry = EntryBefore(address);
  if (entry == nullptr || !entry->Contains(address)) return std::nullopt;
  return FunctionBounds{entry->low, entry->high, {}, FunctionSource::kEhFrame};
}

std::optional<FunctionBounds> FunctionIndex::FindUnsized(uint64_t address) {
  const FunctionSymbol* symbol = symbols_.Before(address);
  if (symbol == nullptr || symbol->sized()) return std::nullopt;
  const ElfSection* section = main_.SectionAt(address);
  // What lies in another section does not belong to it.
  if (section != nullptr && symbol->low < section->address) return std::nullopt;
  const ModuleSegment* segment = main_.SegmentAt(address);
  uint64_t high =
      (section != nullptr ? section->address + section->size : segment->virtual_end()).value();
  if (const FunctionSymbol* next = symbols_.After(address)) high = std::min(high, next->low);
  const CodeRange* entry = EntryBefore(address);
  FunctionSource source = FunctionSource::kGuess;
  if (entry != nullptr && entry->low > symbol->low) return std::nullopt;
  if (entry != nullptr && entry->Contains(symbol->low)) {
    if (!entry->Contains(address)) return std::nullopt;
    high = std::min(high, entry->high);
    source = FunctionSource::kSymbol;
  }
  return FunctionBounds{symbol->low, high, symbol->name, source};
}

std::optional<FunctionBounds> FunctionIndex::Guess(uint64_t address) {
  const ElfSection* section = main_.SectionAt(address);
  const ModuleSegment* segment = main_.SegmentAt(address);
  if (segment == nullptr || !segment->executable) return std::nullopt;
  if (section == nullptr ? !main_.sections().empty() : !section->executable) return std::nullopt;
  FunctionBounds bounds{
      segment->virtual_address.value(), segment->virtual_end().value(), {}, FunctionSource::kGuess};
  if (section != nullptr) {
    bounds.low = std::max(bounds.low, section->address.value());
    bounds.high = std::min(bounds.high, (section->address + section->size).value());
  }
  if (const FunctionSymbol* symbol = symbols_.Before(address))
    bounds.low = std::max(bounds.low, symbol->high);
  if (const FunctionSymbol* symbol = symbols_.After(address))
    bounds.high = std::min(bounds.high, symbol->low);
  if (const CodeRange* entry = EntryBefore(address)) bounds.low = std::max(bounds.low, entry->high);
  const auto& entries = Frames().functions;
  const auto next =
      std::upper_bound(entries.begin(), entries.end(), address,
                       [](uint64_t a, const CodeRange& range) { return a < range.low; });
  if (next != entries.end()) bounds.high = std::min(bounds.high, next->low);
  if (address < bounds.low || address >= bounds.high) return std::nullopt;
  return bounds;
}

}  // namespace perfd::agent
