// core/files/own_folder.h - a folder that is ours, by its descriptor: nobody else can change what is in it or put another in its
// place.
//
// Shape    Make or Open walks down from / without following links blindly, and keeps the folder's descriptor. Everything after
//          that is relative to it: what happens to the path later does not matter.
// Safety   every folder and link on the way belongs to root or to us, and only its owner may write there, or it is sticky
//          (/tmp). The folder itself is ours. A file is believed when it belongs to root or to us and only its owner may
//          write it, looked at by the descriptor that it is read from.
// Errors   kPermissionDenied: somebody else's, or others may write there, with the line that mends it; kNotFound;
//          kOutOfRange: a longer file; kResourceExhausted: disk full, out of descriptors; kUnavailable: the disk refuses.
// Threads  thread-safe between different names.
// Source   open(2) O_PATH, O_NOFOLLOW; path_resolution(7); rename(2), fsync(2).
#ifndef CORE_FILES_OWN_FOLDER_H_
#define CORE_FILES_OWN_FOLDER_H_

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/unique_fd.h"

namespace perfd {

class OwnFolder {
 public:
  // Of a folder that is not there.
  static absl::StatusOr<OwnFolder> Open(const std::string& path);
  // Makes what is missing: the folder with mode 0700, those above it with 0755 less the umask.
  static absl::StatusOr<OwnFolder> Make(const std::string& path);

  const std::string& path() const { return path_; }
  int fd() const { return folder_.get(); }
  // "FOLDER/name", for messages.
  std::string PathOf(absl::string_view name) const;
  // Mode 0700.
  absl::Status MakePrivate() const;

  absl::StatusOr<std::vector<std::string>> Names() const;
  absl::StatusOr<std::string> Read(const std::string& name, size_t limit) const;
  // Opens for reading and writing, makes it with mode 0600 when it is missing; believed as Read does.
  absl::StatusOr<UniqueFd> OpenFile(const std::string& name) const;
  // The whole of a file, on the disk when this returns: written beside it, synced, renamed, the folder synced. After a crash
  // there is the old one or the new one. Mode 0600.
  // kContents: the newest may be missing after a crash, but none is cut; half the cost.
  enum class Synced { kContents, kContentsAndName };
  absl::Status Replace(const std::string& name, absl::string_view contents,
                       Synced synced = Synced::kContentsAndName) const;
  absl::Status Rename(const std::string& from, const std::string& to) const;
  // What is not there is no error.
  absl::Status Remove(const std::string& name) const;
  absl::Status Sync() const;
  // A descriptor that holds it (flock) as long as it is open; kFailedPrecondition: somebody holds it.
  absl::StatusOr<UniqueFd> Lock() const;
  // Takes the folder away; only an empty one goes.
  absl::Status RemoveFolder() const;

 private:
  OwnFolder(std::string path, UniqueFd parent, std::string name, UniqueFd folder)
      : path_(std::move(path)),
        parent_(std::move(parent)),
        name_(std::move(name)),
        folder_(std::move(folder)) {}
  static absl::StatusOr<OwnFolder> Walk(const std::string& path, bool make);

  std::string path_;
  UniqueFd parent_;
  std::string name_;  // in parent_
  UniqueFd folder_;
};

}  // namespace perfd

#endif  // CORE_FILES_OWN_FOLDER_H_
