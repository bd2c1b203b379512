// agent/pipeline/module_kind.h - what a mapped file is to the job: its program, a library, or a runtime.
//
// Shape    pure; decides by the names of file and function alone.
// Source   file names of Open MPI 4/5, MPICH, Intel MPI, UCX, libfabric, PMIx, libgomp, LLVM and Intel OpenMP, glibc; functions
//          of glibc 2.36 (nptl), Open MPI 4 (ompi/mca/op, opal/datatype), MPICH 4 (mpi/coll/op, yaksa), UCX 1.13 (ucp/dt).
#ifndef AGENT_PIPELINE_MODULE_KIND_H_
#define AGENT_PIPELINE_MODULE_KIND_H_

#include "absl/strings/string_view.h"

namespace perfd::agent {

enum class ModuleKind {
  kProgram,  // the executable itself
  kLibrary,  // a library the program computes with
  kRuntime,  // MPI, OpenMP, threads, C: never altered
  kVdso,
  kAnonymous,  // code without a file: just-in-time compiled
  kMoved,      // anonymous memory in the place of a file's code (kMovedCode)
};

// How the path of anonymous memory begins that lies where the code of a file belongs; the file's path and "]" follow.
inline constexpr absl::string_view kMovedCode = "[moved code of ";

ModuleKind ClassifyModule(absl::string_view path, absl::string_view executable);

// Of a kRuntime module: whether a loop of this function waits for somebody. Most of the C library works for its caller (memset,
// sorting, malloc); most of the others wait, but for what adds up, packs and copies. "" is a function without a name.
bool IsWaiting(absl::string_view path, absl::string_view function);

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_MODULE_KIND_H_
