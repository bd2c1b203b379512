#include "agent/procfs/slow_files.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/procfs/read_file.h"

namespace perfd::agent {

absl::StatusOr<std::string> ReadSlowFile(const SlowRead& read) {
  if (read.what == SlowRead::What::kWhole) return ReadWholeFile(read.path, read.limit);
  if (read.what == SlowRead::What::kHead) return HeadOfFile(read.path, read.limit);
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

}  // namespace perfd::agent
