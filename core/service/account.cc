#include "core/service/account.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace perfd {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr int kMaxGroups = 4096;

bool MeansNobody(int error) {
  return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
}

absl::StatusOr<Account> ToAccount(int error, const passwd* found, const std::string& who) {
  if (error == 0 && found != nullptr) return Account{found->pw_name, found->pw_uid, found->pw_gid};
  if (MeansNobody(error)) return absl::NotFoundError(absl::StrCat("this host knows no user ", who));
  return absl::UnavailableError(
      absl::StrCat("user ", who, " cannot be looked up: ", std::strerror(error)));
}

}  // namespace

std::optional<uint32_t> UidNumber(const std::string& user) {
  uint32_t uid = 0;
  // 4294967295 is "no user" to the kernel (setresuid(2)).
  if (!absl::SimpleAtoi(user, &uid) || uid == UINT32_MAX) return std::nullopt;
  return uid;
}

absl::StatusOr<uint32_t> UidOf(const std::string& user) {
  if (const std::optional<uint32_t> uid = UidNumber(user); uid.has_value()) return *uid;
  const absl::StatusOr<Account> account = SystemAccounts().ByName(user);
  if (account.ok()) return account->uid;
  if (absl::IsNotFound(account.status()))
    return absl::InvalidArgumentError(account.status().message());
  return account.status();
}

absl::StatusOr<Account> SystemAccounts::ByUid(uint32_t uid) const {
  std::vector<char> buffer(kBufferBytes);
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return ToAccount(error, found, absl::StrCat("with uid ", uid));
}

absl::StatusOr<Account> SystemAccounts::ByName(const std::string& name) const {
  std::vector<char> buffer(kBufferBytes);
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return ToAccount(error, found, absl::StrCat("'", name, "'"));
}

bool SystemAccounts::InGroup(const Account& account, const std::string& group) const {
  if (group.empty()) return false;
  std::vector<char> buffer(kBufferBytes);
  struct group entry {};
  struct group* found = nullptr;
  if (::getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return false;
  int count = kMaxGroups;
  std::vector<gid_t> groups(static_cast<size_t>(count));
  if (::getgrouplist(account.name.c_str(), account.gid, groups.data(), &count) < 0)
    count = kMaxGroups;
  groups.resize(static_cast<size_t>(std::min(count, kMaxGroups)));
  return std::find(groups.begin(), groups.end(), entry.gr_gid) != groups.end();
}

}  // namespace perfd
