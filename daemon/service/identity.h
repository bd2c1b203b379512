// daemon/service/identity.h - who is at the other end of a connection, and what they may do.
//
// Shape    a Unix peer is its uid (SO_PEERCRED); a TLS peer is the one URI perfd://user/NAME or perfd://agent/NODE
//          in the subject alternative names of its certificate.
// Errors   kPermissionDenied: no, several or unknown identities; kUnavailable: the user databases do not answer. A Unix peer
//          whom they do not know, or not now, has the rights of the bare uid.
// Threads  thread-safe; users and groups are looked up within the bound of Accounts, but for root, who needs no looking up.
// Source   unix(7) SO_PEERCRED; RFC 5280 4.2.1.6.
#ifndef DAEMON_SERVICE_IDENTITY_H_
#define DAEMON_SERVICE_IDENTITY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/model/identity.h"
#include "core/service/accounts.h"
#include "daemon/tls/client_check.h"

namespace perfd::daemon {

struct Peer {
  Requester requester;
  bool person = true;       // may submit and ask
  bool full_agent = false;  // may be the agent of a whole node
  std::string agent_node;   // ... of this node only; empty: any
  // With TLS. Shared with the calls under way, which must not outlast it.
  std::shared_ptr<PeerCertificate> certificate = nullptr;
};

struct IdentityOptions {
  std::string admin_group;           // its members may profile anyone; empty: nobody
  std::set<std::string> tls_admins;  // names in certificates that may
  uint32_t own_uid = 0;              // of the daemon
  std::optional<uint32_t>
      agent_uid{};  // whose agents serve whole nodes, besides root's and our own
};

class Identities {
 public:
  // What is known of a uid, by the rules of a time.
  struct Known {
    Peer peer;
    bool sure = true;    // false: the databases could not tell
    bool named = false;  // they know the uid
    uint64_t generation = 0;
  };

  // `accounts` must outlive it.
  Identities(IdentityOptions options, Accounts& accounts)
      : accounts_(accounts), options_(std::move(options)) {}

  // From now on; a peer that was looked up before keeps what it got. True: another group has the administrators.
  bool Set(IdentityOptions options);
  // Of the rules; grows with every Set.
  uint64_t generation() const;
  Known LookUp(uint32_t uid) const;
  Peer FromUid(uint32_t uid) const { return LookUp(uid).peer; }
  // What needs no looking up: what nobody can be wrong about.
  Peer FromUidAlone(uint32_t uid) const;
  absl::StatusOr<Peer> FromCertificate(const std::vector<std::string>& alternative_names) const;

 private:
  IdentityOptions Options() const;

  Accounts& accounts_;
  mutable Mutex mutex_;
  IdentityOptions options_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_IDENTITY_H_
