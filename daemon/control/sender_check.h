// daemon/control/sender_check.h - may this agent bring this window? One stolen key must not decide what everybody reads. Pure.
//
// Shape    StandingIn(profile, node) -> CheckSender(sender, window, standing); NameOrigin before an accepted one is stored.
// Errors   kPermissionDenied: a user's own agent, another user's profile; kFailedPrecondition: the node was not asked, or the
//          window holds what is not of its node and profile.
// Rules    what is known of a profile is perfd's own record: who asked for it, and which nodes were asked.
#ifndef DAEMON_CONTROL_SENDER_CHECK_H_
#define DAEMON_CONTROL_SENDER_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/model/identity.h"
#include "core/model/profile.h"
#include "core/model/window.h"

namespace perfd::daemon {

// Who sent a message, as far as it was checked.
struct Sender {
  std::string node;
  std::string stream_id;
  bool user_mode = false;
  uint32_t uid = 0;
  bool certified = false;
};

// What a node is to a profile.
struct Standing {
  Requester owner;
  bool asked = false;  // the node was
};
Standing StandingIn(const ProfileStatus& status, const std::string& node);

// A user's own agent speaks for its user's profiles. None: perfd knows no such profile (any more).
bool MaySpeakFor(const Sender& sender, const std::optional<Standing>& standing);

// Of profiles that perfd does not know ingest keeps nothing but the audit of full agents (InsertAudit says of whom).
absl::Status CheckSender(const Sender& sender, const Window& window,
                         const std::optional<Standing>& standing);

// Whose a stream is that it begins: the node's, or the user's whose own agent it is.
std::string OwnerName(const Sender& sender);
// A full agent without a certificate is trusted on perfd's own host, under whatever name.
bool MayTakeOver(const Sender& sender);
// Of the stream with which it wants to go on, and whose it is (empty: nobody's yet). kPermissionDenied: another's, or its spool is a copy
// of another node's.
absl::Status CheckStream(const Sender& sender, const std::string& owner);

// By whose order something was done, and who says so, is perfd's to say, not the node's.
void NameOrigin(const Sender& sender, const std::optional<Standing>& standing, Window& window);

}  // namespace perfd::daemon

#endif  // DAEMON_CONTROL_SENDER_CHECK_H_
