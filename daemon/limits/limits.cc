#include "daemon/limits/limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"

namespace perfd::daemon {
namespace {

// Everybody's together have one holder.
LimitHolder HolderOf(Limit limit, const LimitHolder& who) {
  return RowOf(limit).per == LimitPer::kEveryone ? LimitHolder() : who;
}

std::string InWords(const LimitHolder& who) {
  if (const auto* uid = std::get_if<uint32_t>(&who)) return absl::StrCat("uid ", *uid);
  if (const auto* address = std::get_if<std::string>(&who)) return *address;
  return "a peer";
}

}  // namespace

Share& Share::operator=(Share&& other) noexcept {
  if (this == &other) return *this;
  if (limits_ != nullptr) limits_->GiveBack(limit_, holder_);
  limits_ = std::exchange(other.limits_, nullptr);
  limit_ = other.limit_;
  holder_ = std::move(other.holder_);
  return *this;
}

Share::~Share() {
  if (limits_ != nullptr) limits_->GiveBack(limit_, holder_);
}

void Limits::Set(const LimitValues& values) {
  MutexLock lock(&mutex_);
  values_ = values;
}

int64_t Limits::Value(Limit limit) const {
  MutexLock lock(&mutex_);
  return values_[static_cast<size_t>(limit)];
}

bool Limits::HasRoom(Limit limit, int64_t used, bool privileged) const {
  const LimitRow& row = RowOf(limit);
  if (privileged && row.per == LimitPer::kUser) return true;
  const int64_t value = values_[static_cast<size_t>(limit)];
  const int64_t kept = privileged ? 0 : std::min(row.kept, value / 2);
  return used < value - kept;
}

absl::Status Limits::Refuse(Limit limit, const LimitHolder& who) {
  const auto row = static_cast<size_t>(limit);
  ++hits_[row];
  absl::Status refused = Refusal(RowOf(limit), values_[row]);
  if (const auto more = lines_[row].Next(absl::GetCurrentTimeNanos()); more.has_value())
    LogWarning("{} is refused: {} ({} more since the last such line)", InWords(who), Text(refused),
               *more);
  return refused;
}

std::optional<Share> Limits::Reserve(Limit limit, const LimitHolder& who, bool privileged) {
  const LimitHolder holder = HolderOf(limit, who);
  const auto found = used_.find({limit, holder});
  if (!HasRoom(limit, found == used_.end() ? 0 : found->second, privileged)) return std::nullopt;
  ++used_[{limit, holder}];
  return Share(this, limit, holder);
}

absl::StatusOr<Share> Limits::AcquireAs(Limit limit, const LimitHolder& who, bool privileged) {
  MutexLock lock(&mutex_);
  std::optional<Share> share = Reserve(limit, who, privileged);
  if (!share.has_value()) return Refuse(limit, who);
  return *std::move(share);
}

std::optional<Share> Limits::TryAcquire(Limit limit, uint32_t uid) {
  MutexLock lock(&mutex_);
  return Reserve(limit, uid, uid == 0);
}

absl::StatusOr<Share> Limits::Acquire(Limit limit, const Requester& who) {
  return AcquireAs(limit, who.uid, who.privileged);
}

absl::StatusOr<Share> Limits::Acquire(Limit limit, uint32_t uid) {
  return AcquireAs(limit, uid, uid == 0);
}

absl::StatusOr<Share> Limits::Acquire(Limit limit, const std::string& address) {
  return AcquireAs(limit, address, /*privileged=*/false);
}

Share Limits::Hold(Limit limit, uint32_t uid) {
  MutexLock lock(&mutex_);
  const LimitHolder holder = HolderOf(limit, uid);
  ++used_[{limit, holder}];
  return Share(this, limit, holder);
}

absl::Status Limits::Spend(Limit limit, uint32_t uid, int64_t amount, int64_t now_ns) {
  if (amount <= 0) return absl::OkStatus();
  MutexLock lock(&mutex_);
  if (const int64_t minute = now_ns / (60 * kNsPerSecond); minute != minute_) {
    spent_.clear();
    minute_ = minute;
  }
  int64_t& spent = spent_[{limit, HolderOf(limit, uid)}];
  const int64_t value = values_[static_cast<size_t>(limit)];
  if (amount > value || spent > value - amount) return Refuse(limit, uid);
  spent += amount;
  return absl::OkStatus();
}

void Limits::GiveBack(Limit limit, const LimitHolder& holder) {
  MutexLock lock(&mutex_);
  const auto found = used_.find({limit, holder});
  if (found != used_.end() && --found->second == 0) used_.erase(found);
}

std::array<uint64_t, kLimits> Limits::Hits() const {
  MutexLock lock(&mutex_);
  return hits_;
}

}  // namespace perfd::daemon
