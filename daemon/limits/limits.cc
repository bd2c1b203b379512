#include "daemon/limits/limits.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"

namespace perfd::daemon {
namespace {

constexpr size_t kMostShown = 5;

// Everybody's together have one holder.
LimitHolder HolderOf(Limit limit, const LimitHolder& who) {
  return RowOf(limit).per == LimitPer::kEveryone ? LimitHolder() : who;
}

// What is begun counts.
int64_t InUnits(const LimitRow& row, int64_t counted) {
  return (counted + row.scale - 1) / row.scale;
}

// The users with most of it, from most to least.
std::vector<LimitHolding> MostOf(const std::map<std::pair<Limit, LimitHolder>, int64_t>& counts,
                                 const LimitRow& row) {
  std::vector<LimitHolding> all;
  for (auto it = counts.lower_bound({row.limit, LimitHolder()});
       it != counts.end() && it->first.first == row.limit; ++it) {
    if (const auto* uid = std::get_if<uint32_t>(&it->first.second))
      all.push_back({.uid = *uid, .used = InUnits(row, it->second)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const LimitHolding& a, const LimitHolding& b) { return a.used > b.used; });
  all.resize(std::min(all.size(), kMostShown));
  return all;
}

// Of the users whose agents serve whole nodes; daemon/limits/connections.h.
bool SparesAgents(Limit limit) {
  return limit == Limit::kConnectionsPerUser || limit == Limit::kNewConnectionsPerUser;
}

std::string InWords(const LimitHolder& who) {
  if (const auto* uid = std::get_if<uint32_t>(&who)) return absl::StrCat("uid ", *uid);
  if (const auto* address = std::get_if<std::string>(&who)) return *address;
  return "a peer";
}

}  // namespace

Share& Share::operator=(Share&& other) noexcept {
  if (this == &other) return *this;
  if (limits_ != nullptr) limits_->GiveBack(limit_, holder_, amount_);
  limits_ = std::exchange(other.limits_, nullptr);
  limit_ = other.limit_;
  holder_ = std::move(other.holder_);
  amount_ = other.amount_;
  return *this;
}

Share::~Share() {
  if (limits_ != nullptr) limits_->GiveBack(limit_, holder_, amount_);
}

void Share::Add(Share other) {
  if (!held()) {
    *this = std::move(other);
  } else if (other.held()) {
    amount_ += other.amount_;
    other.limits_ = nullptr;
  }
}

Payment& Payment::operator=(Payment&& other) noexcept {
  if (this == &other) return *this;
  GiveBack();
  limits_ = std::exchange(other.limits_, nullptr);
  limit_ = other.limit_;
  uid_ = other.uid_;
  amount_ = std::exchange(other.amount_, 0);
  when_ns_ = other.when_ns_;
  return *this;
}

void Payment::GiveBack() {
  if (limits_ != nullptr && amount_ > 0) limits_->Refund(limit_, uid_, amount_, when_ns_);
  limits_ = nullptr;
}

void Limits::Set(const LimitValues& values) {
  MutexLock lock(&mutex_);
  values_ = values;
}

int64_t Limits::Value(Limit limit) const {
  MutexLock lock(&mutex_);
  return values_[static_cast<size_t>(limit)];
}

bool Limits::HasRoom(Limit limit, int64_t used, bool privileged, int64_t amount) const {
  const LimitRow& row = RowOf(limit);
  if (privileged && row.per == LimitPer::kUser) return true;
  const int64_t value = values_[static_cast<size_t>(limit)];
  const int64_t kept = privileged ? 0 : std::min(row.kept, value / 2);
  return used <= (value - kept) * row.scale - amount;
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

std::optional<Share> Limits::Reserve(Limit limit, const LimitHolder& who, bool privileged,
                                     int64_t amount) {
  const LimitHolder holder = HolderOf(limit, who);
  const auto found = used_.find({limit, holder});
  const int64_t used = found == used_.end() ? 0 : found->second;
  if (!HasRoom(limit, used, privileged, amount)) return std::nullopt;
  used_[{limit, holder}] = used + amount;
  return Share(this, limit, holder, amount);
}

absl::StatusOr<Share> Limits::AcquireAs(Limit limit, const LimitHolder& who, bool privileged,
                                        int64_t amount) {
  MutexLock lock(&mutex_);
  std::optional<Share> share = Reserve(limit, who, privileged, amount);
  if (!share.has_value()) return Refuse(limit, who);
  return *std::move(share);
}

std::optional<Share> Limits::TryAcquire(Limit limit, uint32_t uid, int64_t amount) {
  MutexLock lock(&mutex_);
  return Reserve(limit, uid, uid == 0, amount);
}

absl::StatusOr<Share> Limits::Acquire(Limit limit, const Requester& who, int64_t amount) {
  return AcquireAs(limit, who.uid, who.privileged, amount);
}

absl::StatusOr<Share> Limits::Acquire(Limit limit, uint32_t uid, int64_t amount) {
  return AcquireAs(limit, uid, uid == 0, amount);
}

absl::StatusOr<Share> Limits::Acquire(Limit limit, const std::string& address) {
  return AcquireAs(limit, address, /*privileged=*/false);
}

Share Limits::Hold(Limit limit, uint32_t uid, int64_t amount) {
  MutexLock lock(&mutex_);
  const LimitHolder holder = HolderOf(limit, uid);
  used_[{limit, holder}] += amount;
  return Share(this, limit, holder, amount);
}

absl::StatusOr<Payment> Limits::Spend(Limit limit, uint32_t uid, int64_t amount, int64_t now_ns) {
  if (amount <= 0) return Payment();
  MutexLock lock(&mutex_);
  BeginPeriods(now_ns);
  const std::pair key{limit, HolderOf(limit, uid)};
  const auto found = spent_.find(key);
  const int64_t spent = found == spent_.end() ? 0 : found->second;
  const int64_t all = values_[static_cast<size_t>(limit)] * RowOf(limit).scale;
  if (uid != 0 && (amount > all || spent > all - amount)) return Refuse(limit, uid);
  spent_[key] = spent + amount;
  return Payment(this, limit, uid, amount, now_ns);
}

void Limits::Refund(Limit limit, uint32_t uid, int64_t amount, int64_t when_ns) {
  MutexLock lock(&mutex_);
  if (when_ns / RowOf(limit).period_ns != periods_[static_cast<size_t>(limit)]) return;
  const auto found = spent_.find({limit, HolderOf(limit, uid)});
  if (found == spent_.end()) return;
  found->second -= std::clamp<int64_t>(amount, 0, found->second);
  if (found->second == 0) spent_.erase(found);
}

void Limits::Report(Limit limit, const std::map<uint32_t, int64_t>& held) {
  MutexLock lock(&mutex_);
  std::erase_if(used_, [limit](const auto& item) { return item.first.first == limit; });
  for (const auto& [uid, amount] : held) used_[{limit, uid}] = amount;
}

absl::Status Limits::Check(Limit limit, const Requester& who) {
  const bool unknown = absl::StartsWith(who.name, kUnknownUser);
  MutexLock lock(&mutex_);
  const auto found = used_.find({limit, unknown ? kNobodyKnown : who.uid});
  const int64_t used = found == used_.end() ? 0 : found->second;
  return HasRoom(limit, used, who.privileged) ? absl::OkStatus() : Refuse(limit, who.uid);
}

absl::Status Limits::CheckAsked(Limit limit, const Requester& who, double asked) {
  MutexLock lock(&mutex_);
  if (who.privileged || asked <= static_cast<double>(values_[static_cast<size_t>(limit)]))
    return absl::OkStatus();
  return Refuse(limit, who.uid);
}

void Limits::RecordRefusal(Limit limit, uint32_t uid) {
  MutexLock lock(&mutex_);
  static_cast<void>(Refuse(limit, uid));
}

void Limits::GiveBack(Limit limit, const LimitHolder& holder, int64_t amount) {
  MutexLock lock(&mutex_);
  const auto found = used_.find({limit, holder});
  if (found != used_.end() && (found->second -= amount) == 0) used_.erase(found);
}

const Limits::Counts& Limits::CountsOf(const LimitRow& row) const {
  return row.period_ns > 0 ? spent_ : used_;
}

void Limits::BeginPeriods(int64_t now_ns) {
  for (const LimitRow& row : LimitTable()) {
    if (row.period_ns == 0) continue;
    const int64_t now = now_ns / row.period_ns;
    if (std::exchange(periods_[static_cast<size_t>(row.limit)], now) != now)
      std::erase_if(spent_, [&](const auto& item) { return item.first.first == row.limit; });
  }
}

std::vector<LimitUse> Limits::UsesOf(const Requester& who, int64_t now_ns, bool full_agent) {
  MutexLock lock(&mutex_);
  BeginPeriods(now_ns);
  std::vector<LimitUse> uses;
  for (const LimitRow& row : LimitTable()) {
    const auto index = static_cast<size_t>(row.limit);
    const bool own = row.per == LimitPer::kUser;
    const bool free = own && ((who.privileged && (!row.binds_admins || who.uid == 0)) ||
                              (full_agent && SparesAgents(row.limit)));
    LimitUse use{.key = std::string(row.key),
                 .what = std::string(row.what),
                 .per = row.per,
                 .unit = std::string(row.unit),
                 .period_ns = row.period_ns,
                 .value = values_[index],
                 .kept = std::min(row.kept, values_[index] / 2),
                 .bound = !free,
                 .used = std::nullopt,
                 .refusals = hits_[index],
                 .instead = std::string(row.instead),
                 .most = {}};
    const Counts& counts = CountsOf(row);
    if (row.is_counted && row.per != LimitPer::kAddress) {
      const auto found = counts.find({row.limit, HolderOf(row.limit, who.uid)});
      use.used = found == counts.end() ? 0 : InUnits(row, found->second);
    }
    if (own && who.privileged) use.most = MostOf(counts, row);
    uses.push_back(std::move(use));
  }
  return uses;
}

std::array<uint64_t, kLimits> Limits::Hits() const {
  MutexLock lock(&mutex_);
  return hits_;
}

}  // namespace perfd::daemon
