// daemon/service/identity.h - who is at the other end of a connection, and what they may do.
//
// Shape    a Unix peer is its uid (SO_PEERCRED); a TLS peer is the one URI perfd://user/NAME or perfd://agent/NODE
//          in the subject alternative names of its certificate.
// Errors   kPermissionDenied: no, several or unknown identities.
// Threads  thread-safe; looks names up in the system's databases, which may take a while.
// Source   unix(7) SO_PEERCRED; getgrouplist(3); RFC 5280 4.2.1.6.
#ifndef DAEMON_SERVICE_IDENTITY_H_
#define DAEMON_SERVICE_IDENTITY_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/identity.h"

namespace perfd {

struct Peer {
  Requester requester;
  bool person = true;       // may submit and ask
  bool full_agent = false;  // may be the agent of a whole node
  std::string agent_node;   // ... of this node only; empty: any
};

struct IdentityOptions {
  std::string admin_group;           // its members may profile anyone; empty: nobody
  std::set<std::string> tls_admins;  // names in certificates that may
  uint32_t own_uid = 0;              // of the daemon
};

class Identities {
 public:
  explicit Identities(IdentityOptions options) : options_(std::move(options)) {}

  Peer FromUid(uint32_t uid) const;
  absl::StatusOr<Peer> FromCertificate(const std::vector<std::string>& alternative_names) const;

 private:
  const IdentityOptions options_;
};

}  // namespace perfd

#endif  // DAEMON_SERVICE_IDENTITY_H_
