// daemon/archive/archive_folder.h - the folder of finished profiles: FOLDER/2026/11/22/p-000042.json, by the day they ended.
//
// Shape    Write puts a file there whole or not at all (a hidden file, fsync, rename). Sweep deletes what is too old or too
//          much, oldest first, and never touches a file that is not named as Write names them.
// Units    days of UTC.
// Errors   Write: kResourceExhausted (full), kPermissionDenied, kFailedPrecondition (a path is in the way).
// Limits   Sweep looks at kMaxFiles at most; for their age at most one in kAgedShare of all go at a time: a clock that is
//          wrong for a while does not empty the folder. New folders have mode 0750, files 0640: setgid on FOLDER lets a
//          group read.
// Threads  thread-compatible.
// Source   rename(2) "atomically replaced"; fsync(2) on the directory for the name itself.
#ifndef DAEMON_ARCHIVE_ARCHIVE_FOLDER_H_
#define DAEMON_ARCHIVE_ARCHIVE_FOLDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace perfd::daemon {

struct ArchiveLimits {
  int64_t days = 0;       // 0: for ever
  int64_t max_bytes = 0;  // 0: no limit
};

struct ArchiveContents {
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t deleted = 0;
};

class ArchiveFolder {
 public:
  static constexpr size_t kMaxFiles = 1'000'000;
  static constexpr uint64_t kAgedShare = 16;

  explicit ArchiveFolder(std::string path) : path_(std::move(path)) {}

  absl::Status Write(absl::string_view profile_id, int64_t finished_unix_ns,
                     absl::string_view text) const;
  bool Has(absl::string_view profile_id, int64_t finished_unix_ns) const;
  ArchiveContents Sweep(const ArchiveLimits& limits, int64_t now_unix_ns) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// "2026/11/22" in UTC.
std::string ArchiveDay(int64_t unix_ns);

}  // namespace perfd::daemon

#endif  // DAEMON_ARCHIVE_ARCHIVE_FOLDER_H_
