#include "daemon/control/sender_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace perfd::daemon {
namespace {

constexpr size_t kMaxShownName = 128;

bool HoldsItsOwnOnly(const Window& window) {
  const auto own = [&window](const auto& part) {
    return part.profile_id == window.profile_id && part.node == window.node;
  };
  return std::all_of(window.findings.measurements.begin(), window.findings.measurements.end(),
                     own) &&
         std::all_of(window.audit.begin(), window.audit.end(), own);
}

}  // namespace

Standing StandingIn(const ProfileStatus& status, const std::string& node) {
  const bool asked = std::any_of(status.nodes.begin(), status.nodes.end(),
                                 [&](const NodeProgress& at) { return at.node == node; });
  return {status.requester, asked};
}

bool MaySpeakFor(const Sender& sender, const std::optional<Standing>& standing) {
  return !sender.user_mode || (standing.has_value() && standing->owner.uid == sender.uid);
}

absl::Status CheckSender(const Sender& sender, const Window& window,
                         const std::optional<Standing>& standing) {
  if (!MaySpeakFor(sender, standing)) {
    return absl::PermissionDeniedError(absl::StrCat(
        "a user-mode agent of uid ", sender.uid, " sent a window of this profile, which ",
        standing.has_value() ? "belongs to another user" : "nobody knows"));
  }
  if (!HoldsItsOwnOnly(window)) {
    return absl::FailedPreconditionError(
        "it holds measurements or audit entries of another node or profile");
  }
  if (!standing.has_value() || standing->asked) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("node '", window.node.substr(0, kMaxShownName),
                                                    "' was not asked for this profile"));
}

std::string OwnerName(const Sender& sender) {
  // Of a certificate the node's name is what was proved.
  const bool of_user = sender.user_mode && !sender.certified;
  return of_user ? absl::StrCat("user ", sender.uid) : absl::StrCat("node ", sender.node);
}

bool MayTakeOver(const Sender& sender) {
  return !sender.user_mode && !sender.certified;
}

absl::Status CheckStream(const Sender& sender, const std::string& owner) {
  if (owner.empty() || MayTakeOver(sender) || owner == OwnerName(sender)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the agent's spool is one of ", owner, ", not of ", OwnerName(sender),
                   ": stop the agent, move its spool folder away and start it again"));
}

void NameOrigin(const Sender& sender, const std::optional<Standing>& standing, Window& window) {
  AuditOrigin origin;
  if (standing.has_value())
    origin.requester = absl::StrCat(standing->owner.name, " (uid ", standing->owner.uid, ")");
  origin.brought_by = sender.certified ? absl::StrCat("certificate agent/", sender.node)
                                       : absl::StrCat("uid ", sender.uid);
  for (AuditEntry& entry : window.audit) entry.origin = origin;
}

}  // namespace perfd::daemon
