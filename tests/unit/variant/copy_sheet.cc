#include "tests/unit/variant/copy_sheet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/variant/decode.h"
#include "agent/variant/flow/edges.h"
#include "agent/variant/flow/excluded_path.h"
#include "tests/unit/variant/objdump.h"
#include "tests/unit/variant/variant_names.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kExitStubBelow = 0x1000;  // the copies

bool Computes(absl::string_view mnemonic, bool divides, bool roots) {
  absl::ConsumePrefix(&mnemonic, "v");
  std::vector<absl::string_view> stems;
  if (divides) stems = {"div", "idiv"};
  if (roots) stems = {"sqrt"};
  if (!divides && !roots) stems = {"add", "sub", "mul", "div", "sqrt", "max", "min", "fmadd"};
  const bool floating = absl::EndsWith(mnemonic, "pd") || absl::EndsWith(mnemonic, "ps") ||
                        absl::EndsWith(mnemonic, "sd") || absl::EndsWith(mnemonic, "ss");
  const bool integer = divides && !floating;
  return (floating || integer) &&
         std::any_of(stems.begin(), stems.end(),
                     [mnemonic](absl::string_view s) { return absl::StartsWith(mnemonic, s); });
}

// One copy against what objdump says of it.
class CopyCheck {
 public:
  CopyCheck(const MadeCopy& made, const std::vector<ListedLine>& listing)
      : made_(made), loop_(made.batch ? made.batch->around : *made.loop), copy_(made.copy) {
    const auto begin = std::lower_bound(
        listing.begin(), listing.end(), copy_.address,
        [](const ListedLine& line, uint64_t address) { return line.address < address; });
    for (auto at = begin; at != listing.end() && at->address < copy_.address + copy_.bytes.size();
         ++at)
      lines_.push_back(&*at);
    for (const AddressPair& p : copy_.address_map) places_.emplace(p.original, p.copy);
  }

  void Run() {
    ASSERT_NO_FATAL_FAILURE(CheckLines());
    for (const AddressPair& p : copy_.address_map) ASSERT_NO_FATAL_FAILURE(CheckPair(p));
    for (const LoopInstruction& i : loop_.instructions)
      ASSERT_NO_FATAL_FAILURE(CheckInstruction(i)) << i.text;
    ASSERT_NO_FATAL_FAILURE(CheckLeftovers());
  }

 private:
  // The bytes decoded by us, one after the other, are objdump's lines, no more and no fewer.
  void CheckLines() {
    size_t at = 0;
    for (const ListedLine* line : lines_) {
      ASSERT_EQ(line->address, copy_.address + at) << line->Text();
      auto i = DecodeLoopInstruction(std::span(copy_.bytes).subspan(at), line->address);
      ASSERT_TRUE(i.has_value()) << line->Text();
      ASSERT_EQ(i->length, line->length) << i->text << " / " << line->Text();
      ASSERT_EQ(Difference(*i, *line), "");
      at += i->length;
      codes_.push_back(*std::move(i));
    }
    ASSERT_EQ(at, copy_.bytes.size());
  }

  void CheckPair(const AddressPair& p) {
    ASSERT_TRUE(copy_.address <= p.copy && p.copy < copy_.address + copy_.bytes.size());
    ASSERT_TRUE(LineAt(p.copy)) << "the map names the middle of an instruction";
    if (InLoop(p.original)) return;
    // A jump that stands for an exit, and leads on to it.
    const LoopInstruction& jump = codes_[Index(p.copy)];
    ASSERT_EQ(lines_[Index(p.copy)]->mnemonic, "jmp");
    ASSERT_TRUE(jump.target != p.copy && Leaves(jump.target, p.original)) << jump.text;
  }

  bool InLoop(uint64_t original) const {
    return std::any_of(loop_.instructions.begin(), loop_.instructions.end(),
                       [original](const LoopInstruction& i) { return i.address == original; });
  }

  size_t Index(uint64_t address) const {
    const auto at =
        std::lower_bound(lines_.begin(), lines_.end(), address,
                         [](const ListedLine* line, uint64_t a) { return line->address < a; });
    return static_cast<size_t>(at - lines_.begin());
  }
  bool LineAt(uint64_t address) const {
    const size_t n = Index(address);
    return n < lines_.size() && lines_[n]->address == address;
  }

  bool Counts() const { return made_.name.Has(Change::kCount) || made_.name.Has(Change::kTrace); }
  // Where instances of a chain are counted.
  bool IsTurn(const LoopInstruction& i) const {
    return made_.batch != nullptr && i.address == loop_.instructions[made_.batch->turn].address;
  }
  // TRACE notes the way where it parts or meets: behind a conditional branch, and where any branch leads.
  bool NotesTheWay(const LoopInstruction& i) const {
    return std::any_of(
        loop_.instructions.begin(), loop_.instructions.end(), [&i](const LoopInstruction& from) {
          const bool parts = from.flow == LoopFlow::kBranch;
          const bool leads = parts || from.flow == LoopFlow::kJump;
          return (leads && from.target == i.address) || (parts && from.end() == i.address);
        });
  }
  bool HeadsInnerLoop(const LoopInstruction& i) const {
    return std::any_of(loop_.inner.begin(), loop_.inner.end(), [&](const InnerLoop& inner) {
      return loop_.instructions[inner.header].address == i.address;
    });
  }
  bool HasCodeBefore(const LoopInstruction& i) const {
    return (Counts() && (i.address == loop_.header || HeadsInnerLoop(i))) || IsTurn(i) ||
           (made_.name.Has(Change::kTrace) && (i.Accesses() || NotesTheWay(i)));
  }

  // What the variant says it made of an instruction: one text for each instruction that stands for it.
  std::vector<std::string> Expected(const LoopInstruction& i) const {
    std::vector<std::string> texts = {i.text};
    for (const Changed& c : copy_.changed) {
      if (c.address != i.address) continue;
      EXPECT_EQ(c.original, i.text);
      if (absl::EndsWith(c.changed, "; prefetcht0 of the same line")) {
        texts.push_back("prefetcht0");
      } else {
        texts = absl::StrSplit(c.changed, "; ");
      }
    }
    if (texts.front() == "deleted") texts.clear();
    return texts;
  }

  void CheckInstruction(const LoopInstruction& i) {
    const auto target = places_.find(i.address);
    ASSERT_NE(target, places_.end()) << "not in the map";
    const auto next =
        std::upper_bound(copy_.address_map.begin(), copy_.address_map.end(), target->second,
                         [](uint64_t at, const AddressPair& p) { return at < p.copy; });
    const bool last = next == copy_.address_map.end();  // what follows may be anything
    const uint64_t end = last ? copy_.address + copy_.bytes.size() : next->copy;
    const std::vector<std::string> expected = Expected(i);
    const bool before = HasCodeBefore(i);
    if (before && last) return;
    std::vector<size_t> real;
    for (size_t n = Index(target->second); n < lines_.size() && lines_[n]->address < end; ++n)
      if (!lines_[n]->IsNop()) real.push_back(n);
    if (expected.empty() || i.Is(kNopTrait)) return CheckNops(i, target->second, end, before);
    ASSERT_GE(real.size(), expected.size());
    if (before) real.erase(real.begin(), real.end() - static_cast<long>(expected.size()));
    if (last) real.resize(expected.size());
    ASSERT_EQ(real.size(), expected.size()) << "first " << lines_[real[0]]->Text();
    ASSERT_TRUE(last || before || end - target->second >= i.length);
    for (size_t n = 0; n < real.size(); ++n)
      ASSERT_NO_FATAL_FAILURE(CheckOne(i, expected[n], real[n]));
    if (!KeepsAccesses() || !i.Accesses()) return;
    ASSERT_TRUE(std::any_of(real.begin(), real.end(), [&](size_t n) {
      return SameAccess(i, codes_[n]);
    })) << lines_[real[0]]->Text();
  }

  // Where nothing but arithmetic goes, and where stores become loads, the same bytes are touched under the same mask.
  bool KeepsAccesses() const {
    constexpr Change kKeeping[] = {Change::kLs,  Change::kNoDiv,  Change::kNoSqrt, Change::kNoRed,
                                   Change::kS2l, Change::kRefCtl, Change::kRefFtz, Change::kCount};
    return std::all_of(made_.name.parts.begin(), made_.name.parts.end(), [&](VariantPart part) {
      return std::find(std::begin(kKeeping), std::end(kKeeping), part.change) != std::end(kKeeping);
    });
  }
  static bool SameAccess(const LoopInstruction& i, const LoopInstruction& made) {
    if (!made.memory) return false;
    const MemoryOperand& a = *i.memory;
    const MemoryOperand& b = *made.memory;
    const bool relative = a.base == kInstructionPointer;
    const bool same = a.base == b.base && a.index == b.index && a.scale == b.scale &&
                      (relative ? a.target == b.target : a.displacement == b.displacement);
    const bool vector = made.Is(kVectorOp);  // a prefetch has no mask, and touches no other line
    return same && (!vector || (made.mask == i.mask && a.bytes == b.bytes));
  }

  void CheckNops(const LoopInstruction& i, uint64_t begin, uint64_t end, bool at_end) {
    if (at_end) begin = end - i.length;
    ASSERT_GE(end - begin, i.length);
    ASSERT_TRUE(LineAt(begin));
    uint64_t bytes = 0;
    for (size_t n = Index(begin); bytes < i.length; ++n) {
      ASSERT_TRUE(lines_[n]->IsNop()) << lines_[n]->Text();
      bytes += lines_[n]->length;
    }
    ASSERT_EQ(bytes, i.length) << "deleted, but not by as many bytes";
  }

  void CheckOne(const LoopInstruction& i, const std::string& expected, size_t at) {
    const ListedLine& line = *lines_[at];
    const LoopInstruction& made = codes_[at];
    if (expected == i.text) {
      ASSERT_EQ(Difference(i, line, false), "");
      const bool branches = i.flow == LoopFlow::kBranch || i.flow == LoopFlow::kJump;
      ASSERT_TRUE(!branches || LeadsTo(made.target, i.target)) << line.Text();
      return;
    }
    if (expected == "prefetcht0") {
      ASSERT_EQ(line.mnemonic, expected);
      ASSERT_EQ(made.memory->displacement, i.memory->base == kInstructionPointer
                                               ? made.memory->displacement
                                               : i.memory->displacement);
      ASSERT_EQ(made.address_reads, i.address_reads & kAllGeneral);
      ASSERT_EQ(made.memory->target, i.memory->target);
      return;
    }
    // Where the operand is relative, the text was made for another place.
    const bool relative = made.memory && made.memory->base == kInstructionPointer;
    const auto name = [](const std::string& text) { return text.substr(0, text.find(' ')); };
    ASSERT_EQ(relative ? name(made.text) : made.text, relative ? name(expected) : expected);
    ASSERT_TRUE(!relative || made.memory->target == i.memory->target);
  }

  bool LeadsTo(uint64_t target, uint64_t original) const {
    const auto same = [&](const AddressPair& p) {
      return p.copy == target && p.original == original;
    };
    if (std::any_of(copy_.address_map.begin(), copy_.address_map.end(), same)) return true;
    return !InLoop(original) && Leaves(target, original);
  }

  bool Leaves(uint64_t target, uint64_t original) const {
    if (made_.target.exits == Exits::kOriginalText) return target == original;
    // A counted copy notes that it leaves through a path that was cut out.
    const bool noted = Counts() && InCut(loop_, original);
    return noted ? LineAt(target) : target == made_.target.exit_stub;
  }

  template <typename Predicate>
  int Lines(Predicate predicate) const {
    return static_cast<int>(std::count_if(
        lines_.begin(), lines_.end(), [&](const ListedLine* line) { return predicate(*line); }));
  }
  // Instructions that no variant may touch, those around the loop among them.
  template <typename Predicate>
  int Kept(Predicate predicate) const {
    int count = 0;
    for (size_t n = 0; n < made_.loop->instructions.size(); ++n) {
      const bool fixed = made_.loop->roles[n].fixed();
      count += fixed && predicate(made_.loop->instructions[n]) ? 1 : 0;
    }
    return count + Around(predicate);
  }
  // Of a chain: what belongs to the loop around only.
  template <typename Predicate>
  int Around(Predicate predicate) const {
    return static_cast<int>(std::count_if(
        loop_.instructions.begin(), loop_.instructions.end(), [&](const LoopInstruction& i) {
          return InstructionAt(*made_.loop, i.address) < 0 && predicate(i);
        }));
  }

  void CheckComputing(bool divides, bool roots) {
    const auto computes = [&](const auto& x) { return Computes(x.mnemonic, divides, roots); };
    ASSERT_EQ(Lines(computes), Kept(computes));
  }

  // By what objdump reads, not by what the copy says of itself.
  void CheckLeftovers() {
    if (made_.name.Has(Change::kNoDiv)) CheckComputing(true, false);
    if (made_.name.Has(Change::kNoSqrt)) CheckComputing(false, true);
    if (made_.name.Has(Change::kLs)) CheckComputing(false, false);
    const auto stores = [](const LoopInstruction& i) { return i.Accesses() && i.memory->writes; };
    if (made_.name.Has(Change::kS2l) || made_.name.Has(Change::kNoStore)) {
      ASSERT_EQ(Lines(WritesMemory), Kept(stores));
    }
    const auto accesses = [](const LoopInstruction& i) { return i.Accesses(); };
    if (made_.name.Has(Change::kFp)) {
      ASSERT_EQ(Lines(TouchesMemory), Kept(accesses));
    }
    // Where a chase is pinned, its registers are prepared first, and a pointer keeps its operand.
    const bool chases = copy_.entry != places_.at(loop_.header);
    if (made_.name.Has(Change::kDl1) && !chases) {
      ASSERT_EQ(Lines(TouchesMemory), copy_.edits.accesses - copy_.edits.pinned + Around(accesses));
    }
  }

  const MadeCopy& made_;
  const LoopCode& loop_;
  const CodeCopy& copy_;
  std::vector<const ListedLine*> lines_;
  std::vector<LoopInstruction> codes_;  // the same, decoded by us
  std::map<uint64_t, uint64_t> places_;
};

int Failures() {
  return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

}  // namespace

void CopySheet::AddLoop(const LoopCode& loop, const std::string& what) {
  loops_.push_back(loop);
  for (const VariantName& name : CatalogueOf(loop)) {
    Add(loops_.back(), name, Exits::kOriginalText, what);
    const bool counts = name.Has(Change::kCount) || name.Has(Change::kTrace);
    Add(loops_.back(), counts ? name : Counted(name), Exits::kStub, what);
  }
}

void CopySheet::AddBatch(const BatchCode& batch, const std::string& what) {
  batches_.push_back(batch);
  const BatchCode& kept = batches_.back();
  for (const VariantName& name : CatalogueOf(kept.loop)) {
    const bool counts = name.Has(Change::kCount) || name.Has(Change::kTrace);
    for (const VariantName& made : {name, counts ? name : Counted(name)}) {
      const CopyTarget target = Next(Exits::kStub);
      Record(MakeBatchCopy(kept, made, target), {&kept.loop, &kept, made, target, {}, what});
    }
  }
}

void CopySheet::Add(const LoopCode& loop, const VariantName& name, Exits exits,
                    const std::string& what) {
  const CopyTarget target = Next(exits);
  Record(MakeCopy(loop, name, target), {&loop, nullptr, name, target, {}, what});
}

CopyTarget CopySheet::Next(Exits exits) const {
  return {address_ + bytes_.size(), exits, address_ - kExitStubBelow};
}

void CopySheet::Record(absl::StatusOr<CodeCopy> copy, MadeCopy made) {
  const std::string text = made.name.Text();
  ++(copy.ok() ? made_by_name_ : refused_by_name_)[text];
  if (!copy.ok()) return;
  bytes_.resize(copy->address - address_, 0xcc);
  bytes_.insert(bytes_.end(), copy->bytes.begin(), copy->bytes.end());
  absl::StrAppend(&made.what, " ", text, made.batch == nullptr ? "" : " in a row");
  made.copy = *std::move(copy);
  made_.push_back(std::move(made));
}

void CopySheet::Check() const {
  constexpr int kEnough = 20;
  const std::vector<ListedLine> listing = Disassemble(address_, bytes_);
  int wrong = 0;
  for (const MadeCopy& made : made_) {
    SCOPED_TRACE(made.what);
    const int before = Failures();
    CopyCheck(made, listing).Run();
    wrong += Failures() > before ? 1 : 0;
    if (wrong >= kEnough) break;
  }
  std::printf("  %zu copies, %zu lines\n", made_.size(), listing.size());
}

}  // namespace perfd::agent
