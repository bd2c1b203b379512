#include "agent/binary/function_index.h"

#include <gtest/gtest.h>

#include "tests/unit/binary/fixture.h"

namespace perfd::agent {
namespace {

FunctionSymbol Symbol(uint64_t low, uint64_t high, absl::string_view name, bool global = true,
                      bool typed = true) {
  return {low, high, name, global, typed};
}

TEST(SymbolTableTest, BestAliasWins) {
  const SymbolTable table(
      {Symbol(16, 32, "__work"), Symbol(16, 40, "work"), Symbol(16, 32, "a", false)});
  ASSERT_EQ(table.symbols().size(), 1U);
  EXPECT_EQ(table.symbols()[0].name, "work");
  EXPECT_EQ(table.symbols()[0].high, 40U);
}

TEST(SymbolTableTest, InnermostOfNestedSymbols) {
  const SymbolTable table(
      {Symbol(100, 200, "outer"), Symbol(120, 140, "inner"), Symbol(300, 310, "last")});
  EXPECT_EQ(table.Find(99), nullptr);
  EXPECT_EQ(table.Find(100)->name, "outer");
  EXPECT_EQ(table.Find(120)->name, "inner");
  EXPECT_EQ(table.Find(139)->name, "inner");
  EXPECT_EQ(table.Find(140)->name, "outer");
  EXPECT_EQ(table.Find(200), nullptr);
  EXPECT_EQ(table.Find(310), nullptr);
}

TEST(SymbolTableTest, LabelsInsideFunctionsAreNoFunctions) {
  const SymbolTable table({Symbol(100, 200, "f"), Symbol(150, 150, "label", true, false),
                           Symbol(200, 200, "plain", true, false)});
  ASSERT_EQ(table.symbols().size(), 2U);
  EXPECT_EQ(table.symbols()[1].name, "plain");
}

class FunctionIndexTest : public ::testing::Test {
 protected:
  void Open(const std::string& name) {
    path_ = Fixture(name);
    auto file = ElfFile::Open(OpenFile(path_));
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    index_.emplace(*file_, nullptr);
  }

  std::string path_;
  std::unique_ptr<ElfFile> file_;
  std::optional<FunctionIndex> index_;
};

// Every sized function of nm, at its first and last byte.
TEST_F(FunctionIndexTest, BoundsEqualNm) {
  Open("kernels-gcc-O2");
  size_t checked = 0;
  for (const std::string& line : OutputOf("nm -S --defined-only " + path_)) {
    unsigned long low = 0, size = 0;
    char type = 0;
    char name[256] = {};
    if (std::sscanf(line.c_str(), "%lx %lx %c %255s", &low, &size, &type, name) != 4) continue;
    if ((type != 'T' && type != 't') || size == 0) continue;
    for (const uint64_t address : {low, low + size - 1}) {
      const auto found = index_->Find(address);
      ASSERT_TRUE(found) << name;
      EXPECT_EQ(found->low, low) << name;
      EXPECT_EQ(found->high, low + size) << name;
      EXPECT_EQ(found->symbol, name);
      EXPECT_EQ(found->source, FunctionSource::kSymbol);
    }
    ++checked;
  }
  EXPECT_GE(checked, 8U);
}

TEST_F(FunctionIndexTest, UnsizedSymbolsEndAtUnwindEntryOrNextSymbol) {
  Open("shapes");
  const uint64_t no_size = SymbolAddress(path_, "no_size");
  const uint64_t bare = SymbolAddress(path_, "bare");
  const uint64_t never = SymbolAddress(path_, "never");
  const auto first = index_->Find(no_size + 2);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->low, no_size);
  EXPECT_LT(first->high, bare);  // padding follows
  EXPECT_EQ(first->source, FunctionSource::kSymbol);
  const auto second = index_->Find(bare);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->high, never);
  EXPECT_EQ(second->source, FunctionSource::kGuess);
  EXPECT_FALSE(index_->Find(bare - 1));  // the padding
  EXPECT_FALSE(index_->Find(0));
}

TEST_F(FunctionIndexTest, StubsAreNamedLikeInObjdump) {
  for (const char* fixture : {"shapes", "kernels-gcc-O2-cet", "kernels-gcc-O2-nopie"}) {
    Open(fixture);
    size_t checked = 0;
    for (const std::string& line : OutputOf("objdump -d " + path_)) {
      const size_t at = line.find("@plt>:");
      if (at == std::string::npos) continue;
      const size_t open = line.find('<');
      const uint64_t address = std::stoull(line, nullptr, 16);
      const auto found = index_->Find(address);
      ASSERT_TRUE(found) << line;
      EXPECT_EQ(found->symbol, line.substr(open + 1, at + 4 - open - 1));
      EXPECT_EQ(found->low, address);
      EXPECT_EQ(index_->NameAt(address), line.substr(open + 1, at - open - 1));
      ++checked;
    }
    EXPECT_GE(checked, 1U) << fixture;
  }
}

TEST_F(FunctionIndexTest, StrippedBinaryHasTheSameBounds) {
  Open("kernels-gcc-O2");
  const auto full = index_->Find(SymbolAddress(path_, "triple"));
  ASSERT_TRUE(full);
  Open("kernels-gcc-O2-stripped");
  const auto stripped = index_->Find(full->low + 5);
  ASSERT_TRUE(stripped);
  EXPECT_EQ(stripped->low, full->low);
  EXPECT_EQ(stripped->high, full->high);
  EXPECT_TRUE(stripped->symbol.empty());
  EXPECT_EQ(stripped->source, FunctionSource::kEhFrame);
}

}  // namespace
}  // namespace perfd::agent
