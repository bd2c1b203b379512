#include "core/files/own_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <deque>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/files/own_file.h"

namespace perfd {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel: MAXSYMLINKS of include/linux/namei.h
constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

absl::Status CheckOwner(const struct stat& facts, const std::string& path) {
  if (facts.st_uid == 0 || facts.st_uid == ::geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(path, " belongs to uid ", facts.st_uid, ", neither to root nor to us"));
}

// Whoever may write a folder on the way may put another in the place of what follows; in a sticky one only of what is theirs, and
// what follows is root's or ours. Source: inode(7) S_ISVTX.
absl::Status CheckOnTheWay(const struct stat& facts, const std::string& path) {
  RETURN_IF_ERROR(CheckOwner(facts, path));
  if ((facts.st_mode & kWritableByOthers) == 0 || (facts.st_mode & S_ISVTX) != 0)
    return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(path, " can be written by others: chmod go-w ", path));
}

absl::Status CheckOwn(const struct stat& facts, const std::string& path) {
  if (facts.st_uid != ::geteuid())
    return absl::PermissionDeniedError(
        absl::StrCat(path, " belongs to uid ", facts.st_uid, ", not to uid ", ::geteuid()));
  if ((facts.st_mode & kWritableByOthers) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      path, " can be written by others: look at what is in it, then chmod go-w ", path));
}

struct Place {
  UniqueFd folder;
  std::string path = "/";
  UniqueFd parent;
  std::string name;  // in parent
};

// Goes down one part of a path at a time.
class Walker {
 public:
  Walker(absl::string_view path, bool make) : make_(make) { Push(path); }

  absl::StatusOr<Place> Walk() {
    RETURN_IF_ERROR(ToRoot());
    while (!parts_.empty()) RETURN_IF_ERROR(Step());
    return std::move(place_);
  }

 private:
  absl::Status Step() {
    const std::string name = std::move(parts_.front());
    parts_.pop_front();
    const std::string path = absl::StrCat(place_.path == "/" ? "" : place_.path, "/", name);
    ASSIGN_OR_RETURN(UniqueFd next, OpenPart(name, path));
    struct stat facts {};
    if (::fstat(next.get(), &facts) != 0) return FileStatus(errno, "look at", path);
    if (S_ISLNK(facts.st_mode)) return Follow(next, facts, path);
    if (!S_ISDIR(facts.st_mode)) return FileStatus(ENOTDIR, "open", path);
    if (!parts_.empty()) RETURN_IF_ERROR(CheckOnTheWay(facts, path));
    UniqueFd parent = std::exchange(place_.folder, std::move(next));
    place_ = {std::move(place_.folder), path, std::move(parent), name};
    return absl::OkStatus();
  }
  void Push(absl::string_view path) {
    std::vector<std::string> parts = absl::StrSplit(path, '/');
    std::erase_if(parts, [](const std::string& part) { return part.empty() || part == "."; });
    parts_.insert(parts_.begin(), parts.begin(), parts.end());
  }
  absl::Status ToRoot() {
    place_ = Place();
    place_.folder = UniqueFd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat facts {};
    if (!place_.folder.valid() || ::fstat(place_.folder.get(), &facts) != 0)
      return FileStatus(errno, "open", "/");
    return CheckOnTheWay(facts, "/");
  }
  absl::StatusOr<UniqueFd> OpenPart(const std::string& name, const std::string& path) {
    constexpr int kFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    const int here = place_.folder.get();
    UniqueFd fd(::openat(here, name.c_str(), kFlags));
    if (fd.valid()) return fd;
    if (errno != ENOENT || !make_) return FileStatus(errno, "open", path);
    if (::mkdirat(here, name.c_str(), parts_.empty() ? 0700 : 0755) != 0 && errno != EEXIST)
      return FileStatus(errno, "make the folder", path);
    fd = UniqueFd(::openat(here, name.c_str(), kFlags));
    if (!fd.valid()) return FileStatus(errno, "open", path);
    return fd;
  }
  absl::Status Follow(const UniqueFd& link, const struct stat& facts, const std::string& path) {
    RETURN_IF_ERROR(CheckOwner(facts, path));
    std::array<char, PATH_MAX> target;
    const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
    if (size < 0) return FileStatus(errno, "read the link", path);
    if (++links_ > kMaxLinks || size == static_cast<ssize_t>(target.size()))
      return FileStatus(ELOOP, "follow", path);
    const absl::string_view text(target.data(), static_cast<size_t>(size));
    Push(text);
    return absl::StartsWith(text, "/") ? ToRoot() : absl::OkStatus();
  }

  const bool make_;
  std::deque<std::string> parts_;  // still to go
  Place place_;
  int links_ = 0;
};

struct CloseDir {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

absl::Status WriteAndSync(int fd, absl::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t put = ::write(fd, contents.data(), contents.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return FileStatus(put == 0 ? ENOSPC : errno, "write", path);
    contents.remove_prefix(static_cast<size_t>(put));
  }
  if (::fsync(fd) != 0) return FileStatus(errno, "sync", path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OwnFolder> OwnFolder::Walk(const std::string& path, bool make) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  if (error || path.empty()) return FileStatus(error ? error.value() : ENOENT, "find", path);
  // Mounts what is mounted on demand (autofs), which O_PATH does not: open(2). Nothing is believed of it.
  struct stat facts {};
  static_cast<void>(::stat(absolute.c_str(), &facts));
  ASSIGN_OR_RETURN(Place place, Walker(absolute, make).Walk());
  UniqueFd folder(::openat(place.folder.get(), ".", kFolderFlags));
  if (!folder.valid() || ::fstat(folder.get(), &facts) != 0)
    return FileStatus(errno, "open", absolute);
  RETURN_IF_ERROR(CheckOwn(facts, absolute));
  return OwnFolder(absolute, std::move(place.parent), place.name, std::move(folder));
}

absl::StatusOr<OwnFolder> OwnFolder::Open(const std::string& path) {
  return Walk(path, false);
}

absl::StatusOr<OwnFolder> OwnFolder::Make(const std::string& path) {
  return Walk(path, true);
}

std::string OwnFolder::PathOf(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

absl::Status OwnFolder::MakePrivate() const {
  if (::fchmod(fd(), S_IRWXU) != 0) return FileStatus(errno, "make private", path_);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> OwnFolder::Names() const {
  UniqueFd again(::openat(fd(), ".", kFolderFlags));
  const std::unique_ptr<DIR, CloseDir> folder(again.valid() ? ::fdopendir(again.get()) : nullptr);
  if (folder == nullptr) return FileStatus(errno, "list", path_);
  static_cast<void>(again.Release());  // the stream closes it
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    const absl::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return FileStatus(errno, "list", path_);
  return names;
}

absl::StatusOr<std::string> OwnFolder::Read(const std::string& name, size_t limit) const {
  // A pipe in its place must not stop us.
  const UniqueFd file(
      ::openat(fd(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat facts {};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0)
    return FileStatus(errno, "open", PathOf(name));
  RETURN_IF_ERROR(CheckBelieved(facts, PathOf(name)));
  return ReadAll(file.get(), limit, PathOf(name));
}

absl::StatusOr<UniqueFd> OwnFolder::OpenFile(const std::string& name) const {
  UniqueFd file(::openat(fd(), name.c_str(),
                         O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  struct stat facts {};
  if (!file.valid() || ::fstat(file.get(), &facts) != 0)
    return FileStatus(errno, "open", PathOf(name));
  RETURN_IF_ERROR(CheckBelieved(facts, PathOf(name)));
  return file;
}

absl::Status OwnFolder::Replace(const std::string& name, absl::string_view contents,
                                Synced synced) const {
  const std::string beside = name + ".new";
  // Of a writer that was killed; a new one is nobody else's, and no link.
  if (::unlinkat(fd(), beside.c_str(), 0) != 0 && errno != ENOENT)
    return FileStatus(errno, "remove", PathOf(beside));
  absl::Status status;
  {
    const UniqueFd file(
        ::openat(fd(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.valid()) return FileStatus(errno, "create", PathOf(beside));
    status = WriteAndSync(file.get(), contents, PathOf(beside));
  }
  if (status.ok()) status = Rename(beside, name);
  if (!status.ok()) {
    ::unlinkat(fd(), beside.c_str(), 0);
    return status;
  }
  return synced == Synced::kContentsAndName ? Sync() : absl::OkStatus();
}

absl::Status OwnFolder::Rename(const std::string& from, const std::string& to) const {
  if (::renameat(fd(), from.c_str(), fd(), to.c_str()) != 0)
    return FileStatus(errno, "rename", PathOf(from));
  return absl::OkStatus();
}

absl::Status OwnFolder::Remove(const std::string& name) const {
  if (::unlinkat(fd(), name.c_str(), 0) != 0 && errno != ENOENT)
    return FileStatus(errno, "remove", PathOf(name));
  return absl::OkStatus();
}

absl::Status OwnFolder::Sync() const {
  if (::fsync(fd()) != 0) return FileStatus(errno, "sync", path_);
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> OwnFolder::Lock() const {
  UniqueFd held(::openat(fd(), ".", kFolderFlags));
  if (!held.valid()) return FileStatus(errno, "open", path_);
  if (::flock(held.get(), LOCK_EX | LOCK_NB) == 0) return held;
  if (errno != EWOULDBLOCK) return FileStatus(errno, "lock", path_);
  return absl::FailedPreconditionError(absl::StrCat(path_, " is held by another process"));
}

absl::Status OwnFolder::RemoveFolder() const {
  if (::unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR) != 0)
    return FileStatus(errno, "remove", path_);
  return absl::OkStatus();
}

}  // namespace perfd
