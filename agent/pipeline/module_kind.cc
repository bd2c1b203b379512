#include "agent/pipeline/module_kind.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "agent/discover/candidate.h"

namespace perfd::agent {
namespace {

// Prefixes of base names.
constexpr auto kRuntimePrefixes = std::to_array<absl::string_view>({
    "libmpi",     "libopen-pal", "libopen-rte", "liboshmem", "mca_",       "libmca",    "libpmix",
    "libprrte",   "libpmi.",     "libpmi2.",    "libmpich",  "libmpifort", "libucp",    "libucs",
    "libuct",     "libucm",      "libfabric",   "libpsm",    "libibverbs", "librdmacm", "libmlx",
    "libevent",   "libhwloc",    "libgomp",     "libomp.",   "libomp-",    "libiomp5",  "libkmp",
    "libpthread", "libmunge",    "libslurm",    "libxpmem",  "libnl-",
});

// "libc.so" must not catch libcufft, hence the dots.
constexpr auto kCLibraryPrefixes = std::to_array<absl::string_view>(
    {"libc.so", "libc-2", "ld-linux", "ld-2", "librt.", "librt-2", "libdl."});

// Parts of the names of functions of the C library in which a thread spins or sleeps.
constexpr auto kWaitsInC = std::to_array<absl::string_view>(
    {"lll_lock",       "futex",     "spin",          "mutex",  "barrier",      "cond_wait",
     "cond_timedwait", "sem_wait",  "sem_timedwait", "rwlock", "pthread_join", "pthread_timedjoin",
     "sched_yield",    "nanosleep", "poll",          "select", "epoll",        "sigwait",
     "waitpid",        "wait4",     "waitid",        "pause"});

// Parts of the names of functions of MPI and OpenMP runtimes that work: reductions, data types, copies.
constexpr auto kWorksInRuntimes = std::to_array<absl::string_view>({"op_base_2buff",
                                                                    "op_base_3buff",
                                                                    "op_avx_2buff",
                                                                    "op_avx_3buff",
                                                                    "MPIR_SUM",
                                                                    "MPIR_PROD",
                                                                    "MPIR_MAXF",
                                                                    "MPIR_MINF",
                                                                    "yaksuri",
                                                                    "convertor_",
                                                                    "datatype_copy",
                                                                    "datatype_pack",
                                                                    "datatype_unpack",
                                                                    "pack_generic",
                                                                    "unpack_generic",
                                                                    "pack_homogeneous",
                                                                    "unpack_homogeneous",
                                                                    "dt_pack",
                                                                    "dt_unpack",
                                                                    "memcpy",
                                                                    "memmove",
                                                                    "memset"});

template <size_t kCount>
bool BeginsWithAny(absl::string_view text, const std::array<absl::string_view, kCount>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [text](absl::string_view prefix) { return absl::StartsWith(text, prefix); });
}

template <size_t kCount>
bool HasAny(absl::string_view text, const std::array<absl::string_view, kCount>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](absl::string_view part) { return absl::StrContains(text, part); });
}

}  // namespace

bool IsWaiting(absl::string_view path, absl::string_view function) {
  return BeginsWithAny(BaseName(path), kCLibraryPrefixes) ? HasAny(function, kWaitsInC)
                                                          : !HasAny(function, kWorksInRuntimes);
}

ModuleKind ClassifyModule(absl::string_view path, absl::string_view executable) {
  if (path == "[vdso]" || path == "[vsyscall]") return ModuleKind::kVdso;
  if (absl::StartsWith(path, kMovedCode)) return ModuleKind::kMoved;
  if (path.empty() || path.front() == '[' || absl::StartsWith(path, "//anon"))
    return ModuleKind::kAnonymous;
  if (path == executable) return ModuleKind::kProgram;
  const absl::string_view base = BaseName(path);
  if (BeginsWithAny(base, kRuntimePrefixes) || BeginsWithAny(base, kCLibraryPrefixes))
    return ModuleKind::kRuntime;
  return ModuleKind::kLibrary;
}

}  // namespace perfd::agent
