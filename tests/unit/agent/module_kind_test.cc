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
  EXPECT_EQ(ClassifyModule("[moved code of /home/u/bin/app]", exe), ModuleKind::kMoved);
}

TEST(ModuleKind, WaitingIsOfFunctions) {
  const char* c = "/usr/lib/x86_64-linux-gnu/libc.so.6";
  for (const char* work : {"__memset_avx2_unaligned_erms", "__memcpy_avx512_unaligned_erms",
                           "_int_malloc", "msort_with_tmp.part.0", "__strlen_avx2", "random", ""})
    EXPECT_FALSE(IsWaiting(c, work)) << work;
  for (const char* wait :
       {"__lll_lock_wait", "pthread_spin_lock@@GLIBC_2.34", "___pthread_mutex_lock",
        "__futex_abstimed_wait_common", "pthread_barrier_wait@@GLIBC_2.34"})
    EXPECT_TRUE(IsWaiting(c, wait)) << wait;
  const char* mpi = "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4";
  for (const char* wait : {"ompi_coll_base_allreduce_intra_recursivedoubling",
                           "ompi_request_default_wait", "sub_1e2d0", ""})
    EXPECT_TRUE(IsWaiting(mpi, wait)) << wait;
  EXPECT_FALSE(IsWaiting(mpi, "ompi_op_base_2buff_sum_double"));
  EXPECT_FALSE(IsWaiting("/usr/lib/libmpich.so.12", "MPIR_SUM"));
  EXPECT_FALSE(IsWaiting("/usr/lib/x86_64-linux-gnu/libopen-pal.so.40",
                         "opal_generic_simple_pack_convertor_"));
  EXPECT_TRUE(IsWaiting("/usr/lib/x86_64-linux-gnu/libgomp.so.1", "gomp_team_barrier_wait_end"));
  EXPECT_TRUE(IsWaiting("/usr/lib/libopen-pal.so.40", "opal_progress"));
}

}  // namespace
}  // namespace perfd::agent
