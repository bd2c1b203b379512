#include "agent/binary/symbol_name.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/binary/elf_file.h"
#include "agent/binary/symbol_table.h"
#include "core/base/utf8.h"
#include "tests/unit/binary/fixture.h"

namespace perfd::agent {
namespace {

TEST(SymbolNameTest, ReadableNames) {
  EXPECT_EQ(ReadableName("main"), "main");
  EXPECT_EQ(ReadableName("_Z3fooi"), "foo(int)");
  EXPECT_EQ(ReadableName("_Z3fooi._omp_fn.0"), "foo(int)._omp_fn.0");
  EXPECT_EQ(ReadableName("work.constprop.0.cold"), "work.constprop.0.cold");
  EXPECT_EQ(ReadableName("memcpy@@GLIBC_2.14"), "memcpy");
  EXPECT_EQ(ReadableName("_Znothing"), "_Znothing");
  EXPECT_EQ(ReadableName(""), "");
}

// Names and their meaning: Rust RFC 2603, "Examples" and appendix B; what rustc 1.6x wrote.
TEST(SymbolNameTest, NamesOfRust) {
  EXPECT_EQ(ReadableName("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
  EXPECT_EQ(ReadableName("_RINvNtC3std3mem8align_ofdE"), "std::mem::align_of::<f64>");
  EXPECT_EQ(ReadableName("_RNvC7mycrate3foo.llvm.12345"), "mycrate::foo.llvm.12345");
  EXPECT_EQ(ReadableName("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt");
  EXPECT_EQ(ReadableName("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.77"),
            "core::fmt::Write::write_fmt.llvm.77");
  EXPECT_EQ(ReadableName("_ZN39_$LT$A$u20$as$u20$foo..Bar$LT$B$GT$$GT$3bar17h930b740aa94f1d3aE"),
            "<A as foo::Bar<B>>::bar");
  EXPECT_EQ(ReadableName("_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y"),
            "utf8_idents::\u10e1\u10d0\u10ed\u10db\u10d4\u10da\u10d0\u10d3_"
            "\u10d2\u10d4\u10db\u10e0\u10d8\u10d4\u10da\u10d8_"
            "\u10e1\u10d0\u10d3\u10d8\u10da\u10d8");
  for (const char* other : {"_R", "_Random", "_Rsomething", "_RNvC7mycrate3fo", "_ZN3foo17h12E"})
    EXPECT_EQ(ReadableName(other), other);
}

// A coroutine's frame is named after the function, dot included; only what follows it is a suffix.
TEST(SymbolNameTest, DotsInsideNamesAreNoSuffixes) {
  EXPECT_EQ(ReadableName("_Z6BlocksPZ6BlocksiE16_Z6Blocksi.Frame.actor"),
            "Blocks(Blocks(int)::_Z6Blocksi.Frame*).actor");
  EXPECT_EQ(ReadableName("_Z3fooi.constprop.0.cold"), "foo(int).constprop.0.cold");
  EXPECT_EQ(ReadableName("_Z3fooi..omp_outlined."), "foo(int)..omp_outlined.");
  const std::string dots = "_Z" + std::string(kMaxMangledName - 2, '.');
  EXPECT_EQ(ReadableName(dots), std::string(kMaxReadableName - 3, '.').replace(0, 2, "_Z") + "...");
}

// The compiler's own run-time library as the second opinion.
TEST(SymbolNameTest, NamesOfTheCppLibraryAreAsTheCompilerReadsThem) {
  Dl_info library;
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&std::set_terminate), &library), 0);
  const auto file = ElfFile::Open(OpenFile(library.dli_fname));
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<FunctionSymbol> symbols;
  AppendSymbols(**file, **file, symbols);
  size_t compared = 0;
  for (const FunctionSymbol& symbol : symbols) {
    if (!absl::StartsWith(symbol.name, "_Z")) continue;
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> name(
        abi::__cxa_demangle(std::string(symbol.name).c_str(), nullptr, nullptr, &status),
        std::free);
    ASSERT_EQ(status, 0) << symbol.name;
    EXPECT_EQ(ReadableName(symbol.name), name.get());
    ++compared;
  }
  EXPECT_GT(compared, 3000U);
}

std::string Base(uint64_t number, absl::string_view digits) {
  std::string text(1, digits[number % digits.size()]);
  return number < digits.size() ? text : Base(number / digits.size(), digits) + text;
}

// Substitution number `i` of the Itanium ABI (5.1.10), and of Rust's back references: "_", "0_", "1_" ...
std::string Reference(absl::string_view letter, uint64_t i, absl::string_view digits) {
  return i == 0 ? absl::StrCat(letter, "_") : absl::StrCat(letter, Base(i - 1, digits), "_");
}

// Each argument is a pair of the one before: 400 bytes for a text of 2^40.
TEST(SymbolNameTest, SmallNamesOfHugeTextsAreLeftEarly) {
  constexpr absl::string_view kDigits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string cpp = "_Z1f1A1BIS_S_E";
  std::string rust = "INvC1a1fTllE";
  // Here with a type whose name is in Punycode.
  std::string georgian = "INvC1a1fNvC1au30____7hkackfecea1cbdathfdh9hlq6y";
  size_t last = rust.find('T');
  size_t last_georgian = georgian.find("Nv", 2);
  for (uint64_t i = 2; i < 40; ++i) {
    const std::string pair = Reference("S", i, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    cpp += "S0_I" + pair + pair + "E";
    for (auto& [name, at] :
         {std::pair<std::string&, size_t&>(rust, last), {georgian, last_georgian}}) {
      const std::string back = Reference("B", at, kDigits);
      at = name.size();
      name += "T" + back + back + "E";
    }
  }
  for (const std::string& name : {cpp, "_R" + rust + "E", "_R" + georgian + "E"}) {
    const std::string text = ReadableName(name);
    EXPECT_EQ(text.size(), kMaxReadableName) << name;
    EXPECT_EQ(text.substr(kMaxReadableName - 3), "...");
  }
}

TEST(SymbolNameTest, NestingIsBounded) {
  const std::string deep = "_Z1f" + std::string(kMaxMangledName - 5, 'P') + "i";
  EXPECT_EQ(ReadableName(deep).substr(0, 6), "_Z1fPP");
  EXPECT_EQ(ReadableName("_RINvC1a1f" + std::string(4000, 'R') + "lE").substr(0, 12),
            "_RINvC1a1fRR");
}

TEST(SymbolNameTest, CutNamesEndInWholeLetters) {
  for (size_t shift = 0; shift < 3; ++shift) {
    std::string name(shift, 'a');
    for (size_t i = 0; i < 1000; ++i) name += "\u10e1";
    std::string cut = ReadableName(name);
    ASSERT_LE(cut.size(), kMaxReadableName);
    for (absl::string_view rest = cut; !rest.empty();) {
      const size_t length = Utf8SequenceLength(rest);
      ASSERT_GT(length, 0U) << shift;
      rest.remove_prefix(length);
    }
  }
}

TEST(SymbolNameTest, LongNamesAreBounded) {
  const std::string mangled =
      "_Z" + std::to_string(kMaxMangledName) + std::string(kMaxMangledName, 'a') + "v";
  EXPECT_EQ(ReadableName(mangled).size(), kMaxReadableName);
  EXPECT_EQ(ReadableName(std::string(kMaxReadableName, 'a')).size(), kMaxReadableName);
  EXPECT_EQ(ReadableName(std::string(kMaxReadableName, 'a')).back(), 'a');
  EXPECT_EQ(ReadableName(std::string(kMaxReadableName + 1, 'a')).back(), '.');
}

TEST(SymbolNameTest, OpenMpOutlining) {
  for (const char* name :
       {"main._omp_fn.0", "_Z3foov._omp_fn.12", ".omp_outlined.", ".omp_outlined..3",
        ".omp_outlined._debug__", "foo.omp_outlined", "__omp_outlined__",
        "L_foo_123__par_loop0_2_4", "L_foo_9__par_region1_2.1", "foo.DIR.OMP.PARALLEL.2.split"})
    EXPECT_EQ(OpenMpOf(name), OpenMpKind::kOutlined) << name;
  for (const char* name : {"main", "omp_get_wtime", "GOMP_parallel", "my_omp_fn"})
    EXPECT_EQ(OpenMpOf(name), OpenMpKind::kNone) << name;
}

TEST(SymbolNameTest, BetterAliases) {
  EXPECT_TRUE(IsBetterName("memcpy", "__memcpy"));
  EXPECT_TRUE(IsBetterName("_Z3foov", "__foo"));
  EXPECT_TRUE(IsBetterName("a", "b"));
  EXPECT_FALSE(IsBetterName("a", "a"));
}

TEST(SymbolNameTest, FunctionsThatNeverReturn) {
  for (const char* name : {"abort", "exit", "abort@GLIBC_2.2.5", "_ZSt20__throw_length_errorPKc",
                           "_gfortran_stop_string", "__stack_chk_fail"})
    EXPECT_TRUE(NeverReturns(name)) << name;
  for (const char* name : {"", "malloc", "abortive", "__cxa_begin_catch", "my__throw_x"})
    EXPECT_FALSE(NeverReturns(name)) << name;
}

}  // namespace
}  // namespace perfd::agent
