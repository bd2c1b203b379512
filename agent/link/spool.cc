#include "agent/link/spool.h"

#include <sys/file.h>
#include <sys/random.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
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
constexpr char kAside[] = ".damaged";
constexpr char kLock[] = "lock";
constexpr char kStreamId[] = "stream-id";
constexpr size_t kStreamIdBytes = 32;
constexpr size_t kChecksumBytes = sizeof(uint32_t);

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

bool IsStreamId(absl::string_view text) {
  return text.size() == kStreamIdBytes &&
         text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

std::string NameOf(uint64_t sequence) {
  return absl::StrFormat("%020d%s", sequence, kSuffix);
}

std::optional<uint64_t> SequenceOf(absl::string_view name) {
  uint64_t sequence = 0;
  if (!absl::ConsumeSuffix(&name, kSuffix) || !absl::SimpleAtoi(name, &sequence))
    return std::nullopt;
  return sequence;
}

absl::StatusOr<OwnFolder> MakeFolder(const std::string& directory) {
  auto folder = OwnFolder::Make(directory);
  if (folder.ok()) {
    RETURN_IF_ERROR(folder->MakePrivate());
    return folder;
  }
  return absl::Status(folder.status().code(),
                      absl::StrCat("the spool ", directory, " is not used: ",
                                   folder.status().message(), "; or give another --spool-dir"));
}

// A file, and not the folder: the home of a user may be on NFS, which locks no folders for all nodes.
absl::StatusOr<UniqueFd> LockFolder(const OwnFolder& folder) {
  ASSIGN_OR_RETURN(UniqueFd fd, folder.OpenFile(kLock));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK)
    return absl::FailedPreconditionError(absl::StrCat(
        "the spool ", folder.path(), " is used by another agent; stop it, or give --spool-dir"));
  return absl::ErrnoToStatus(
      errno, absl::StrCat("lock ", folder.PathOf(kLock), "; give --spool-dir on a local disk"));
}

// What stays as it is however often it is read: damaged, too long, no file, or not ours.
bool IsUnusable(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsPermissionDenied(status) ||
         absl::IsFailedPrecondition(status) || absl::IsOutOfRange(status);
}

}  // namespace

Spool::Spool(OwnFolder folder, uint64_t limit_bytes, SpoolUsers users, UniqueFd lock)
    : folder_(std::move(folder)),
      users_(users),
      lock_(std::move(lock)),
      limit_bytes_(limit_bytes) {}

absl::StatusOr<std::unique_ptr<Spool>> Spool::Create(const std::string& directory,
                                                     uint64_t limit_bytes, SpoolUsers users) {
  ASSIGN_OR_RETURN(OwnFolder folder, MakeFolder(directory));
  ASSIGN_OR_RETURN(UniqueFd lock, LockFolder(folder));
  std::unique_ptr<Spool> spool(new Spool(std::move(folder), limit_bytes, users, std::move(lock)));
  RETURN_IF_ERROR(spool->Load());
  return spool;
}

absl::Status Spool::Load() {
  MutexLock lock(&mutex_);
  ASSIGN_OR_RETURN(const std::vector<std::string> names, folder_.Names());
  std::map<uint64_t, Found> all;
  for (const std::string& name : names) {
    const std::optional<uint64_t> sequence = SequenceOf(name);
    if (!sequence.has_value()) continue;
    next_ = std::max(next_, *sequence + 1);
    auto found = ReadFound(*sequence);
    if (found.ok())
      all[*sequence] = *std::move(found);
    else if (IsUnusable(found.status()))
      SetAside(*sequence, found.status());
    else
      return found.status();
  }
  RETURN_IF_ERROR(ChooseStream(all));
  for (auto& [sequence, found] : all) {
    if (found.stream_id != stream_id_) {
      SetAside(sequence, absl::DataLossError("it is of another stream"));
      continue;
    }
    use_.Add(found.entry);
    entries_[sequence] = std::move(found.entry);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Spool::ReadStreamId() const {
  ASSIGN_OR_RETURN(std::string id, folder_.Read(kStreamId, kStreamIdBytes));
  if (IsStreamId(id)) return id;
  return absl::DataLossError(absl::StrCat(folder_.PathOf(kStreamId), " is cut off or changed"));
}

// Every window names its stream under its checksum: one that waits knows what a lost file said.
absl::Status Spool::ChooseStream(const std::map<uint64_t, Found>& found) {
  auto known = ReadStreamId();
  if (known.ok()) {
    stream_id_ = *std::move(known);
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(known.status())) {
    if (!IsUnusable(known.status())) return known.status();
    LogWarning("{}; it is kept as {}, and the stream goes on as the windows say",
               Text(known.status()), kAside);
    RETURN_IF_ERROR(folder_.Rename(kStreamId, absl::StrCat(kStreamId, kAside)));
  }
  stream_id_ = found.empty() ? NewUuid() : found.rbegin()->second.stream_id;
  return folder_.Replace(kStreamId, stream_id_);
}

absl::StatusOr<Spool::Found> Spool::ReadFound(uint64_t sequence) const {
  ASSIGN_OR_RETURN(const std::string bytes, ReadChecked(sequence));
  v1::Window window;
  if (!window.ParseFromString(bytes) || !IsStreamId(window.stream_id()) ||
      !wire::FromProto(window).ok())
    return absl::DataLossError("it holds no window");
  return Found{.entry = {.bytes = bytes.size() + kChecksumBytes,
                         .duration_ns = window.duration_ns(),
                         .profile_id = window.profile_id(),
                         .uid = window.ranks().empty() ? 0 : window.ranks(0).uid()},
               .stream_id = window.stream_id()};
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
  auto contents = folder_.Read(NameOf(sequence), kMaxWindowBytes + kChecksumBytes);
  if (!contents.ok()) return contents.status();
  ByteReader reader(std::as_bytes(std::span<const char>(*contents)));
  const auto stored = reader.Read<uint32_t>();
  if (!reader.ok()) return absl::DataLossError("it is cut off");
  contents->erase(0, sizeof(stored));
  if (stored != Checksum(*contents)) return absl::DataLossError("it does not match its checksum");
  return contents;
}

void Spool::SetAside(uint64_t sequence, const absl::Status& why) {
  const std::string name = NameOf(sequence);
  const absl::Status kept = folder_.Rename(name, absl::StrCat(name, kAside));
  if (kept.ok())
    LogWarning("{} is kept as {} and not sent: {}", folder_.PathOf(name), kAside, Text(why));
  else
    LogWarning("{} is lost ({}); its window is not sent", folder_.PathOf(name), Text(kept));
  ++damaged_;
}

void Spool::Remove(uint64_t sequence) {
  auto it = entries_.find(sequence);
  if (it == entries_.end()) return;
  // Should it come back after a crash, it is sent again, and the daemon knows its sequence.
  folder_.Remove(NameOf(sequence)).IgnoreError();
  use_.Remove(it->second);
  entries_.erase(it);
}

absl::StatusOr<std::string> Spool::Encode(const Window& window) const {
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
  const uint32_t checksum = Checksum(bytes);
  bytes.insert(0, reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  return bytes;
}

absl::Status Spool::CheckRoom(size_t bytes, uint32_t uid) const {
  MutexLock lock(&mutex_);
  if (use_.bytes + bytes > limit_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the spool ", folder_.path(), " holds ", use_.bytes, " bytes, its limit is ",
                     limit_bytes_, " (spool.limit_mib); is the daemon away?"));
  }
  if (users_ == SpoolUsers::kOne) return absl::OkStatus();
  const auto own = use_.of_user.find(uid);
  const uint64_t used = own == use_.of_user.end() ? 0 : own->second;
  if (used + bytes <= limit_bytes_ / 4 * 3) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the spool ", folder_.path(), " holds ", used, " bytes of processes of uid ",
                   uid, ", and has no more for one user than three quarters of its limit of ",
                   limit_bytes_, " (spool.limit_mib); is the daemon away?"));
}

void Spool::Use::Add(const Entry& entry) {
  bytes += entry.bytes;
  of_user[entry.uid] += entry.bytes;
}

void Spool::Use::Remove(const Entry& entry) {
  bytes -= entry.bytes;
  const auto own = of_user.find(entry.uid);
  if ((own->second -= entry.bytes) == 0) of_user.erase(own);
}

absl::StatusOr<uint64_t> Spool::Append(Window window) {
  MutexLock one_at_a_time(&append_);
  window.stream_id = stream_id_;
  {
    MutexLock lock(&mutex_);
    window.sequence = next_;
  }
  const uint64_t sequence = window.sequence;
  ASSIGN_OR_RETURN(const std::string bytes, Encode(window));
  const uint32_t uid = window.ranks.empty() ? 0 : window.ranks.front().uid;
  RETURN_IF_ERROR(CheckRoom(bytes.size(), uid));
  RETURN_IF_ERROR(folder_.Replace(NameOf(sequence), bytes, OwnFolder::Synced::kContents));
  MutexLock lock(&mutex_);
  Entry& entry = entries_[sequence] = {.bytes = bytes.size(),
                                       .duration_ns = window.duration_ns,
                                       .profile_id = std::move(window.profile_id),
                                       .uid = uid};
  use_.Add(entry);
  next_ = std::max(next_, sequence + 1);
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
    if (!IsUnusable(bytes.status()) && !absl::IsNotFound(bytes.status())) {
      LogWarning("{}", Text(bytes.status()));
      return std::nullopt;
    }
    SetAside(sequence, bytes.status());
    use_.Remove(it->second);
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
  SetAside(sequence, absl::InvalidArgumentError("the daemon ends the stream for it"));
  use_.Remove(it->second);
  entries_.erase(it);
}

// Without its stream id the next agent begins a new stream, in which no sequence was ever used.
bool Spool::RemoveEmpty() {
  MutexLock one_at_a_time(&append_);
  MutexLock lock(&mutex_);
  if (!entries_.empty()) return false;
  const auto names = folder_.Names();
  if (!names.ok()) return false;
  for (const std::string& name : *names) {
    if (name != kLock && name != kStreamId) return false;
  }
  for (const char* name : {kStreamId, kLock}) folder_.Remove(name).IgnoreError();
  return folder_.RemoveFolder().ok();
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
  return use_.bytes;
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
