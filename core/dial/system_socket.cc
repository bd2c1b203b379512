#include "core/dial/system_socket.h"

#include <sys/stat.h>

namespace perfd {
namespace {

// A folder, not a link to one, that only its owner may change.
bool IsFolderOf(const std::string& path, uint32_t uid) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == uid &&
         (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

bool PlacedByRoot(const std::string& socket_path, uint32_t server_uid) {
  const size_t end = socket_path.rfind('/');
  if (end == std::string::npos || end == 0) return false;
  const std::string folder = socket_path.substr(0, end);
  const size_t parent_end = folder.rfind('/');
  if (parent_end == std::string::npos) return false;
  const std::string parent = parent_end == 0 ? "/" : folder.substr(0, parent_end);
  return IsFolderOf(folder, server_uid) && IsFolderOf(parent, 0);
}

}  // namespace perfd
