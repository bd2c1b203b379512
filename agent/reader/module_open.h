// agent/reader/module_open.h - finds the file a process has mapped, under the rights of that process's user.
//
// Shape    OpenModule(file): what needs the starter's rights is named first (the process's root directory, the mapping
//          itself; O_PATH), then this process becomes the target's user, with its groups, for good; then files are opened.
// Errors   kNotFound (file and mapping gone, or replaced), kPermissionDenied, kUnimplemented ([vdso] and the like),
//          kInternal (rights could not be given up: nothing is read).
// Threads  changes the credentials of the whole process; call it once, first.
// Safety   regular files only, checked before they are opened for reading; symbolic links stay below the root directory;
//          nothing is opened for reading with the starter's rights. OpenDebugFile parses: confine first (confine.h).
// Source   proc(5) /proc/PID/{root,exe,map_files,status}; openat2(2) RESOLVE_IN_ROOT; setresuid(2).
#ifndef AGENT_READER_MODULE_OPEN_H_
#define AGENT_READER_MODULE_OPEN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "agent/reader/reader_client.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {

struct OpenedModule {
  UniqueFd root;  // the target's root directory; for OpenDebugFile
  UniqueFd main;
};

absl::StatusOr<OpenedModule> OpenModule(const ModuleFile& file);

// The files of one process, in their order, under the rights of the first one's user: each descriptor or why there is
// none. Needs three descriptors per file for a moment.
absl::StatusOr<std::vector<absl::StatusOr<UniqueFd>>> OpenModules(
    const std::vector<ModuleFile>& files);

// The separate debug file of `module`, in the target's root or the host's; invalid: none, or none needed.
UniqueFd OpenDebugFile(const OpenedModule& module, absl::string_view path);

}  // namespace perfd::agent

#endif  // AGENT_READER_MODULE_OPEN_H_
