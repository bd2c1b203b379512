#include "daemon/service/identity.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/mutex.h"

namespace perfd::daemon {
namespace {

Peer ByUid(uint32_t uid, const IdentityOptions& options) {
  const bool ours = uid == 0 || uid == options.own_uid;
  Peer peer;
  peer.requester = {
      .uid = uid, .name = uid == 0 ? "root" : absl::StrCat(kUnknownUser, uid), .privileged = ours};
  peer.full_agent = ours || options.agent_uid == uid;
  return peer;
}

}  // namespace

bool Identities::Set(IdentityOptions options) {
  MutexLock lock(&mutex_);
  const bool other_group = options.admin_group != options_.admin_group;
  options_ = std::move(options);
  ++generation_;
  return other_group;
}

uint64_t Identities::generation() const {
  MutexLock lock(&mutex_);
  return generation_;
}

// A copy: the system's databases are asked without the lock.
IdentityOptions Identities::Options() const {
  MutexLock lock(&mutex_);
  return options_;
}

Peer Identities::FromUidAlone(uint32_t uid) const {
  return ByUid(uid, Options());
}

Identities::Known Identities::LookUp(uint32_t uid) const {
  Known known;
  known.generation = generation();  // before the options: at worst they are newer than it says
  const IdentityOptions options = Options();
  known.peer = ByUid(uid, options);
  known.named = uid == 0;
  if (known.named) return known;
  const absl::StatusOr<Membership> found = accounts_.ByUid(uid, options.admin_group);
  known.sure = found.ok() || absl::IsNotFound(found.status());
  known.named = found.ok();
  if (!found.ok()) return known;
  known.peer.requester.name = found->account.name;
  if (found->member) known.peer.requester.privileged = true;
  return known;
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
    const absl::StatusOr<Account> account = accounts_.ByName(std::string(rest));
    if (absl::IsNotFound(account.status())) {
      return absl::PermissionDeniedError(
          absl::StrCat("the daemon's host does not know user ", rest));
    }
    if (!account.ok()) {
      return absl::UnavailableError(absl::StrCat("the daemon's host cannot look up user ", rest,
                                                 ": ", account.status().message()));
    }
    const bool admin = Options().tls_admins.contains(account->name);
    // The kernel vouches for root on its own host only; here, by name, it would have the processes of root on every node.
    if (account->uid == 0 && !admin)
      return absl::PermissionDeniedError(absl::StrCat(
          "the certificate of ", rest,
          " has uid 0: over the network it is an administrator's (--tls-admin), or nobody's"));
    peer.requester = {.uid = account->uid, .name = account->name, .privileged = admin};
    return peer;
  }
  return absl::PermissionDeniedError(absl::StrCat("'", ours.front(), "' is not a perfd identity"));
}

}  // namespace perfd::daemon
