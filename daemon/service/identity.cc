#include "daemon/service/identity.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace perfd {
namespace {

constexpr size_t kBufferBytes = 64 << 10;
constexpr int kMaxGroups = 4096;

struct Account {
  std::string name;
  uint32_t uid = 0;
  gid_t gid = 0;
};

std::optional<Account> ByUid(uint32_t uid) {
  std::vector<char> buffer(kBufferBytes);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return std::nullopt;
  return Account{entry.pw_name, entry.pw_uid, entry.pw_gid};
}

std::optional<Account> ByName(const std::string& name) {
  std::vector<char> buffer(kBufferBytes);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return std::nullopt;
  }
  return Account{entry.pw_name, entry.pw_uid, entry.pw_gid};
}

bool InGroup(const Account& account, const std::string& group) {
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

}  // namespace

void Identities::Set(IdentityOptions options) {
  absl::MutexLock lock(&mutex_);
  options_ = std::move(options);
}

// A copy: the system's databases are asked without the lock.
IdentityOptions Identities::Options() const {
  absl::MutexLock lock(&mutex_);
  return options_;
}

Peer Identities::FromUid(uint32_t uid) const {
  const IdentityOptions options = Options();
  Peer peer;
  const std::optional<Account> account = ByUid(uid);
  peer.requester.uid = uid;
  peer.requester.name = account.has_value() ? account->name : absl::StrCat("uid:", uid);
  peer.requester.privileged = uid == 0 || uid == options.own_uid ||
                              (account.has_value() && InGroup(*account, options.admin_group));
  peer.full_agent = uid == 0 || uid == options.own_uid || options.agent_uid == uid;
  return peer;
}

absl::StatusOr<Peer> Identities::FromCertificate(
    const std::vector<std::string>& alternative_names) const {
  std::vector<absl::string_view> ours;
  for (const std::string& name : alternative_names) {
    if (absl::StartsWith(name, "perfd://")) ours.push_back(name);
  }
  if (ours.size() != 1) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the certificate names ", ours.size(),
        " perfd identities instead of one (perfd://user/NAME or perfd://agent/NODE): make one with "
        "deploy/make-certs.sh"));
  }
  Peer peer;
  absl::string_view rest = ours.front();
  if (absl::ConsumePrefix(&rest, "perfd://agent/") && !rest.empty()) {
    peer.requester = {.uid = 0, .name = absl::StrCat("agent:", rest), .privileged = false};
    peer.person = false;
    peer.full_agent = true;
    peer.agent_node = std::string(rest);
    return peer;
  }
  if (absl::ConsumePrefix(&rest, "perfd://user/") && !rest.empty()) {
    const std::optional<Account> account = ByName(std::string(rest));
    if (!account.has_value()) {
      return absl::PermissionDeniedError(
          absl::StrCat("the daemon's host does not know user ", rest));
    }
    peer.requester = {.uid = account->uid,
                      .name = account->name,
                      .privileged = Options().tls_admins.contains(account->name)};
    return peer;
  }
  return absl::PermissionDeniedError(absl::StrCat("'", ours.front(), "' is not a perfd identity"));
}

}  // namespace perfd
