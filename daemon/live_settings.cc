#include "daemon/live_settings.h"

#include <unistd.h>

#include <utility>

#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/service/account.h"

namespace perfd {
namespace {

constexpr int64_t kNsPerDay = 24 * 3600 * kNsPerSecond;

}  // namespace

RetentionPolicy RetentionOf(const PerfdFlags& flags) {
  return {flags.retention_days * kNsPerDay, flags.retention_mib << 20};
}

absl::StatusOr<IdentityOptions> IdentityOf(const PerfdFlags& flags) {
  IdentityOptions options{.admin_group = flags.admin_group,
                          .tls_admins = {flags.tls_admins.begin(), flags.tls_admins.end()},
                          .own_uid = ::getuid()};
  if (!flags.agent_user.empty()) {
    ASSIGN_OR_RETURN(options.agent_uid, UidOf(flags.agent_user));
  }
  return options;
}

std::vector<LiveSetting> LiveSettings(Pipeline& pipeline, GrpcHost& host, PolicySource& policy) {
  return {{"log", ApplyLog},
          {"policy", [&policy](const PerfdFlags&) { return policy.Reload(); }},
          {"retention",
           [&pipeline](const PerfdFlags& flags) {
             pipeline.SetRetention(RetentionOf(flags));
             return absl::OkStatus();
           }},
          {"certificate", [&host](const PerfdFlags& flags) { return host.RenewTls(flags.tls); }},
          {"access", [&host](const PerfdFlags& flags) -> absl::Status {
             ASSIGN_OR_RETURN(IdentityOptions identity, IdentityOf(flags));
             host.SetIdentity(std::move(identity));
             return absl::OkStatus();
           }}};
}

}  // namespace perfd
