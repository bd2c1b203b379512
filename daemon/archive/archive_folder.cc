#include "daemon/archive/archive_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace perfd::daemon {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFolderMode = 0750;
constexpr mode_t kFileMode = 0640;
constexpr int64_t kNsPerDay = int64_t{24} * 3600 * 1'000'000'000;
constexpr char kSuffix[] = ".json";

absl::Status Failed(const char* what, const std::string& path, int error) {
  const std::string text = absl::StrCat(what, " ", path, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE)
    return absl::ResourceExhaustedError(text);
  if (error == EACCES || error == EPERM || error == EROFS) return absl::PermissionDeniedError(text);
  return absl::FailedPreconditionError(text);
}

// `root` and the folders of `day` in it.
absl::Status MakeFolders(const std::string& root, const std::string& day) {
  std::string path = root;
  const std::string below = absl::StrCat("/", day);  // the first part is empty: the root itself
  for (const absl::string_view part : absl::StrSplit(below, '/')) {
    if (!part.empty()) absl::StrAppend(&path, "/", part);
    if (::mkdir(path.c_str(), kFolderMode) != 0 && errno != EEXIST)
      return Failed("mkdir", path, errno);
  }
  return absl::OkStatus();
}

absl::Status WriteSynced(const std::string& path, absl::string_view text) {
  ::unlink(path.c_str());  // of a daemon that was killed in the middle
  const UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!fd.valid()) return Failed("open", path, errno);
  while (!text.empty()) {
    const ssize_t size = ::write(fd.get(), text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Failed("write", path, errno);
    text.remove_prefix(static_cast<size_t>(size));
  }
  return ::fsync(fd.get()) == 0 ? absl::OkStatus() : Failed("fsync", path, errno);
}

bool AllDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

bool IsArchived(const std::string& name) {
  return absl::StartsWith(name, "p-") && absl::EndsWith(name, kSuffix) &&
         AllDigits(absl::string_view(name).substr(2, name.size() - 2 - std::strlen(kSuffix)));
}

struct Found {
  std::string day;  // sorts by time
  std::string path;
  uint64_t bytes = 0;
};

void AddFiles(const fs::path& folder, const std::string& day, std::vector<Found>& found) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (found.size() == ArchiveFolder::kMaxFiles) return;
    if (!IsArchived(it->path().filename().string())) continue;
    std::error_code odd;
    const bool regular = fs::is_regular_file(it->symlink_status(odd));
    const uint64_t bytes = regular ? it->file_size(odd) : 0;
    if (regular && !odd) found.push_back({day, it->path().string(), bytes});
  }
}

std::vector<std::string> DigitFolders(const fs::path& folder, size_t digits) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code odd;
    if (name.size() == digits && AllDigits(name) && fs::is_directory(it->symlink_status(odd)))
      names.push_back(name);
  }
  return names;
}

// Oldest first.
std::vector<Found> AllFiles(const std::string& root) {
  std::vector<Found> found;
  for (const std::string& year : DigitFolders(root, 4)) {
    for (const std::string& month : DigitFolders(fs::path(root) / year, 2)) {
      const fs::path folder = fs::path(root) / year / month;
      for (const std::string& day : DigitFolders(folder, 2))
        AddFiles(folder / day, absl::StrCat(year, "/", month, "/", day), found);
    }
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(a.day, a.path) < std::tie(b.day, b.path);
  });
  return found;
}

}  // namespace

std::string ArchiveDay(int64_t unix_ns) {
  return absl::FormatTime("%Y/%m/%d", absl::FromUnixNanos(std::max<int64_t>(0, unix_ns)),
                          absl::UTCTimeZone());
}

absl::Status ArchiveFolder::Write(absl::string_view profile_id, int64_t finished_unix_ns,
                                  absl::string_view text) const {
  const std::string day = ArchiveDay(finished_unix_ns);
  RETURN_IF_ERROR(MakeFolders(path_, day));
  const std::string folder = absl::StrCat(path_, "/", day);
  const std::string next = absl::StrCat(folder, "/.", profile_id, ".new");
  if (const absl::Status written = WriteSynced(next, text); !written.ok()) {
    ::unlink(next.c_str());
    return written;
  }
  const std::string path = absl::StrCat(folder, "/", profile_id, kSuffix);
  if (::rename(next.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(next.c_str());
    return Failed("rename", path, error);
  }
  const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || ::fsync(directory.get()) != 0) return Failed("fsync", folder, errno);
  return absl::OkStatus();
}

bool ArchiveFolder::Has(absl::string_view profile_id, int64_t finished_unix_ns) const {
  const std::string path =
      absl::StrCat(path_, "/", ArchiveDay(finished_unix_ns), "/", profile_id, kSuffix);
  return ::access(path.c_str(), F_OK) == 0;
}

ArchiveContents ArchiveFolder::Sweep(const ArchiveLimits& limits, int64_t now_unix_ns) const {
  const std::vector<Found> found = AllFiles(path_);
  ArchiveContents contents;
  for (const Found& file : found) contents.bytes += file.bytes;
  contents.files = found.size();
  const uint64_t most_aged = 1 + contents.files / kAgedShare;
  const std::string first_kept = ArchiveDay(now_unix_ns - limits.days * kNsPerDay);
  const auto max_bytes = static_cast<uint64_t>(std::max<int64_t>(0, limits.max_bytes));
  for (const Found& file : found) {
    const bool too_much = max_bytes > 0 && contents.bytes > max_bytes;
    const bool aged = limits.days > 0 && file.day < first_kept && contents.deleted < most_aged;
    if (!too_much && !aged) break;
    if (::unlink(file.path.c_str()) != 0) continue;
    ++contents.deleted;
    --contents.files;
    contents.bytes -= file.bytes;
    const std::string folder = fs::path(file.path).parent_path().string();
    ::rmdir(folder.c_str());  // its last file: nobody misses it
  }
  return contents;
}

}  // namespace perfd::daemon
