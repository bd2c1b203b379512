#include "agent/binary/debug_info.h"

#include <elfutils/libdw.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "agent/binary/compressed/debug_image.h"
#include "agent/binary/dwarf_unit.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxUnits = 1'000'000;
constexpr size_t kMaxLoadedUnits = 4096;

// A unit of a version that is not known ends the list.
bool HasUnits(Dwarf* dwarf) {
  Dwarf_Off next = 0;
  size_t header = 0;
  Dwarf_Die die;
  return dwarf_nextcu(dwarf, 0, &next, &header, nullptr, nullptr, nullptr) == 0 &&
         dwarf_offdie(dwarf, header, &die) != nullptr;
}

}  // namespace

// The units of the file, found by address, loaded when first asked for.
class DebugInfo::Units {
 public:
  Units(std::unique_ptr<DebugImage> image, Dwarf* dwarf) : image_(std::move(image)), dwarf_(dwarf) {
    if (dwarf_getaranges(dwarf_, &aranges_, nullptr) != 0) aranges_ = nullptr;
  }
  ~Units() { dwarf_end(dwarf_); }
  Units(const Units&) = delete;
  Units& operator=(const Units&) = delete;

  Dwarf* dwarf() const { return dwarf_; }

  // nullptr: no unit holds the address.
  DwarfUnit* At(uint64_t address) {
    Dwarf_Die die;
    if (!FindByAranges(address, &die) && !FindByRanges(address, &die)) return nullptr;
    if (loaded_.size() >= kMaxLoadedUnits) loaded_.clear();
    auto& unit = loaded_[dwarf_dieoffset(&die)];
    if (unit == nullptr) unit = std::make_unique<DwarfUnit>(die);
    return unit.get();
  }

 private:
  struct UnitRange {
    CodeRange range;
    Dwarf_Off offset = 0;
  };

  bool FindByAranges(uint64_t address, Dwarf_Die* die) {
    if (aranges_ == nullptr) return false;
    Dwarf_Arange* found = dwarf_getarange_addr(aranges_, address);
    Dwarf_Off offset = 0;
    return found != nullptr && dwarf_getarangeinfo(found, nullptr, nullptr, &offset) == 0 &&
           dwarf_offdie(dwarf_, offset, die) != nullptr;
  }

  bool FindByRanges(uint64_t address, Dwarf_Die* die) {
    if (!ranges_read_) ReadRanges();
    ranges_read_ = true;
    auto at = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                               [](uint64_t a, const UnitRange& r) { return a < r.range.low; });
    if (at == ranges_.begin()) return false;
    --at;
    return at->range.Contains(address) && dwarf_offdie(dwarf_, at->offset, die) != nullptr;
  }

  void ReadRanges() {
    Dwarf_Off offset = 0;
    Dwarf_Off next = 0;
    size_t header = 0;
    for (size_t i = 0; i < kMaxUnits; ++i, offset = next) {
      if (dwarf_nextcu(dwarf_, offset, &next, &header, nullptr, nullptr, nullptr) != 0) break;
      Dwarf_Die die;
      if (next <= offset) break;
      if (dwarf_offdie(dwarf_, offset + header, &die) == nullptr) continue;
      for (const CodeRange& range : DieRanges(&die)) ranges_.push_back({range, offset + header});
    }
    std::sort(ranges_.begin(), ranges_.end(),
              [](const UnitRange& a, const UnitRange& b) { return a.range.low < b.range.low; });
  }

  std::unique_ptr<DebugImage> image_;  // null: libelf reads the file itself
  Dwarf* dwarf_;
  Dwarf_Aranges* aranges_ = nullptr;
  bool ranges_read_ = false;
  std::vector<UnitRange> ranges_;  // sorted by low
  absl::flat_hash_map<Dwarf_Off, std::unique_ptr<DwarfUnit>> loaded_;
};

DebugInfo::DebugInfo(std::unique_ptr<Units> units) : units_(std::move(units)) {}
DebugInfo::~DebugInfo() = default;

std::unique_ptr<DebugInfo> DebugInfo::Open(const ElfFile& file, LinesProblem* problem) {
  *problem = LinesProblem::kNone;
  if (!file.HasDebugInfo()) return nullptr;
  std::unique_ptr<DebugImage> image = DebugImage::Make(file.handle(), file.image(), problem);
  if (*problem != LinesProblem::kNone) return nullptr;
  Elf* elf = image == nullptr ? file.handle() : image->handle();
  Dwarf* dwarf = dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
  *problem = LinesProblem::kDamaged;
  if (dwarf == nullptr) return nullptr;
  auto units = std::make_unique<Units>(std::move(image), dwarf);
  if (!HasUnits(dwarf)) return nullptr;
  *problem = LinesProblem::kNone;
  return std::unique_ptr<DebugInfo>(new DebugInfo(std::move(units)));
}

FunctionLines DebugInfo::Lines(uint64_t entry, std::span<const CodeRange> parts) {
  DwarfUnit* unit = units_->At(entry);
  if (unit == nullptr) return {};
  return unit->Lines(units_->dwarf(), parts, unit->FindFunction(entry));
}

std::optional<Subprogram> DebugInfo::FindSubprogram(uint64_t address) {
  DwarfUnit* unit = units_->At(address);
  const DwarfUnit::Function* found = unit == nullptr ? nullptr : unit->FindFunction(address);
  Dwarf_Die die;
  if (found == nullptr || dwarf_offdie(units_->dwarf(), found->offset, &die) == nullptr)
    return std::nullopt;
  return Subprogram{found->range, DieRanges(&die), DieName(&die)};
}

}  // namespace perfd::agent
