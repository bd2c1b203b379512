// daemon/limits/limits.h - how much of each bound is in use, by whom, and how often somebody was refused.
//
// Shape    Acquire(limit, who) -> a Share that is given back when it ends. Spend -> a Payment, for what is taken in a period.
//          Report is for what is counted elsewhere; Check asks whether anything is left.
// Errors   kResourceExhausted, by Refusal; counted and in the log, a line a second for each limit.
// Bounds   what is kept is as large as what is held.
// Threads  thread-safe. Outlives its Shares and Payments.
#ifndef DAEMON_LIMITS_LIMITS_H_
#define DAEMON_LIMITS_LIMITS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/model/identity.h"
#include "daemon/limits/limit_table.h"

namespace perfd::daemon {

class Limits;

// Everyone together, a user, an address.
using LimitHolder = std::variant<std::monostate, uint32_t, std::string>;

// One of what a limit bounds, or so much of it; none when empty.
class Share {
 public:
  Share() = default;
  Share(Limits* limits, Limit limit, LimitHolder holder, int64_t amount = 1)
      : limits_(limits), limit_(limit), holder_(std::move(holder)), amount_(amount) {}
  Share(Share&& other) noexcept { *this = std::move(other); }
  Share& operator=(Share&& other) noexcept;
  ~Share();
  bool held() const { return limits_ != nullptr; }
  // Of the same limit and holder.
  void Add(Share other);

 private:
  Limits* limits_ = nullptr;
  Limit limit_{};
  LimitHolder holder_;
  int64_t amount_ = 0;
};

// What was taken of a period; what was not needed comes back when it ends.
class Payment {
 public:
  Payment() = default;
  Payment(Limits* limits, Limit limit, uint32_t uid, int64_t amount, int64_t when_ns)
      : limits_(limits), limit_(limit), uid_(uid), amount_(amount), when_ns_(when_ns) {}
  Payment(Payment&& other) noexcept { *this = std::move(other); }
  Payment& operator=(Payment&& other) noexcept;
  ~Payment() { GiveBack(); }
  // So much of it was needed.
  void Use(int64_t amount) { amount_ -= std::clamp<int64_t>(amount, 0, amount_); }
  int64_t amount() const { return amount_; }

 private:
  void GiveBack();

  Limits* limits_ = nullptr;
  Limit limit_{};
  uint32_t uid_ = 0;
  int64_t amount_ = 0;
  int64_t when_ns_ = 0;
};

// Stands for all users whom the system does not know, together: no user has it.
inline constexpr uint32_t kNobodyKnown = UINT32_MAX;

class Limits {
 public:
  explicit Limits(LimitValues values = StandardLimits()) : values_(values) {}

  // From now on; nobody loses what they hold.
  void Set(const LimitValues& values);
  int64_t Value(Limit limit) const;
  // Of a limit whose value counts something larger.
  int64_t Bytes(Limit limit) const { return Value(limit) * RowOf(limit).scale; }
  // Root and administrators have no limit of their own, and the places that are kept back.
  absl::StatusOr<Share> Acquire(Limit limit, const Requester& who, int64_t amount = 1);
  // By number or address, for whom nobody has looked up yet.
  absl::StatusOr<Share> Acquire(Limit limit, uint32_t uid, int64_t amount = 1);
  absl::StatusOr<Share> Acquire(Limit limit, const std::string& address);
  // None: there is no room now. Nobody is refused yet.
  std::optional<Share> TryAcquire(Limit limit, uint32_t uid, int64_t amount = 1);
  // Of what was there before perfd began, or before a reload, or of whom it does not bind: whatever the limit is.
  Share Hold(Limit limit, uint32_t uid, int64_t amount = 1);

  // `amount` more in this period. What is more than all of it is refused always, but to root. All times are of one clock.
  absl::StatusOr<Payment> Spend(Limit limit, uint32_t uid, int64_t amount, int64_t now_ns);
  // What users hold by somebody else's count, instead of what was said before.
  void Report(Limit limit, const std::map<uint32_t, int64_t>& held);
  // Whether anything of that is left for them; users whom the system does not know have one together. Counts the refusal.
  absl::Status Check(Limit limit, const Requester& who);
  // Whether one request may ask for so much; kUser limits that are not counted.
  absl::Status CheckAsked(Limit limit, const Requester& who, double asked);
  // Somebody else's count has refused them.
  void RecordRefusal(Limit limit, uint32_t uid);

  // How often each limit has refused somebody, in the order of the table.
  std::array<uint64_t, kLimits> Hits() const;
  // What each limit is for them, in the order of the table. full_agent: theirs may be the agent of a whole node.
  std::vector<LimitUse> UsesOf(const Requester& who, int64_t now_ns, bool full_agent = false);

 private:
  friend class Share;
  friend class Payment;
  using Counts = std::map<std::pair<Limit, LimitHolder>, int64_t>;
  absl::StatusOr<Share> AcquireAs(Limit limit, const LimitHolder& who, bool privileged,
                                  int64_t amount = 1);
  std::optional<Share> Reserve(Limit limit, const LimitHolder& who, bool privileged, int64_t amount)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For one more, or so many.
  bool HasRoom(Limit limit, int64_t used, bool privileged, int64_t amount = 1) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Refuse(Limit limit, const LimitHolder& who) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(Limit limit, const LimitHolder& holder, int64_t amount);
  // Of what was spent then, if that period is not over.
  void Refund(Limit limit, uint32_t uid, int64_t amount, int64_t when_ns);
  // Forgets what was spent in periods that are over.
  void BeginPeriods(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Counts& CountsOf(const LimitRow& row) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  LimitValues values_ ABSL_GUARDED_BY(mutex_);
  std::array<uint64_t, kLimits> hits_ ABSL_GUARDED_BY(mutex_){};
  std::array<RareLog, kLimits> lines_ ABSL_GUARDED_BY(mutex_);
  std::array<int64_t, kLimits> periods_ ABSL_GUARDED_BY(mutex_){};  // their numbers
  Counts spent_ ABSL_GUARDED_BY(mutex_);                            // in these
  Counts used_ ABSL_GUARDED_BY(mutex_);                             // none is 0
};

}  // namespace perfd::daemon

#endif  // DAEMON_LIMITS_LIMITS_H_
