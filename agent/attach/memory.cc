#include "agent/attach/memory.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/procfs/open_as_owner.h"
#include "agent/procfs/procfs.h"
#include "agent/procfs/read_file.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// Size 0 without an error: the address space has no users left (the process has ended or executed another program).
absl::Status Failure(absl::string_view operation, uint64_t address, ssize_t size, int error) {
  const std::string text = absl::StrFormat("%s memory at %#x", operation, address);
  if (size == 0) return absl::NotFoundError(absl::StrCat(text, ": the address space is gone"));
  if (error == EIO || error == EFAULT)
    return absl::OutOfRangeError(absl::StrCat(text, ": not mapped"));
  return FileError(error, text, "/proc/PID/mem");
}

}  // namespace

absl::StatusOr<Memory> Memory::Open(int32_t pid, uint64_t start_ticks) {
  const std::string path = absl::StrCat("/proc/", pid, "/mem");
  UniqueFd file = OpenAsOwner(path, O_RDWR | O_CLOEXEC);
  if (!file.valid()) return FileError(errno, "open", path);
  // After the open: a file of another process under this pid is found out.
  ASSIGN_OR_RETURN(const uint64_t found, ProcFs().StartTicks(pid));
  if (found != start_ticks)
    return absl::NotFoundError(absl::StrCat("process ", pid, " is another one than was named"));
  return Memory(pid, std::move(file));
}

absl::Status Memory::Read(uint64_t address, std::span<uint8_t> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(file_.get(), out.data(), out.size(), static_cast<off_t>(address));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Failure("read", address, got, errno);
    out = out.subspan(static_cast<size_t>(got));
    address += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint8_t>> Memory::Read(uint64_t address, size_t size) const {
  std::vector<uint8_t> bytes(size);
  RETURN_IF_ERROR(Read(address, bytes));
  return bytes;
}

absl::Status Memory::Write(uint64_t address, std::span<const uint8_t> bytes) const {
  while (!bytes.empty()) {
    const ssize_t put =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(address));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return Failure("write", address, put, errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
    address += static_cast<uint64_t>(put);
  }
  return absl::OkStatus();
}

size_t Memory::ReadSome(uint64_t address, std::span<uint8_t> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(file_.get(), out.data() + done, out.size() - done,
                                static_cast<off_t>(address + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace perfd::agent
