// agent/pipeline/module_kind.h - what a mapped file is to the job: its program, a library, or a runtime.
//
// Shape    pure; decides by the file name alone.
// Source   file names of Open MPI 4/5, MPICH, Intel MPI, UCX, libfabric, PMIx, libgomp, LLVM and Intel OpenMP, glibc.
#ifndef AGENT_PIPELINE_MODULE_KIND_H_
#define AGENT_PIPELINE_MODULE_KIND_H_

#include "absl/strings/string_view.h"

namespace perfd::agent {

enum class ModuleKind {
  kProgram,  // the executable itself
  kLibrary,  // a library the program computes with
  kRuntime,  // MPI, OpenMP, threads, C: its loops wait or copy, and are never altered
  kVdso,
  kAnonymous,  // code without a file: just-in-time compiled, or moved by the program
};

// How the path of anonymous memory begins that lies where the code of a file belongs; the file's path and "]" follow.
inline constexpr absl::string_view kMovedCode = "[moved code of ";

ModuleKind ClassifyModule(absl::string_view path, absl::string_view executable);

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_MODULE_KIND_H_
