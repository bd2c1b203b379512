#include "agent/pipeline/module_kind.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

TEST(ModuleKind, TellsProgramRuntimeAndLibraryApart) {
  const char* exe = "/home/u/bin/app";
  EXPECT_EQ(ClassifyModule(exe, exe), ModuleKind::kProgram);
  EXPECT_EQ(ClassifyModule("/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4", exe),
            ModuleKind::kRuntime);
  EXPECT_EQ(ClassifyModule("/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3/mca_btl_vader.so", exe),
            ModuleKind::kRuntime);
  EXPECT_EQ(ClassifyModule("/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0", exe),
            ModuleKind::kRuntime);
  EXPECT_EQ(ClassifyModule("/usr/lib/x86_64-linux-gnu/libomp-14.so.5", exe), ModuleKind::kRuntime);
  EXPECT_EQ(ClassifyModule("/usr/lib/x86_64-linux-gnu/libc.so.6", exe), ModuleKind::kRuntime);
  EXPECT_EQ(ClassifyModule("/usr/lib/x86_64-linux-gnu/libm.so.6", exe), ModuleKind::kLibrary);
  EXPECT_EQ(ClassifyModule("/usr/lib/x86_64-linux-gnu/libcufft.so.10", exe), ModuleKind::kLibrary);
  EXPECT_EQ(ClassifyModule("/usr/lib/x86_64-linux-gnu/blas/libblas.so.3", exe),
            ModuleKind::kLibrary);
  EXPECT_EQ(ClassifyModule("[vdso]", exe), ModuleKind::kVdso);
  EXPECT_EQ(ClassifyModule("", exe), ModuleKind::kAnonymous);
  EXPECT_EQ(ClassifyModule("//anon", exe), ModuleKind::kAnonymous);
  EXPECT_EQ(ClassifyModule("[heap]", exe), ModuleKind::kAnonymous);
}

}  // namespace
}  // namespace perfd::agent
