#include "daemon/store/store_directory.h"

#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/files/own_folder.h"

namespace perfd::daemon {
namespace {

struct NamedMagic {
  uint64_t magic;
  const char* name;
};

constexpr std::array kNetworkFileSystems = {
    NamedMagic{0x6969, "NFS"},          NamedMagic{0xFF534D42, "CIFS"},
    NamedMagic{0xFE534D42, "SMB2"},     NamedMagic{0x517B, "SMB"},
    NamedMagic{0x0BD00BD0, "Lustre"},   NamedMagic{0x47504653, "GPFS"},
    NamedMagic{0x19830326, "BeeGFS"},   NamedMagic{0x00C36400, "Ceph"},
    NamedMagic{0x5346414F, "AFS"},      NamedMagic{0x6B414653, "AFS"},
    NamedMagic{0x01021997, "9P"},       NamedMagic{0x73757245, "Coda"},
    NamedMagic{0x20030528, "OrangeFS"}, NamedMagic{0xAAD7AAEA, "PanFS"},
    NamedMagic{0x01161970, "GFS2"},     NamedMagic{0x7461636F, "OCFS2"},
};

std::string Errno() {
  return std::strerror(errno);
}

// Whoever may put files there may put a database there that perfd believes.
absl::StatusOr<OwnFolder> MakeFolder(const std::string& path) {
  auto folder = OwnFolder::Make(path);
  if (folder.ok()) return folder;
  return absl::PermissionDeniedError(absl::StrCat("the store folder ", path,
                                                  " is not used: ", folder.status().message(),
                                                  "; or choose another with --store-dir"));
}

absl::Status CheckLocal(const std::string& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) {
    return absl::InternalError(absl::StrCat("statfs ", path, ": ", Errno()));
  }
  const char* name = NetworkFileSystemName(static_cast<uint64_t>(info.f_type) & 0xFFFFFFFF);
  if (name == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the store folder ", path, " is on ", name,
                   ": the database needs a local file system; choose another with --store-dir"));
}

std::string HolderPid(int fd) {
  char text[32] = {};
  const ssize_t size = ::pread(fd, text, sizeof(text) - 1, 0);
  if (size <= 0) return "unknown";
  return std::string(text, strcspn(text, "\n"));
}

absl::StatusOr<UniqueFd> TakeLock(const OwnFolder& folder) {
  ASSIGN_OR_RETURN(UniqueFd fd, folder.OpenFile("perfd.lock"));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("another perfd (pid ", HolderPid(fd.get()),
                     ") uses this store; stop it or choose another --store-dir"));
  }
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    // The pid is only for people; the lock itself is held.
  }
  return fd;
}

}  // namespace

const char* NetworkFileSystemName(uint64_t magic) {
  for (const NamedMagic& entry : kNetworkFileSystems) {
    if (entry.magic == magic) return entry.name;
  }
  return nullptr;
}

absl::StatusOr<StoreDirectory> StoreDirectory::Hold(const std::string& path) {
  ASSIGN_OR_RETURN(const OwnFolder folder, MakeFolder(path));
  RETURN_IF_ERROR(CheckLocal(path));
  ASSIGN_OR_RETURN(UniqueFd lock, TakeLock(folder));
  StoreDirectory directory(path, std::move(lock));
  // SQLite would make it readable to all; its log files take the mode of the database.
  RETURN_IF_ERROR(folder.OpenFile("perfd.db").status());
  return directory;
}

}  // namespace perfd::daemon
