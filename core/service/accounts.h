// core/service/accounts.h - users and groups for a daemon that must not hang with the databases they are in.
//
// Errors   kNotFound: no such user; kUnavailable: the databases could not tell, or not in time.
// Threads  thread-safe; every question is answered within the bound (bounded_calls.h).
#ifndef CORE_SERVICE_ACCOUNTS_H_
#define CORE_SERVICE_ACCOUNTS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/service/account.h"
#include "core/service/bounded_calls.h"

namespace perfd {

struct Membership {
  Account account;
  bool member = false;
};

class Accounts {
 public:
  static constexpr absl::Duration kWithin = absl::Seconds(2);
  static constexpr size_t kThreads = 4;

  Accounts() : Accounts(std::make_shared<const SystemAccounts>(), kWithin) {}
  // The source is shared with calls that never return.
  Accounts(std::shared_ptr<const AccountSource> source, absl::Duration within);

  // A user, and whether they are in `group`. An empty group has no members.
  absl::StatusOr<Membership> ByUid(uint32_t uid, const std::string& group);
  absl::StatusOr<Account> ByName(const std::string& name);
  // Of a user given by name or by number, which need not be anybody's.
  absl::StatusOr<uint32_t> Uid(const std::string& user);

 private:
  const std::shared_ptr<const AccountSource> source_;
  const absl::Duration within_;
  BoundedCalls calls_{"perfd-accounts", kThreads};
};

}  // namespace perfd

#endif  // CORE_SERVICE_ACCOUNTS_H_
