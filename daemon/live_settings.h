// daemon/live_settings.h - from flags to what the running parts take, at the start and at every reload.
#ifndef DAEMON_LIVE_SETTINGS_H_
#define DAEMON_LIVE_SETTINGS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/service/accounts.h"
#include "daemon/perfd_flags.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/policy/policy_source.h"
#include "daemon/reload.h"
#include "daemon/service/doors/grpc_host.h"

namespace perfd::daemon {

RetentionPolicy RetentionOf(const PerfdFlags& flags);

// Who may do what, as the flags say. What they take away is gone in any case: an --agent-user who cannot be looked up holds up
// nothing else, and is nobody. Only when the user databases do not answer does a user whose name has not changed keep the uid
// that was found before.
class AccessRules {
 public:
  // `accounts` must outlive it.
  explicit AccessRules(Accounts& accounts) : accounts_(accounts) {}

  // All of it or nothing.
  absl::StatusOr<IdentityOptions> AtStart(const PerfdFlags& flags);
  // Gives the rules to `take`, also with an error: kNotFound, kUnavailable: what became of --agent-user.
  absl::Status Apply(const PerfdFlags& flags,
                     const std::function<void(IdentityOptions identity)>& take);

 private:
  Accounts& accounts_;
  std::string agent_user_;  // as they were found last
  std::optional<uint32_t> agent_uid_;
};

// Valid as long as the parts are.
std::vector<LiveSetting> LiveSettings(Pipeline& pipeline, GrpcHost& host, PolicySource& policy,
                                      AccessRules& access, TlsGate& tls, Limits& limits);

// A broken file is no reason not to serve.
void ReadFirst(PolicySource& policy);

}  // namespace perfd::daemon

#endif  // DAEMON_LIVE_SETTINGS_H_
