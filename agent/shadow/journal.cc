#include "agent/shadow/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "agent/procfs/read_file.h"
#include "agent/shadow/protocol.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {
namespace {

constexpr absl::string_view kFirstLine = "perfd injection 1\n";
constexpr absl::string_view kSuffix = ".injection";
constexpr size_t kMaxJournal = 16 << 20;

// FNV-1a, 64 bits: tells a torn file; it is no protection against a malicious one.
uint64_t Checksum(absl::string_view text) {
  uint64_t sum = 0xcbf29ce484222325;
  for (char c : text) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return sum;
}

std::string Hex(const std::vector<uint8_t>& bytes) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

bool Number(absl::string_view text, uint64_t* value) {
  return absl::SimpleHexAtoi(text, value);
}

// The fields of one line, the first is the key.
using Fields = std::vector<absl::string_view>;

bool ReadRange(const Fields& fields, PcRange* range) {
  return fields.size() == 3 && Number(fields[1], &range->start) && Number(fields[2], &range->end) &&
         range->start <= range->end;
}

std::vector<uint8_t> Bytes(absl::string_view hex) {
  std::string bytes = absl::HexStringToBytes(hex);
  return {bytes.begin(), bytes.end()};
}

bool IsHex(absl::string_view text) {
  return text.size() % 2 == 0 &&
         text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

// site HEADER ORIGINAL WRITTEN INODE MAJOR MINOR BIAS PATH LOOP; strings are hex
bool ReadSite(const Fields& fields, InjectedSite* site) {
  if (fields.size() != 10) return false;
  uint64_t major = 0, minor = 0;
  for (size_t i : std::array<size_t, 4>{2, 3, 8, 9}) {
    if (!IsHex(fields[i])) return false;
  }
  if (!Number(fields[1], &site->header) || !Number(fields[4], &site->text.inode) ||
      !Number(fields[5], &major) || !Number(fields[6], &minor) ||
      !Number(fields[7], &site->text.bias))
    return false;
  site->original = Bytes(fields[2]);
  site->written = Bytes(fields[3]);
  site->text.device_major = static_cast<uint32_t>(major);
  site->text.device_minor = static_cast<uint32_t>(minor);
  site->text.path = absl::HexStringToBytes(fields[8]);
  site->loop_id = absl::HexStringToBytes(fields[9]);
  return site->original.size() == site->written.size() && site->original.size() <= kMaxStolenBytes;
}

bool ReadLine(const Fields& fields, Injection* injection) {
  uint64_t number = 0;
  if (fields[0] == "process") {
    if (fields.size() != 4 || !Number(fields[1], &number) ||
        !Number(fields[2], &injection->start_ticks))
      return false;
    injection->pid = static_cast<int32_t>(number);
    injection->boot_id = std::string(fields[3]);
    return injection->pid > 0;
  }
  if (fields[0] == "region") return ReadRange(fields, &injection->region);
  if (fields[0] == "cache")
    return injection->caches.size() < kMaxCaches &&
           ReadRange(fields, &injection->caches.emplace_back());
  if (fields[0] == "site")
    return injection->sites.size() < kMaxSites &&
           ReadSite(fields, &injection->sites.emplace_back());
  if (fields[0] != "pair" || injection->sites.empty() || fields.size() != 3) return false;
  AddressPair pair;
  if (!Number(fields[1], &pair.original) || !Number(fields[2], &pair.copy)) return false;
  injection->sites.back().pairs.push_back(pair);
  return true;
}

absl::Status WriteAndSync(const std::string& path, absl::string_view text) {
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return FileError(errno, "create", path);
  while (!text.empty()) {
    ssize_t written = write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FileError(errno, "write", path);
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(file.get()) != 0) return FileError(errno, "sync", path);
  return absl::OkStatus();
}

absl::Status Create(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  return error ? FileError(error.value(), "create", directory) : absl::OkStatus();
}

absl::Status MakePrivate(int folder, const std::string& path) {
  struct stat info {};
  if (fstat(folder, &info) != 0) return FileError(errno, "look at", path);
  const bool own = info.st_uid == geteuid();
  if ((own || geteuid() == 0) && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
    if (own && fchmod(folder, S_IRWXU) != 0) return FileError(errno, "make private", path);
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      absl::StrCat(path, " can be written by others; give another folder for the journals"));
}

absl::Status SyncFolder(const std::string& path) {
  UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || fsync(folder.get()) != 0) return FileError(errno, "sync", path);
  return absl::OkStatus();
}

}  // namespace

std::string EncodeInjection(const Injection& injection) {
  std::string text(kFirstLine);
  absl::StrAppendFormat(&text, "process %x %x %s\n", injection.pid, injection.start_ticks,
                        injection.boot_id.empty() ? "-" : injection.boot_id);
  absl::StrAppendFormat(&text, "region %x %x\n", injection.region.start, injection.region.end);
  for (const PcRange& cache : injection.caches)
    absl::StrAppendFormat(&text, "cache %x %x\n", cache.start, cache.end);
  for (const InjectedSite& site : injection.sites) {
    absl::StrAppendFormat(&text, "site %x %s %s %x %x %x %x %s %s\n", site.header,
                          Hex(site.original), Hex(site.written), site.text.inode,
                          site.text.device_major, site.text.device_minor, site.text.bias,
                          absl::BytesToHexString(site.text.path),
                          absl::BytesToHexString(site.loop_id));
    for (const AddressPair& pair : site.pairs)
      absl::StrAppendFormat(&text, "pair %x %x\n", pair.original, pair.copy);
  }
  absl::StrAppendFormat(&text, "end %016x\n", Checksum(text));
  return text;
}

absl::StatusOr<Injection> DecodeInjection(absl::string_view text) {
  constexpr size_t kLastLine = sizeof("end 0123456789abcdef\n") - 1;
  if (!absl::StartsWith(text, kFirstLine) || text.size() < kFirstLine.size() + kLastLine ||
      text.back() != '\n')
    return absl::InvalidArgumentError("no injection journal");
  absl::string_view body = text.substr(0, text.size() - kLastLine);
  if (text.substr(body.size()) != absl::StrFormat("end %016x\n", Checksum(body)))
    return absl::InvalidArgumentError("cut off or changed: the checksum is wrong");
  body.remove_prefix(kFirstLine.size());
  Injection injection;
  for (absl::string_view line : absl::StrSplit(body, '\n', absl::SkipEmpty())) {
    const Fields fields = absl::StrSplit(line, ' ');
    if (!ReadLine(fields, &injection))
      return absl::InvalidArgumentError(absl::StrCat("bad line: ", line));
  }
  if (injection.pid <= 0) return absl::InvalidArgumentError("names no process");
  return injection;
}

std::string Journal::PathOf(const Injection& injection) const {
  return absl::StrCat(directory_, "/", injection.pid, "-", injection.start_ticks, kSuffix);
}

absl::StatusOr<UniqueFd> Journal::Lock() const {
  RETURN_IF_ERROR(Create(directory_));
  UniqueFd folder(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return FileError(errno, "open", directory_);
  RETURN_IF_ERROR(MakePrivate(folder.get(), directory_));
  if (flock(folder.get(), LOCK_EX | LOCK_NB) == 0) return folder;
  if (errno != EWOULDBLOCK) return FileError(errno, "lock", directory_);
  return absl::FailedPreconditionError(
      absl::StrCat("the journals in ", directory_, " belong to a perf-agent that runs"));
}

absl::StatusOr<Injection> Journal::Read(int32_t pid, uint64_t start_ticks) const {
  Injection wanted;
  wanted.pid = pid;
  wanted.start_ticks = start_ticks;
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(PathOf(wanted), kMaxJournal));
  return DecodeInjection(text);
}

absl::Status Journal::Write(const Injection& injection) const {
  RETURN_IF_ERROR(Create(directory_));
  const std::string path = PathOf(injection), beside = path + ".new";
  RETURN_IF_ERROR(WriteAndSync(beside, EncodeInjection(injection)));
  if (rename(beside.c_str(), path.c_str()) != 0) return FileError(errno, "rename", beside);
  return SyncFolder(directory_);
}

absl::Status Journal::Remove(const Injection& injection) const {
  const std::string path = PathOf(injection);
  if (unlink(path.c_str()) != 0)
    return errno == ENOENT ? absl::OkStatus() : FileError(errno, "remove", path);
  return SyncFolder(directory_);
}

std::vector<Injection> Journal::ReadAll(std::vector<std::string>* damaged) const {
  std::vector<Injection> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
    const std::string path = entry.path().string();
    if (!absl::EndsWith(path, kSuffix)) continue;
    auto text = ReadWholeFile(path, kMaxJournal);
    auto injection = text.ok() ? DecodeInjection(*text) : absl::StatusOr<Injection>(text.status());
    if (injection.ok()) {
      all.push_back(*std::move(injection));
    } else {
      damaged->push_back(absl::StrCat(path, ": ", injection.status().message()));
    }
  }
  return all;
}

}  // namespace perfd::agent
