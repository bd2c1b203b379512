#include "agent/binary/symbol_name.h"

#include <gtest/gtest.h>

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
