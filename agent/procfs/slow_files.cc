#include "agent/procfs/slow_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/open_as_owner.h"
#include "agent/procfs/procfs.h"
#include "agent/procfs/read_file.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {
namespace {

absl::StatusOr<UniqueFd> NameOf(const SlowRead& read) {
  const std::string root = read.path.substr(0, read.offset);
  const std::string name = read.path.substr(root.size());
  const UniqueFd directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return FileError(errno, "open", root);
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  UniqueFd file(
      static_cast<int>(::syscall(SYS_openat2, directory.get(), name.c_str(), &how, sizeof how)));
  if (!file.valid()) return FileError(errno, "open", name);
  return file;
}

// Named first, judged, then opened by that very name. As its owner where we may not.
absl::StatusOr<std::string> ReadForeignFile(const SlowRead& read) {
  if (read.offset == 0 || read.offset >= read.path.size())
    return absl::InvalidArgumentError(absl::StrCat("read ", read.path, ": beneath no directory"));
  ASSIGN_OR_RETURN(const UniqueFd name, NameOf(read));
  struct stat facts {};
  if (::fstat(name.get(), &facts) != 0) return FileError(errno, "stat", read.path);
  if (!S_ISREG(facts.st_mode))
    return absl::FailedPreconditionError(absl::StrCat("read ", read.path, ": not a regular file"));
  if (facts.st_uid != read.owner_uid)
    return absl::PermissionDeniedError(absl::StrCat("read ", read.path, ": it belongs to user ",
                                                    facts.st_uid, ", not to ", read.owner_uid,
                                                    " of the process"));
  const UniqueFd file = OpenAsOwner(absl::StrCat("/proc/self/fd/", name.get()),
                                    O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (!file.valid()) return FileError(errno, "open", read.path);
  ASSIGN_OR_RETURN(const std::string contents, ReadWhole(file.get(), read.path, read.limit));
  return absl::StrCat(facts.st_mtim.tv_sec * kNsPerSecond + facts.st_mtim.tv_nsec, "\n", contents);
}

}  // namespace

absl::StatusOr<std::string> ReadSlowFile(const SlowRead& read) {
  if (read.what == SlowRead::What::kWhole) return ReadWholeFile(read.path, read.limit);
  if (read.what == SlowRead::What::kHead) return HeadOfFile(read.path, read.limit);
  if (read.what == SlowRead::What::kPart)
    return PartOfFile(read.path, {.offset = read.offset, .bytes = read.limit});
  if (read.what == SlowRead::What::kForeign) return ReadForeignFile(read);
  if (read.what == SlowRead::What::kExecutableMaps)
    return ReadExecutableMaps(read.path, read.limit);
  struct stat entry {};
  if (::stat(read.path.c_str(), &entry) != 0)
    return absl::NotFoundError(absl::StrCat("stat ", read.path, ": ", std::strerror(errno)));
  return absl::StrCat(entry.st_dev, " ", entry.st_ino);
}

absl::StatusOr<FileId> ParseFileId(const std::string& text) {
  const std::pair<absl::string_view, absl::string_view> numbers =
      absl::StrSplit(text, absl::MaxSplits(' ', 1));
  FileId id;
  if (absl::SimpleAtoi(numbers.first, &id.device) && absl::SimpleAtoi(numbers.second, &id.inode))
    return id;
  return absl::InvalidArgumentError("identity of a file: not two numbers");
}

absl::StatusOr<ForeignFile> DecodeForeign(absl::string_view answer) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(answer, absl::MaxSplits('\n', 1));
  ForeignFile file;
  if (!absl::SimpleAtoi(parts.first, &file.modified_ns))
    return absl::InvalidArgumentError("a file of a user: no time");
  file.contents = std::string(parts.second);
  return file;
}

}  // namespace perfd::agent
