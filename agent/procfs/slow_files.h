// agent/procfs/slow_files.h - reads of another process that may wait for it: its memory may be locked, and the file system of
//                             its program may not answer.
//
// Shape    ReadSlowFile reads here and now, and waits as long as it takes. A SlowFiles that a ProcFs is given does it in its
//          stead, within bounds (agent/procfs/guarded).
// Errors   as read_file.h. SlowFiles: kUnavailable also for what does not answer, with a sentence that names the process.
// Threads  thread-safe.
// Safety   kForeign: nothing is opened that is a device, a pipe, a link or another user's; nothing outside of the root directory.
// Source   openat2(2) RESOLVE_IN_ROOT; fs/proc/base.c, fs/proc/task_mmu.c: cmdline and environ wait for the lock of the address space, killable; maps does on
//          kernels before 6.17. status, stat, limits, cgroup, schedstat and the text of the link exe do not.
#ifndef AGENT_PROCFS_SLOW_FILES_H_
#define AGENT_PROCFS_SLOW_FILES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd::agent {

struct SlowRead {
  enum class What : uint8_t {
    kWhole,
    kHead,
    kIdentity,
    kPart,           // `limit` bytes from `offset`: all of them, or an error
    kForeign,        // as kWhole, but written by a user, where a process of theirs would find it
    kExecutableMaps  // ReadExecutableMaps
  };
  What what = What::kWhole;
  size_t limit = 0;  // bytes; longer: an error of kWhole
  std::string path;
  uint64_t offset =
      0;  // kPart: of the first byte. kForeign: bytes of the path that name a root directory
  uint32_t owner_uid = 0;  // kForeign: of whom the file has to be
};

// Which file it is. Both 0: it cannot be seen.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
};

class SlowFiles {
 public:
  virtual ~SlowFiles() = default;
  // As ReadSlowFile. `pid`: whose file it is.
  virtual absl::StatusOr<std::string> Read(int32_t pid, const SlowRead& read) = 0;
};

// kIdentity: device and inode as text, for ParseFileId; kNotFound for whatever reason it cannot be seen.
// kForeign: for DecodeForeign; kPermissionDenied: it is somebody else's; kFailedPrecondition: no regular file (a link is none).
absl::StatusOr<std::string> ReadSlowFile(const SlowRead& read);

struct ForeignFile {
  int64_t modified_ns = 0;  // since 1970
  std::string contents;
};
absl::StatusOr<ForeignFile> DecodeForeign(absl::string_view answer);

absl::StatusOr<FileId> ParseFileId(const std::string& text);

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_SLOW_FILES_H_
