// daemon/store/store_directory.h - the folder of the store: made, checked to be ours and local, and held by one daemon.
//
// Errors   kPermissionDenied: it or a folder above it is somebody else's, or others may write there
//          (core/files/own_folder.h). kFailedPrecondition: a network file system (WAL needs shared memory between processes of one host), or
//          another daemon holds the folder (its pid is named).
// Source   statfs(2), linux/magic.h and the headers of the file systems named there; sqlite.org/wal.html "all
//          processes using a database must be on the same host computer".
#ifndef DAEMON_STORE_STORE_DIRECTORY_H_
#define DAEMON_STORE_STORE_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace perfd::daemon {

// The name of the network file system with this statfs(2) magic, or nullptr for a local one.
const char* NetworkFileSystemName(uint64_t magic);

class StoreDirectory {
 public:
  // Makes `path` (mode 0700) when missing, checks it, and takes the lock `path`/perfd.lock.
  static absl::StatusOr<StoreDirectory> Hold(const std::string& path);

  const std::string& path() const { return path_; }
  std::string DatabasePath() const { return path_ + "/perfd.db"; }

 private:
  StoreDirectory(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_STORE_STORE_DIRECTORY_H_
