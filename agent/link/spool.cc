#include "agent/link/spool.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/link/small_file.h"
#include "agent/procfs/read_file.h"
#include "core/base/byte_reader.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/wire/wire.h"

namespace perfd::agent {
namespace {

constexpr size_t kMaxWindowBytes =
    (16 << 20) - 65536;  // the daemon's receive limit, less the message around it
constexpr char kSuffix[] = ".window";
constexpr char kLock[] = "/lock";
constexpr char kStreamId[] = "/stream-id";

std::string NewUuid() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) return "";
  std::string text;
  for (unsigned char byte : bytes) absl::StrAppendFormat(&text, "%02x", byte);
  return text;
}

uint32_t Checksum(absl::string_view bytes) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

absl::StatusOr<UniqueFd> LockDirectory(const std::string& directory) {
  const std::string path = absl::StrCat(directory, kLock);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("open ", path));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK)
    return absl::FailedPreconditionError(absl::StrCat(
        "the spool ", directory, " is used by another agent; stop it, or give --spool-dir"));
  return absl::ErrnoToStatus(errno,
                             absl::StrCat("lock ", path, "; give --spool-dir on a local disk"));
}

}  // namespace

Spool::Spool(std::string directory, uint64_t limit_bytes, UniqueFd lock)
    : directory_(std::move(directory)), lock_(std::move(lock)), limit_bytes_(limit_bytes) {}

absl::StatusOr<std::unique_ptr<Spool>> Spool::Create(const std::string& directory,
                                                     uint64_t limit_bytes) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("create the spool directory ", directory));
  struct stat facts {};
  if (::stat(directory.c_str(), &facts) != 0 || facts.st_uid != ::geteuid())
    return absl::PermissionDeniedError(absl::StrCat("the spool directory ", directory,
                                                    " belongs to somebody else; give --spool-dir"));
  std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  ASSIGN_OR_RETURN(UniqueFd lock, LockDirectory(directory));
  std::unique_ptr<Spool> spool(new Spool(directory, limit_bytes, std::move(lock)));
  RETURN_IF_ERROR(spool->Load());
  return spool;
}

std::string Spool::PathOf(uint64_t sequence) const {
  return absl::StrFormat("%s/%020d%s", directory_, sequence, kSuffix);
}

absl::Status Spool::Load() {
  MutexLock lock(&mutex_);
  const std::string id_path = absl::StrCat(directory_, kStreamId);
  stream_id_ = ReadWholeFile(id_path, 64).value_or("");
  if (stream_id_.size() != 32) {
    stream_id_ = NewUuid();
    RETURN_IF_ERROR(ReplaceSmallFile(id_path, stream_id_));
  }
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(directory_, error)) {
    uint64_t sequence = 0;
    if (file.path().extension() != kSuffix ||
        !absl::SimpleAtoi(file.path().stem().string(), &sequence))
      continue;
    next_ = std::max(next_, sequence + 1);
    auto bytes = ReadChecked(sequence);
    if (!bytes.ok() && !absl::IsDataLoss(bytes.status())) return bytes.status();
    v1::Window window;
    if (!bytes.ok() || !window.ParseFromString(*bytes) || window.stream_id() != stream_id_ ||
        !wire::FromProto(window).ok()) {
      SetAside(sequence);
      continue;
    }
    entries_[sequence] = {.bytes = bytes->size() + 4,
                          .duration_ns = window.duration_ns(),
                          .profile_id = window.profile_id()};
    total_bytes_ += bytes->size() + 4;
  }
  if (error)
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("read the spool directory ", directory_));
  return absl::OkStatus();
}

void Spool::ContinueAfter(uint64_t stored) {
  MutexLock lock(&mutex_);
  next_ = std::max(next_, stored + 1);
}

void Spool::SetLimit(uint64_t bytes) {
  MutexLock lock(&mutex_);
  limit_bytes_ = bytes;
}

absl::StatusOr<std::string> Spool::ReadChecked(uint64_t sequence) const {
  auto contents = ReadWholeFile(PathOf(sequence), kMaxWindowBytes + 4);
  if (!contents.ok()) return contents.status();
  ByteReader reader(std::as_bytes(std::span<const char>(*contents)));
  const auto stored = reader.Read<uint32_t>();
  if (!reader.ok()) return absl::DataLossError("the spool file is cut off");
  contents->erase(0, sizeof(stored));
  if (stored != Checksum(*contents))
    return absl::DataLossError("the spool file does not match its checksum");
  return contents;
}

void Spool::SetAside(uint64_t sequence) {
  const std::string path = PathOf(sequence);
  std::error_code error;
  std::filesystem::rename(path, absl::StrCat(path, ".damaged"), error);
  if (error)
    LogWarning("{} is lost ({}); its window is not sent", path, error.message());
  else
    LogWarning("{} is damaged; it is kept as .damaged and not sent", path);
  ++damaged_;
}

void Spool::Remove(uint64_t sequence) {
  auto it = entries_.find(sequence);
  if (it == entries_.end()) return;
  ::unlink(PathOf(sequence).c_str());
  total_bytes_ -= it->second.bytes;
  entries_.erase(it);
}

absl::StatusOr<uint64_t> Spool::Append(Window window) {
  MutexLock lock(&mutex_);
  const uint64_t sequence = next_;
  window.stream_id = stream_id_;
  window.sequence = sequence;
  const std::string profile_id = window.profile_id;
  const v1::Window message = wire::ToProto(window);
  // What the daemon cannot read it refuses by ending the stream: it would be sent again, and
  // refused again, for ever.
  if (const absl::Status readable = wire::FromProto(message).status(); !readable.ok())
    return absl::ResourceExhaustedError(
        absl::StrCat("the window cannot be sent: ", readable.message()));
  std::string bytes = message.SerializeAsString();
  if (bytes.size() > kMaxWindowBytes)
    return absl::ResourceExhaustedError(
        absl::StrCat("a window of ", bytes.size(), " bytes is over the limit of ", kMaxWindowBytes,
                     "; lower hotspots.frequency"));
  if (total_bytes_ + bytes.size() + 4 > limit_bytes_)
    return absl::ResourceExhaustedError(
        absl::StrCat("the spool ", directory_, " holds ", total_bytes_, " bytes, its limit is ",
                     limit_bytes_, " (spool.limit_mib); is the daemon away?"));
  const uint32_t checksum = Checksum(bytes);
  bytes.insert(0, reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  RETURN_IF_ERROR(ReplaceSmallFile(PathOf(sequence), bytes));
  entries_[sequence] = {
      .bytes = bytes.size(), .duration_ns = window.duration_ns, .profile_id = profile_id};
  total_bytes_ += bytes.size();
  ++next_;
  return sequence;
}

std::optional<SpooledWindow> Spool::Next(uint64_t after) {
  MutexLock lock(&mutex_);
  for (auto it = entries_.upper_bound(after); it != entries_.end();
       it = entries_.upper_bound(after)) {
    const uint64_t sequence = it->first;
    auto bytes = ReadChecked(sequence);
    if (bytes.ok()) return SpooledWindow{sequence, std::move(bytes).value()};
    // A file that somebody has removed must not hold up those behind it. Any other error (out of
    // descriptors, say): later.
    if (!absl::IsDataLoss(bytes.status()) && !absl::IsNotFound(bytes.status())) {
      LogWarning("{}", Text(bytes.status()));
      return std::nullopt;
    }
    SetAside(sequence);
    total_bytes_ -= it->second.bytes;
    entries_.erase(it);
  }
  return std::nullopt;
}

void Spool::Acknowledge(uint64_t sequence) {
  MutexLock lock(&mutex_);
  Remove(sequence);
}

void Spool::GiveUp(uint64_t sequence) {
  MutexLock lock(&mutex_);
  const auto it = entries_.find(sequence);
  if (it == entries_.end()) return;
  SetAside(sequence);
  total_bytes_ -= it->second.bytes;
  entries_.erase(it);
}

// Without its stream id the next agent begins a new stream, in which no sequence was ever used.
bool Spool::RemoveEmpty() {
  MutexLock lock(&mutex_);
  if (!entries_.empty()) return false;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(directory_, error)) {
    const std::string name = absl::StrCat("/", file.path().filename().string());
    if (name != kLock && name != kStreamId) return false;
  }
  if (error) return false;
  ::unlink(absl::StrCat(directory_, kStreamId).c_str());
  ::unlink(absl::StrCat(directory_, kLock).c_str());
  return ::rmdir(directory_.c_str()) == 0;
}

SpoolBacklog Spool::Waiting(const std::string& profile_id, uint64_t after) const {
  MutexLock lock(&mutex_);
  SpoolBacklog backlog;
  for (auto it = entries_.upper_bound(after); it != entries_.end(); ++it) {
    if (it->second.profile_id != profile_id) continue;
    backlog.covered_ns += it->second.duration_ns;
    backlog.last_sequence = it->first;
  }
  return backlog;
}

uint64_t Spool::windows() const {
  MutexLock lock(&mutex_);
  return entries_.size();
}

uint64_t Spool::bytes() const {
  MutexLock lock(&mutex_);
  return total_bytes_;
}

uint64_t Spool::damaged() const {
  MutexLock lock(&mutex_);
  return damaged_;
}

std::set<std::string> Spool::profiles() const {
  MutexLock lock(&mutex_);
  std::set<std::string> ids;
  for (const auto& [sequence, entry] : entries_) ids.insert(entry.profile_id);
  return ids;
}

}  // namespace perfd::agent
