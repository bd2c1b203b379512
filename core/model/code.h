// core/model/code.h - where a sample landed: module, function, loop, and what kind of place that is.
//
// Shape    a CodeLocation is a leaf of the report: every sample belongs to exactly one.
//          A function is a set of address ranges, and so is a loop: compilers move what they take for cold to a part of
//          its own (NAME.cold). `low` and `high` bound the part in which a function is entered, and the part of a loop
//          that holds its header; `further_parts` are the others. One control flow graph spans all parts of a function.
// Units    addresses are ELF virtual addresses of the module file (not run-time addresses, not file offsets).
#ifndef CORE_MODEL_CODE_H_
#define CORE_MODEL_CODE_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/base/address.h"

namespace perfd {

// The five parts into which the whole time of a job is divided; they add up to 100 %.
enum class Category {
  kLoop,         // inside a natural loop of the program or of a library it computes with
  kOutsideLoop,  // in a function of the program, outside any loop
  kLibrary,      // a shared library outside loops, and everything in MPI, OpenMP and C runtimes
  kKernel,
  kUnknown,  // no module, no function
};
inline constexpr int kCategoryCount = 5;

const char* CategoryName(Category category);

// What the kernel did for a thread, by how the thread had come into it. The causes add up to kKernel.
enum class KernelCause : uint8_t {
  kUnknown,       // not told: an agent from before, or symbols of the kernel that may not be seen
  kPageFault,     // memory that was touched for the first time, or was not there
  kMemoryReturn,  // munmap, madvise, brk
  kMemoryMap,     // mmap, mprotect, mremap and the like
  kIo,            // files, sockets, pipes
  kCopy,          // between processes: process_vm_readv and the like
  kWaiting,       // on the way to sleep and out of it: futex, poll, sched_yield
  kInterrupt,     // of devices and timers, and what the scheduler does then
  kOther,         // other system calls
};
inline constexpr int kKernelCauseCount = 9;

// A word for files and programs: "page_faults".
const char* KernelCauseName(KernelCause cause);

enum class LoopKind {
  kCompute,
  kWaiting,  // in an MPI, OpenMP, thread or C runtime: shown, never altered
};

enum class OpenMpKind { kNone, kOutlined };

// A position in the sources; line 0 means unknown.
struct SourceRange {
  std::string file;
  int32_t first_line = 0;
  int32_t last_line = 0;

  bool operator==(const SourceRange&) const = default;
};

struct CodeRange {
  uint64_t low = 0;
  uint64_t high = 0;  // exclusive

  bool Contains(uint64_t address) const { return address >= low && address < high; }
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the operator for one of pointers
  auto operator<=>(const CodeRange&) const = default;
};

// One natural loop. Its identity is (module, header address).
struct LoopFacts {
  uint64_t header = 0;
  uint64_t parent_header = 0;  // 0: outermost
  int32_t depth = 1;           // 1: outermost
  bool innermost = true;
  bool irreducible = false;  // part of a region with several entries
  uint64_t low = 0;  // lowest address of the body in the part of the function that holds the header
  uint64_t high = 0;  // one past the last byte of it there
  std::vector<CodeRange>
      further_parts;  // the same of each other part of the function that it goes through; sorted
  int32_t block_count = 0;
  int32_t instruction_count = 0;
  SourceRange source;
  std::string inlined_from;  // innermost inlined function that holds the loop; empty: none

  bool operator==(const LoopFacts&) const = default;
};

// Code of a function whose innermost loop is loops[loop]. Loop bodies need not be contiguous, so membership is by span.
struct LoopSpan {
  uint64_t low = 0;
  uint64_t high = 0;  // exclusive
  uint32_t loop = 0;  // index into FunctionFacts::loops

  bool operator==(const LoopSpan&) const = default;
};

// How the bounds of a function became known, best first.
enum class FunctionSource { kSymbol, kEhFrame, kDwarf, kGuess };

// Of functions whose names nothing tells (FunctionFacts::name). Two files of one build-id are not always one program: a loop whose
// function has two names is two loops, a made name is no other one.
inline bool MayBeOneFunction(absl::string_view a, absl::string_view b) {
  const auto made = [](absl::string_view name) {
    return name.empty() || absl::StartsWith(name, "sub_");
  };
  return a == b || made(a) || made(b);
}

struct FunctionFacts {
  std::string name;                      // demangled; "sub_401000" when only the bounds are known
  uint64_t low = 0;                      // the entry
  uint64_t high = 0;                     // exclusive
  std::vector<CodeRange> further_parts;  // sorted, disjoint, apart from [low, high)
  FunctionSource source = FunctionSource::kSymbol;
  OpenMpKind openmp = OpenMpKind::kNone;
  SourceRange declaration;  // of the function itself
  std::vector<LoopFacts> loops;
  std::vector<LoopSpan> spans;  // sorted, disjoint; code in no span is outside loops
  std::string
      note;  // why the loops may be incomplete (undecodable bytes, unresolved indirect jump); empty: none

  bool operator==(const FunctionFacts&) const = default;
};

// All parts, sorted.
std::vector<CodeRange> PartsOf(const FunctionFacts& function);

// The innermost loop at `address`, or null when it is outside every loop.
const LoopFacts* InnermostLoop(const FunctionFacts& function, ElfAddress address);

struct CodeLocation {
  Category category = Category::kUnknown;
  std::string
      module_id;  // build-id in hex, else of code_index.h CodeId; empty for kernel and unknown
  std::string module_path;  // as the rank sees it
  std::string function;
  uint64_t function_low = 0;
  OpenMpKind openmp = OpenMpKind::kNone;
  LoopKind loop_kind = LoopKind::kCompute;
  std::optional<LoopFacts> loop;  // set for every place inside a loop, waiting loops included
  SourceRange source;             // of the loop, else of the function
  // With kKernel. source is then that of the caller.
  KernelCause kernel_cause = KernelCause::kUnknown;
  std::string kernel_caller;  // the function that came into the kernel; empty: not known

  bool operator==(const CodeLocation&) const = default;
};

// Same place <=> same key. Stable across ranks, nodes and runs of the same binary.
std::string LocationKey(const CodeLocation& location);

// 64-bit FNV-1a of the key as 16 hex digits: the id shown to people and used in metrics.
std::string LocationId(const CodeLocation& location);

}  // namespace perfd

#endif  // CORE_MODEL_CODE_H_
