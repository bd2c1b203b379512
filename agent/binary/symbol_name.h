// agent/binary/symbol_name.h - what the name of a symbol says: the readable name, OpenMP outlining, aliases, parts of functions.
//
// Limits   names over kMaxMangledName bytes stay as they are; readable names are cut at kMaxReadableName bytes.
// Threads  thread-safe (pure).
// Source   Itanium C++ ABI 5.1 and Rust RFC 2603 (mangling, read by libiberty); gcc omp-expand ("._omp_fn.N"), clang
//          CGOpenMPRuntime (".omp_outlined."), gcc function_section (".cold"), LLVM BasicBlockSections (".cold",
//          ".__part.N"), BOLT (".cold.N"); Intel compilers' "L_<function>_<line>__par_loop<n>_..." and
//          "<function>.DIR.OMP.PARALLEL.<n>".
#ifndef AGENT_BINARY_SYMBOL_NAME_H_
#define AGENT_BINARY_SYMBOL_NAME_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "core/model/code.h"

namespace perfd::agent {

inline constexpr size_t kMaxMangledName = 4096;
inline constexpr size_t kMaxReadableName = 2048;

// "_Z3fooi._omp_fn.0" -> "foo(int)._omp_fn.0"; names that are not of C++ or Rust are returned unchanged, without "@VERSION".
// Those of D are: libiberty's time for them grows without bound (4 s for a certain one of 105 bytes).
std::string ReadableName(absl::string_view symbol);

OpenMpKind OpenMpOf(absl::string_view symbol);

// "_Z3fooi" of "_Z3fooi.cold", "_Z3fooi.cold.1", "_Z3fooi.__part.2": the function whose part has this name; empty: it is no part.
// ("_Z3fooi.part.0" is a function of its own: gcc calls it.)
absl::string_view WholeOf(absl::string_view symbol);

// True when `a` is the better name for an address that has both.
bool IsBetterName(absl::string_view a, absl::string_view b);

// Functions of the C, C++ and Fortran runtimes that never return to the caller.
bool NeverReturns(absl::string_view symbol);

}  // namespace perfd::agent

#endif  // AGENT_BINARY_SYMBOL_NAME_H_
