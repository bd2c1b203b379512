#include "core/perfdata/recording_bytes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "core/files/own_file.h"

namespace perfd {
namespace {

class FileBytes final : public RecordingBytes {
 public:
  FileBytes(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  absl::StatusOr<size_t> Read(std::span<std::byte> to) override {
    ASSIGN_OR_RETURN(const size_t got, ReadAt(offset_, to));
    offset_ += got;
    return got;
  }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> to) override {
    size_t got = 0;
    while (got < to.size()) {
      // Beyond what an offset can be is beyond the end.
      if (offset > INT64_MAX - to.size()) break;
      const ssize_t n =
          ::pread(fd_.get(), to.data() + got, to.size() - got, static_cast<off_t>(offset + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return FileStatus(errno, "read", path_);
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    return got;
  }

  absl::Status SeekTo(uint64_t offset) override {
    offset_ = offset;
    return absl::OkStatus();
  }

 private:
  UniqueFd fd_;
  std::string path_;
  uint64_t offset_ = 0;
};

class PipeBytes final : public RecordingBytes {
 public:
  // `begun`: it is somebody's standard input, and may take its time.
  PipeBytes(UniqueFd fd, std::string path, bool begun)
      : fd_(std::move(fd)), path_(std::move(path)), begun_(begun) {}

  absl::StatusOr<size_t> Read(std::span<std::byte> to) override {
    size_t got = 0;
    while (got < to.size()) {
      pollfd ready{fd_.get(), POLLIN, 0};
      // Whoever has begun to write writes when there is something to record, and ends.
      const int polled = ::poll(&ready, 1, begun_ ? -1 : kPipeWaitMs);
      if (polled < 0 && errno == EINTR) continue;
      if (polled < 0) return FileStatus(errno, "poll", path_);
      if (polled == 0)
        return absl::DeadlineExceededError(absl::StrCat(path_, " has brought nothing in ",
                                                        kPipeWaitMs / 1000,
                                                        " s: is there anybody who writes it?"));
      const ssize_t n = ::read(fd_.get(), to.data() + got, to.size() - got);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n < 0) return FileStatus(errno, "read", path_);
      if (n == 0) break;
      begun_ = true;
      got += static_cast<size_t>(n);
    }
    return got;
  }

  absl::StatusOr<size_t> ReadAt(uint64_t /*offset*/, std::span<std::byte> /*to*/) override {
    return NotHere();
  }
  absl::Status SeekTo(uint64_t /*offset*/) override { return NotHere(); }

 private:
  absl::Status NotHere() const {
    return absl::FailedPreconditionError(
        absl::StrCat(path_,
                     " is a pipe, and what comes out of it was recorded into a file: name the "
                     "file itself, or record with `perf record -o -`"));
  }

  UniqueFd fd_;
  std::string path_;
  bool begun_;
};

class MemoryBytes final : public RecordingBytes {
 public:
  explicit MemoryBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  absl::StatusOr<size_t> Read(std::span<std::byte> to) override {
    ASSIGN_OR_RETURN(const size_t got, ReadAt(offset_, to));
    offset_ += got;
    return got;
  }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> to) override {
    if (offset >= bytes_.size()) return 0;
    const std::span<const std::byte> rest = bytes_.subspan(offset);
    const size_t got = std::min(rest.size(), to.size());
    std::copy_n(rest.begin(), got, to.begin());
    return got;
  }

  absl::Status SeekTo(uint64_t offset) override {
    offset_ = offset;
    return absl::OkStatus();
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t offset_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RecordingBytes>> OpenRecordingBytes(const std::string& path) {
  const bool standard_input = path == "-";
  // A FIFO that nobody writes opens at once, and Read says so.
  UniqueFd fd(standard_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                             : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return FileStatus(errno, "open", path);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return FileStatus(errno, "stat", path);
  if (S_ISREG(facts.st_mode)) return std::make_unique<FileBytes>(std::move(fd), path);
  if (S_ISFIFO(facts.st_mode) || (standard_input && S_ISSOCK(facts.st_mode)))
    return std::make_unique<PipeBytes>(std::move(fd), standard_input ? "standard input" : path,
                                       standard_input);
  if (S_ISDIR(facts.st_mode))
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     " is a folder: recordings of `perf record --threads` are not read; record "
                     "without it"));
  return absl::InvalidArgumentError(absl::StrCat(path, " is neither a file nor a pipe"));
}

std::unique_ptr<RecordingBytes> BytesInMemory(std::span<const std::byte> bytes) {
  return std::make_unique<MemoryBytes>(bytes);
}

}  // namespace perfd
