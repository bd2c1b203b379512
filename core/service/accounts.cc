#include "core/service/accounts.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

template <typename T>
absl::StatusOr<T> OrLate(std::optional<absl::StatusOr<T>> answer, absl::Duration within) {
  if (answer.has_value()) return *std::move(answer);
  return absl::UnavailableError(
      absl::StrCat("the user databases of this host (nsswitch.conf) did not answer within ",
                   absl::FormatDuration(within)));
}

}  // namespace

Accounts::Accounts(std::shared_ptr<const AccountSource> source, absl::Duration within)
    : source_(std::move(source)), within_(within) {}

absl::StatusOr<Membership> Accounts::ByUid(uint32_t uid, const std::string& group) {
  using Answer = absl::StatusOr<Membership>;
  return OrLate(calls_.Ask<Answer>(within_,
                                   [source = source_, uid, group]() -> Answer {
                                     ASSIGN_OR_RETURN(Account account, source->ByUid(uid));
                                     const bool member =
                                         !group.empty() && source->InGroup(account, group);
                                     return Membership{std::move(account), member};
                                   }),
                within_);
}

absl::StatusOr<Account> Accounts::ByName(const std::string& name) {
  using Answer = absl::StatusOr<Account>;
  return OrLate(calls_.Ask<Answer>(
                    within_, [source = source_, name]() -> Answer { return source->ByName(name); }),
                within_);
}

absl::StatusOr<uint32_t> Accounts::Uid(const std::string& user) {
  if (const std::optional<uint32_t> uid = UidNumber(user); uid.has_value()) return *uid;
  ASSIGN_OR_RETURN(const Account account, ByName(user));
  return account.uid;
}

}  // namespace perfd
