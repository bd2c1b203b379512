#include "agent/pipeline/module_kind.h"

#include <array>

#include "absl/strings/match.h"
#include "agent/discover/candidate.h"

namespace perfd::agent {
namespace {

// Prefixes of base names; "libc.so" must not catch libcufft, hence the dots.
constexpr auto kRuntimePrefixes = std::to_array<absl::string_view>({
    "libmpi",   "libopen-pal", "libopen-rte", "liboshmem", "mca_",       "libmca",    "libpmix",
    "libprrte", "libpmi.",     "libpmi2.",    "libmpich",  "libmpifort", "libucp",    "libucs",
    "libuct",   "libucm",      "libfabric",   "libpsm",    "libibverbs", "librdmacm", "libmlx",
    "libevent", "libhwloc",    "libgomp",     "libomp.",   "libomp-",    "libiomp5",  "libkmp",
    "libc.so",  "libc-2",      "ld-linux",    "ld-2",      "libpthread", "librt.",    "librt-2",
    "libdl.",   "libmunge",    "libslurm",    "libxpmem",  "libnl-",
});

}  // namespace

ModuleKind ClassifyModule(absl::string_view path, absl::string_view executable) {
  if (path == "[vdso]" || path == "[vsyscall]") return ModuleKind::kVdso;
  if (path.empty() || path.front() == '[' || absl::StartsWith(path, "//anon"))
    return ModuleKind::kAnonymous;
  if (path == executable) return ModuleKind::kProgram;
  const absl::string_view base = BaseName(path);
  for (absl::string_view prefix : kRuntimePrefixes) {
    if (absl::StartsWith(base, prefix)) return ModuleKind::kRuntime;
  }
  return ModuleKind::kLibrary;
}

}  // namespace perfd::agent
