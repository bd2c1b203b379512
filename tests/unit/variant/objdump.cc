#include "tests/unit/variant/objdump.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace perfd::agent {
namespace {

using absl::string_view;

std::vector<std::string> SplitOperands(string_view text) {
  std::vector<std::string> operands;
  std::string one;
  int depth = 0;
  for (char c : text) {
    if (c == ' ' || c == '\n') continue;
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      operands.push_back(std::exchange(one, {}));
    } else {
      one += c;
    }
  }
  if (!one.empty()) operands.push_back(one);
  return operands;
}

uint64_t Number(string_view text) {
  const bool negative = absl::ConsumePrefix(&text, "-");
  const uint64_t value = std::strtoull(std::string(text).c_str(), nullptr, 0);
  return negative ? 0 - value : value;
}

bool IsMemory(string_view operand) {
  return !operand.empty() && operand[0] != '$' && operand[0] != '{' &&
         (operand[0] != '%' || absl::StrContains(operand, ':'));
}

// segment : displacement (base, index, scale), with neither a zero displacement nor a scale of one left out or in.
std::string CanonicalMemory(string_view operand) {
  std::string segment;
  if (operand[0] == '%') {
    const size_t colon = operand.find(':');
    segment = std::string(operand.substr(0, colon + 1));
    operand.remove_prefix(colon + 1);
  }
  const size_t parenthesis = std::min(operand.find('('), operand.size());
  const std::string rest =
      absl::StrReplaceAll(operand.substr(parenthesis), {{",1)", ")"}, {",)", ")"}});
  return absl::StrCat(segment, absl::Hex(Number(operand.substr(0, parenthesis))), rest);
}

// One may print -1 where the other prints 0xff, 0xffff and so on, but not another number.
bool SameImmediate(uint64_t ours, uint64_t theirs) {
  if (ours == theirs) return true;
  for (int bits : {8, 16, 32}) {
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    const bool narrow = theirs <= mask && static_cast<int64_t>(ours) < 0;
    if (narrow && (ours & mask) == theirs && (ours | mask) == ~uint64_t{0}) return true;
  }
  return false;
}

using Spelling = std::pair<string_view, string_view>;  // ours, theirs
constexpr std::array<Spelling, 5> kNames = {
    {{"cdqe", "cltq"}, {"cqo", "cqto"}, {"cdq", "cltd"}, {"cwde", "cwtl"}, {"movsxd", "movslq"}}};
constexpr std::array<Spelling, 6> kConditions = {
    {{"z", "e"}, {"nz", "ne"}, {"nb", "ae"}, {"nbe", "a"}, {"nl", "ge"}, {"nle", "g"}}};
// Of vector comparisons, in the order of the immediate. Source: Intel SDM vol. 2, CMPPD, table 3-1.
constexpr std::array<string_view, 32> kPredicates = {
    "eq",    "lt",     "le",     "unord",    "neq",    "nlt",    "nle",    "ord",
    "eq_uq", "nge",    "ngt",    "false",    "neq_oq", "ge",     "gt",     "true",
    "eq_os", "lt_oq",  "le_oq",  "unord_s",  "neq_us", "nlt_uq", "nle_uq", "ord_s",
    "eq_us", "nge_uq", "ngt_uq", "false_os", "neq_os", "ge_oq",  "gt_oq",  "true_us"};

std::string Spelled(string_view ours) {
  for (const Spelling& name : kNames)
    if (name.first == ours) return std::string(name.second);
  for (string_view stem : {"cmov", "set", "j"}) {
    string_view condition = ours;
    if (!absl::ConsumePrefix(&condition, stem)) continue;
    for (const Spelling& c : kConditions)
      if (c.first == condition) return absl::StrCat(stem, c.second);
    return std::string(ours);
  }
  return std::string(ours);
}

// The predicate of a comparison is an operand for us and part of the name for objdump.
bool HasPredicate(const LoopInstruction& i, const std::vector<std::string>& operands) {
  string_view name = i.mnemonic;
  absl::ConsumePrefix(&name, "v");
  const bool compares = absl::StartsWith(name, "cmp") || absl::StartsWith(name, "pcmp");
  return compares && i.Is(kVectorOp) && !operands.empty() && operands[0][0] == '$' &&
         !absl::StrContains(name, "str");
}

std::string WithPredicate(const LoopInstruction& i, uint64_t predicate) {
  const size_t end = i.mnemonic.find("cmp") + 3;
  return absl::StrCat(i.mnemonic.substr(0, end), kPredicates[predicate & 31],
                      i.mnemonic.substr(end));
}

char SuffixOf(int bytes) {
  switch (bytes) {
    case 1:
      return 'b';
    case 2:
      return 'w';
    case 4:
      return 'l';
    case 8:
      return 'q';
    case 16:
      return 'x';
    case 32:
      return 'y';
    case 64:
      return 'z';
    default:
      return '?';
  }
}

bool SameName(const LoopInstruction& i, const std::string& want, const ListedLine& line) {
  const std::string& name = line.mnemonic;
  if (want == "movzx" || want == "movsx") {
    const bool stem = name.size() == 6 && absl::StartsWith(name, want.substr(0, 4));
    return stem && (!i.memory || name[4] == SuffixOf(i.memory->bytes));
  }
  if (name == want || (want == "mov" && name == "movabs" && i.length == 10)) return true;
  return i.memory && name == want + SuffixOf(i.memory->bytes);
}

bool SameOperand(const LoopInstruction& i, const std::string& ours, const std::string& theirs,
                 const ListedLine& line) {
  if (ours[0] == '$')
    return theirs[0] == '$' && SameImmediate(Number(ours.substr(1)), Number(theirs.substr(1)));
  if (!IsMemory(ours)) return ours == theirs;
  if (i.memory && i.memory->base == kInstructionPointer) {
    const auto mask = [](const std::string& operand) {
      return operand.substr(std::min(operand.find('{'), operand.size()));
    };
    return absl::StrContains(theirs, "(%rip)") && line.target == i.memory->target &&
           mask(ours) == mask(theirs);
  }
  return IsMemory(theirs) && CanonicalMemory(ours) == CanonicalMemory(theirs);
}

// We write the rounding behind the source, objdump makes it an operand of its own.
void RoundingFirst(std::vector<std::string>* operands) {
  for (std::string& operand : *operands) {
    const size_t at = operand.find("-sae}");
    const size_t begin = operand.rfind('{', at);
    if (at == std::string::npos || begin == 0) continue;
    const std::string rounding = operand.substr(begin, at + 5 - begin);
    operand.erase(begin, rounding.size());
    operands->insert(operands->begin(), rounding);
    return;
  }
}

ListedLine ParseLine(uint64_t address, string_view text) {
  ListedLine line;
  line.address = address;
  const std::vector<string_view> halves = absl::StrSplit(text, absl::MaxSplits('#', 1));
  if (halves.size() == 2)
    line.target = Number(absl::StripAsciiWhitespace(absl::StripSuffix(halves[1], "\n")));
  string_view code = absl::StripAsciiWhitespace(halves[0]);
  while (absl::ConsumePrefix(&code, "ds ")) ++line.data_segments;
  absl::ConsumePrefix(&code, "{evex} ");  // a longer form than there is
  const size_t space = std::min(code.find(' '), code.size());
  line.mnemonic = std::string(code.substr(0, space));
  line.operands = SplitOperands(code.substr(space));
  const bool nop = absl::StartsWith(code, "nop") || absl::StrContains(code, " nop") ||
                   (line.mnemonic == "xchg" && absl::EndsWith(code, "%ax,%ax"));
  if (nop) line.mnemonic = "nop";
  return line;
}

std::string WriteFile(const std::vector<uint8_t>& bytes) {
  std::string path = absl::StrCat(testing::TempDir(), "variant_copies_", getpid(), ".bin");
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  return path;
}

bool Passive(const ListedLine& line) {
  return line.IsNop() || line.mnemonic[0] == 'j' || absl::StartsWith(line.mnemonic, "lea") ||
         absl::StartsWith(line.mnemonic, "prefetch") || absl::StartsWith(line.mnemonic, "call");
}

bool OfTheLoop(const std::string& operand) {
  return IsMemory(operand) && !absl::StartsWith(operand, "%gs:");
}

}  // namespace

std::string ListedLine::Text() const {
  return absl::StrCat(mnemonic, " ", absl::StrJoin(operands, ","));
}

std::vector<ListedLine> Disassemble(uint64_t address, const std::vector<uint8_t>& bytes) {
  const std::string path = WriteFile(bytes);
  const std::string command = absl::StrCat(
      "timeout 60 objdump -D -z -b binary -m i386:x86-64 --no-show-raw-insn --adjust-vma=", address,
      " ", path);
  std::vector<ListedLine> lines;
  FILE* pipe = popen(command.c_str(), "r");
  char text[512];
  while (pipe != nullptr && std::fgets(text, sizeof(text), pipe) != nullptr) {
    char* end = nullptr;
    const uint64_t at = std::strtoull(text, &end, 16);
    if (end == text || end[0] != ':' || end[1] != '\t') continue;
    lines.push_back(ParseLine(at, end + 2));
  }
  EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0) << command;
  std::remove(path.c_str());
  for (size_t n = 0; n < lines.size(); ++n) {
    const uint64_t next = n + 1 < lines.size() ? lines[n + 1].address : address + bytes.size();
    lines[n].length = next - lines[n].address;
  }
  return lines;
}

std::string Difference(const LoopInstruction& i, const ListedLine& line, bool with_target) {
  const std::string both = absl::StrCat("`", i.text, "`, objdump: `", line.Text(), "`");
  const bool branches = i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump;
  if (line.IsNop())
    return i.Is(kNopTrait) || i.mnemonic == "xchg" ? "" : absl::StrCat(both, ": a NOP");
  std::vector<std::string> ours =
      SplitOperands(string_view(i.text).substr(std::min(i.text.find(' '), i.text.size())));
  RoundingFirst(&ours);
  std::string want = Spelled(i.mnemonic);
  if (HasPredicate(i, ours)) {
    want = WithPredicate(i, Number(ours[0].substr(1)));
    ours.erase(ours.begin());
  }
  if (line.data_segments > 0 && i.memory) return absl::StrCat(both, ": a segment for memory");
  if (!SameName(i, want, line)) return absl::StrCat(both, ": wanted ", want);
  if (branches) {
    const bool same = line.operands.size() == 1 && Number(line.operands[0]) == i.target;
    return same || !with_target ? "" : absl::StrCat(both, ": another target");
  }
  const bool by_one = ours.size() == line.operands.size() + 1 && ours[0] == "$0x1" &&
                      (absl::StartsWith(want, "s") || absl::StartsWith(want, "r"));
  if (by_one) ours.erase(ours.begin());  // shl %eax
  if (ours.size() != line.operands.size()) return absl::StrCat(both, ": other operands");
  for (size_t n = 0; n < ours.size(); ++n)
    if (!SameOperand(i, ours[n], line.operands[n], line))
      return absl::StrCat(both, ": operand ", n, " differs");
  return "";
}

bool TouchesMemory(const ListedLine& line) {
  if (Passive(line)) return false;
  for (const std::string& operand : line.operands)
    if (OfTheLoop(operand)) return true;
  return false;
}

bool WritesMemory(const ListedLine& line) {
  if (Passive(line) || line.operands.empty() || !OfTheLoop(line.operands.back())) return false;
  for (string_view reads : {"cmp", "test", "div", "idiv", "mul", "imul", "bt"})
    if (absl::StartsWith(line.mnemonic, reads)) return false;
  return true;
}

}  // namespace perfd::agent
