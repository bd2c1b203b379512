// core/service/account.h - users and groups as the system's databases have them.
//
// Shape    UidOf: a user given by name or by number, for the start of a program. A running daemon asks through accounts.h.
// Errors   UidOf: kInvalidArgument: no such user (a number needs none). AccountSource: kNotFound: no such user.
//          Both: kUnavailable: the databases could not tell.
// Threads  thread-safe; asks files, LDAP and what else nsswitch.conf names, which may take a while, or for ever.
// Source   getpwnam_r(3), "ERRORS": which of them mean that there is no such user; getgrouplist(3).
#ifndef CORE_SERVICE_ACCOUNT_H_
#define CORE_SERVICE_ACCOUNT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace perfd {

absl::StatusOr<uint32_t> UidOf(const std::string& user);
// Of a user given by number; nothing for a name.
std::optional<uint32_t> UidNumber(const std::string& user);

struct Account {
  std::string name;
  uint32_t uid = 0;
  uint32_t gid = 0;
};

class AccountSource {
 public:
  virtual ~AccountSource() = default;
  virtual absl::StatusOr<Account> ByUid(uint32_t uid) const = 0;
  virtual absl::StatusOr<Account> ByName(const std::string& name) const = 0;
  // False also for a group that does not exist, or when it cannot be told.
  virtual bool InGroup(const Account& account, const std::string& group) const = 0;
};

class SystemAccounts final : public AccountSource {
 public:
  absl::StatusOr<Account> ByUid(uint32_t uid) const override;
  absl::StatusOr<Account> ByName(const std::string& name) const override;
  bool InGroup(const Account& account, const std::string& group) const override;
};

}  // namespace perfd

#endif  // CORE_SERVICE_ACCOUNT_H_
