#include "daemon/service/doors/unix_door.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

constexpr int kBacklog = 1024;
constexpr mode_t kSocketMode = 0666;

std::string Errno() {
  return std::strerror(errno);
}

absl::StatusOr<sockaddr_un> Address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("--socket ", path, ": the path must be 1..",
                                                   sizeof(address.sun_path) - 1, " bytes"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* Generic(const sockaddr_un& address) {
  return static_cast<const sockaddr*>(static_cast<const void*>(&address));
}

absl::Status MakeFolder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  if (std::filesystem::exists(folder, error)) return absl::OkStatus();
  std::filesystem::create_directories(folder, error);
  if (error || ::chmod(folder.c_str(), 0755) != 0) {
    return absl::PermissionDeniedError(absl::StrCat("cannot make ", folder.string(), ": ",
                                                    error ? error.message() : Errno(),
                                                    "; choose another --socket"));
  }
  return absl::OkStatus();
}

// A socket nobody answers on is left over from a daemon that was killed.
absl::Status RemoveStale(const std::string& path, const sockaddr_un& address) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " exists and is not a socket; choose another --socket"));
  }
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return absl::ResourceExhaustedError(absl::StrCat("socket: ", Errno()));
  if (::connect(probe.get(), Generic(address), sizeof(address)) == 0 || errno != ECONNREFUSED) {
    return absl::AlreadyExistsError(
        absl::StrCat("another perfd answers on ", path, "; stop it or choose another --socket"));
  }
  if (::unlink(path.c_str()) != 0)
    return absl::PermissionDeniedError(absl::StrCat("unlink ", path, ": ", Errno()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixDoor>> UnixDoor::Open(const std::string& path) {
  ASSIGN_OR_RETURN(const sockaddr_un address, Address(path));
  RETURN_IF_ERROR(MakeFolder(path));
  RETURN_IF_ERROR(RemoveStale(path, address));
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return absl::ResourceExhaustedError(absl::StrCat("socket: ", Errno()));
  if (::bind(listener.get(), Generic(address), sizeof(address)) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("bind ", path, ": ", Errno(), "; choose another --socket"));
  }
  if (::chmod(path.c_str(), kSocketMode) != 0 || ::listen(listener.get(), kBacklog) != 0) {
    return absl::PermissionDeniedError(absl::StrCat("listen on ", path, ": ", Errno()));
  }
  return std::unique_ptr<UnixDoor>(new UnixDoor(path, std::move(listener)));
}

UnixDoor::~UnixDoor() {
  Stop();
}

absl::Status UnixDoor::Serve(OnConnection on_connection) {
  return acceptor_.Start(
      {listener_.get()}, [on_connection = std::move(on_connection)](UniqueFd connection) {
        ucred peer{};
        socklen_t size = sizeof(peer);
        if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
            size != sizeof(peer))
          return LogError("SO_PEERCRED: {}; the connection is closed", Errno());
        on_connection(std::move(connection), peer.uid);
      });
}

void UnixDoor::Stop() {
  acceptor_.Stop();
  // Once: what is there later may be another daemon's.
  if (!listener_.valid()) return;
  ::unlink(path_.c_str());
  listener_.Reset();
}

std::vector<DoctorCheck> UnixDoor::Checks() const {
  struct stat info {};
  DoctorCheck check{.name = "socket",
                    .ok = false,
                    .optional = false,
                    .found = path_ + " is gone",
                    .fix = "restart perfd"};
  if (::stat(path_.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) {
    check.ok = (info.st_mode & 0777) == kSocketMode;
    check.found = absl::StrFormat("%s, mode %04o", path_, info.st_mode & 0777);
    check.fix = check.ok ? "" : absl::StrFormat("chmod %04o %s", kSocketMode, path_);
  }
  return {check};
}

}  // namespace perfd::daemon
