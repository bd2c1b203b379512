#include "daemon/live_settings.h"

#include <unistd.h>

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kNsPerDay = 24 * 3600 * kNsPerSecond;

}  // namespace

RetentionPolicy RetentionOf(const PerfdFlags& flags) {
  const RetentionFlags& keep = flags.retention;
  return {.keep_ns = keep.days * kNsPerDay,
          .max_bytes = keep.mib << 20,
          .audit = {.keep_ns = keep.audit_days * kNsPerDay, .user_bytes = keep.audit_mib << 20}};
}

absl::Status AccessRules::Apply(const PerfdFlags& flags,
                                const std::function<void(IdentityOptions identity)>& take) {
  IdentityOptions identity{.admin_group = flags.admin_group,
                           .tls_admins = {flags.tls_admins.begin(), flags.tls_admins.end()},
                           .own_uid = ::getuid()};
  absl::Status status;
  if (!flags.agent_user.empty()) {
    const absl::StatusOr<uint32_t> found = accounts_.Uid(flags.agent_user);
    const bool as_before = absl::IsUnavailable(found.status()) && flags.agent_user == agent_user_;
    if (found.ok()) {
      identity.agent_uid = *found;
    } else if (as_before) {
      identity.agent_uid = agent_uid_;
    }
    if (!found.ok()) {
      status = absl::Status(found.status().code(),
                            absl::StrCat("access.agent_user: ", found.status().message(),
                                         as_before ? ": it stays the uid that was found before"
                                                   : ": no agent serves nodes as that user"));
    }
  }
  agent_user_ = flags.agent_user;
  agent_uid_ = identity.agent_uid;
  take(std::move(identity));
  return status;
}

absl::StatusOr<IdentityOptions> AccessRules::AtStart(const PerfdFlags& flags) {
  IdentityOptions identity;
  RETURN_IF_ERROR(Apply(flags, [&](IdentityOptions rules) { identity = std::move(rules); }));
  return identity;
}

std::vector<LiveSetting> LiveSettings(Pipeline& pipeline, GrpcHost& host, PolicySource& policy,
                                      AccessRules& access, TlsGate& tls, Limits& limits) {
  return {{"log", ApplyLog},
          {"policy", [&policy](const PerfdFlags&) { return policy.Reload(); }},
          {"retention",
           [&pipeline](const PerfdFlags& flags) {
             pipeline.SetRetention(RetentionOf(flags));
             return absl::OkStatus();
           }},
          {"limits",
           [&host, &limits](const PerfdFlags& flags) {
             limits.Set(flags.limits);
             host.RenewLimits();
             return absl::OkStatus();
           }},
          // Before the certificates, which end what does not hold any more.
          {"list of revoked certificates",
           [&tls](const PerfdFlags& flags) { return tls.RenewRevoked(flags.tls); }},
          {"certificate", [&host](const PerfdFlags& flags) { return host.RenewTls(flags.tls); }},
          {"access",
           [&host, &access](const PerfdFlags& flags) {
             return access.Apply(flags, [&host](IdentityOptions identity) {
               host.SetIdentity(std::move(identity));
             });
           },
           true}};
}

void ReadFirst(PolicySource& policy) {
  const absl::Status read = policy.Reload();
  if (!read.ok()) LogError("no job is profiled by policy: {}", std::string(read.message()));
}

}  // namespace perfd::daemon
