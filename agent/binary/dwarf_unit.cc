#include "agent/binary/dwarf_unit.h"

#include <dwarf.h>

#include <algorithm>
#include <utility>

namespace perfd::agent {
namespace {

constexpr size_t kMaxRanges = 100'000;     // per entry
constexpr size_t kMaxEntries = 5'000'000;  // per unit
constexpr size_t kMaxFrames = 100'000;     // inlined calls per function
constexpr size_t kMaxDepth = 256;

// Walks the children of an entry in document order. Offsets must grow: a hostile sibling pointer cannot make it loop.
// `visit(die, depth)` tells whether to enter the children.
template <typename Visit>
void WalkChildren(Dwarf_Die root, const Visit& visit) {
  std::vector<Dwarf_Die> path(1);
  if (dwarf_child(&root, &path[0]) != 0) return;
  Dwarf_Off last = dwarf_dieoffset(&root);
  for (size_t seen = 0; !path.empty() && seen < kMaxEntries; ++seen) {
    Dwarf_Die die = path.back();
    if (dwarf_dieoffset(&die) <= last) return;
    last = dwarf_dieoffset(&die);
    Dwarf_Die child;
    if (visit(&die, path.size()) && path.size() < kMaxDepth && dwarf_child(&die, &child) == 0) {
      path.push_back(child);
      continue;
    }
    while (!path.empty() && dwarf_siblingof(&path.back(), &path.back()) != 0) path.pop_back();
  }
}

bool HoldsFunctions(int tag, bool inside_functions) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
      return true;
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
      return inside_functions;
    default:
      return false;
  }
}

// File names of a unit's line table, each once, as indices into FunctionLines::files.
class FileNames {
 public:
  explicit FileNames(std::vector<std::string>& files) : files_(files) { files_.assign(1, ""); }

  uint32_t IndexOf(const char* name) {
    if (name == nullptr || *name == '\0') return 0;
    if (const auto known = by_pointer_.find(name); known != by_pointer_.end()) return known->second;
    const auto [at, added] = by_name_.try_emplace(name, static_cast<uint32_t>(files_.size()));
    if (added) files_.push_back(name);
    by_pointer_[name] = at->second;
    return at->second;
  }

 private:
  std::vector<std::string>& files_;
  absl::flat_hash_map<const void*, uint32_t> by_pointer_;  // libdw hands out the same pointer again
  absl::flat_hash_map<std::string, uint32_t> by_name_;
};

// Of several rows at one address the last one holds.
void AddRow(const LineRow& row, std::vector<LineRow>& rows) {
  if (!rows.empty() && rows.back().address == row.address) rows.pop_back();
  rows.push_back(row);
}

// Adds the rows of one part; what follows it has no line.
void ReadRows(Dwarf_Lines* lines, size_t count, const CodeRange& range, FileNames& files,
              std::vector<LineRow>& rows) {
  const auto address_of = [lines](size_t i) {
    Dwarf_Addr address = 0;
    dwarf_lineaddr(dwarf_onesrcline(lines, i), &address);
    return address;
  };
  size_t first = 0;
  for (size_t step = count; step > 0;) {  // lower bound of range.low
    const size_t half = step / 2;
    const bool before = address_of(first + half) < range.low;
    first = before ? first + half + 1 : first;
    step = before ? step - half - 1 : half;
  }
  if (first > 0) --first;  // the row before may reach into the range
  for (size_t i = first; i < count && address_of(i) < range.high; ++i) {
    Dwarf_Line* line = dwarf_onesrcline(lines, i);
    LineRow row{std::max(address_of(i), range.low), 0, 0};
    bool ends = false;
    dwarf_lineendsequence(line, &ends);
    if (!ends) {
      dwarf_lineno(line, &row.line);
      row.file = files.IndexOf(dwarf_linesrc(line, nullptr, nullptr));
    }
    AddRow(row, rows);
  }
  AddRow({range.high, 0, 0}, rows);
}

InlineFrame ReadFrame(Dwarf_Die* die, Dwarf_Files* names, FileNames& files) {
  InlineFrame frame;
  frame.name = DieName(die);
  frame.ranges = DieRanges(die);
  dwarf_decl_line(die, &frame.declaration_line);
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &value) == 0 &&
      value <= INT32_MAX)
    frame.call_line = static_cast<int32_t>(value);
  if (names != nullptr &&
      dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &value) == 0)
    frame.call_file = files.IndexOf(dwarf_filesrc(names, value, nullptr, nullptr));
  return frame;
}

void ReadFrames(Dwarf_Die function, Dwarf_Files* names, FileNames& files,
                std::vector<InlineFrame>& frames) {
  std::vector<uint32_t> enclosing(1,
                                  0);  // by depth: the frame that children of that depth belong to
  WalkChildren(function, [&](Dwarf_Die* die, size_t depth) {
    const int tag = dwarf_tag(die);
    enclosing.resize(depth + 1);
    enclosing[depth] = enclosing[depth - 1];
    if (tag == DW_TAG_lexical_block) return true;
    if (tag != DW_TAG_inlined_subroutine || frames.size() >= kMaxFrames) return false;
    InlineFrame frame = ReadFrame(die, names, files);
    frame.parent = enclosing[depth - 1];
    enclosing[depth] = static_cast<uint32_t>(frames.size());
    frames.push_back(std::move(frame));
    return true;
  });
}

SourceRange ReadDeclaration(Dwarf_Die* die, Dwarf_Files* names) {
  int line = 0;
  if (dwarf_decl_line(die, &line) != 0) return {};
  const char* file = dwarf_decl_file(die);
  Dwarf_Attribute attribute;
  Dwarf_Word index = 0;
  // Source: DWARF 5, 6.2.4: files count from 0, which libdw 0.188 still takes for "none" here.
  if (file == nullptr && names != nullptr &&
      dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_file, &attribute), &index) == 0 &&
      index == 0)
    file = dwarf_filesrc(names, 0, nullptr, nullptr);
  if (file == nullptr) return {};
  return {file, line, line};
}

}  // namespace

std::vector<CodeRange> DieRanges(Dwarf_Die* die) {
  std::vector<CodeRange> ranges;
  Dwarf_Addr base = 0;
  Dwarf_Addr low = 0;
  Dwarf_Addr high = 0;
  for (ptrdiff_t at = 0; ranges.size() < kMaxRanges;) {
    at = dwarf_ranges(die, at, &base, &low, &high);
    if (at <= 0) break;
    // Functions that the linker dropped start at 0.
    if (low != 0 && low < high) ranges.push_back({low, high});
  }
  return ranges;
}

std::string DieName(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    const char* text = dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
    if (text != nullptr) return text;
  }
  return {};
}

void DwarfUnit::IndexFunctions(bool inside_functions) {
  functions_.clear();
  WalkChildren(unit_, [&](Dwarf_Die* die, size_t) {
    const int tag = dwarf_tag(die);
    if (tag == DW_TAG_subprogram) {
      for (const CodeRange& range : DieRanges(die))
        functions_.push_back({range, dwarf_dieoffset(die)});
    }
    return HoldsFunctions(tag, inside_functions);
  });
  std::sort(functions_.begin(), functions_.end(),
            [](const Function& a, const Function& b) { return a.range.low < b.range.low; });
}

const DwarfUnit::Function* DwarfUnit::Search(uint64_t address) const {
  auto at = std::upper_bound(functions_.begin(), functions_.end(), address,
                             [](uint64_t a, const Function& f) { return a < f.range.low; });
  if (at == functions_.begin()) return nullptr;
  --at;
  return at->range.Contains(address) ? &*at : nullptr;
}

const DwarfUnit::Function* DwarfUnit::FindFunction(uint64_t address) {
  for (int effort = 1; effort <= 2; ++effort) {
    if (indexed_ < effort) {
      IndexFunctions(effort == 2);
      indexed_ = effort;
    }
    if (const Function* found = Search(address)) return found;
  }
  return nullptr;
}

FunctionLines DwarfUnit::Lines(Dwarf* dwarf, std::span<const CodeRange> parts,
                               const Function* function) {
  FunctionLines out;
  FileNames files(out.files);
  Dwarf_Lines* lines = nullptr;
  size_t count = 0;
  if (dwarf_getsrclines(&unit_, &lines, &count) == 0) {
    for (const CodeRange& part : parts) ReadRows(lines, count, part, files, out.rows);
  }
  out.frames.push_back({});
  out.frames[0].ranges.assign(parts.begin(), parts.end());
  Dwarf_Die die;
  if (function == nullptr || dwarf_offdie(dwarf, function->offset, &die) == nullptr) return out;
  Dwarf_Files* names = nullptr;
  size_t name_count = 0;
  if (dwarf_getsrcfiles(&unit_, &names, &name_count) != 0) names = nullptr;
  ReadFrames(die, names, files, out.frames);
  out.frames[0].name = DieName(&die);
  out.declaration = ReadDeclaration(&die, names);
  out.frames[0].declaration_line = out.declaration.first_line;
  return out;
}

}  // namespace perfd::agent
