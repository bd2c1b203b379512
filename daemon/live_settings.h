// daemon/live_settings.h - from flags to what the running parts take, at the start and at every reload.
#ifndef DAEMON_LIVE_SETTINGS_H_
#define DAEMON_LIVE_SETTINGS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "daemon/perfd_flags.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/policy/policy_source.h"
#include "daemon/reload.h"
#include "daemon/service/grpc_host.h"

namespace perfd {

RetentionPolicy RetentionOf(const PerfdFlags& flags);

// kInvalidArgument: the host does not know --agent-user.
absl::StatusOr<IdentityOptions> IdentityOf(const PerfdFlags& flags);

// Valid as long as the parts are.
std::vector<LiveSetting> LiveSettings(Pipeline& pipeline, GrpcHost& host, PolicySource& policy);

}  // namespace perfd

#endif  // DAEMON_LIVE_SETTINGS_H_
