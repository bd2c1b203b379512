// perfd: accepts profile requests, directs agents, merges and stores what they measure, serves reports and metrics.
#include <memory>
#include <string>
#include <vector>

#include "core/base/lock_checks.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "core/service/accounts.h"
#include "core/service/service_notify.h"
#include "daemon/audit_trim_log.h"
#include "daemon/await_stop.h"
#include "daemon/live_settings.h"
#include "daemon/perfd_flags.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/policy/policy_source.h"
#include "daemon/reload.h"
#include "daemon/reload_thread.h"
#include "daemon/report_doors.h"
#include "daemon/service/doors/grpc_host.h"
#include "daemon/service/doors/grpc_log.h"
#include "daemon/service/doors/unix_door.h"
#include "daemon/service/stop_signal.h"
#include "daemon/stop_deadline.h"
#include "daemon/store/sqlite_store.h"

namespace perfd::daemon {
namespace {

constexpr absl::Duration kStopWithin = absl::Seconds(5);  // all of it
constexpr absl::Duration kCallsWithin = absl::Seconds(2);

// Figures are read from the parts of the daemon, also where one of these cannot begin.
struct StopsMetrics {
  MetricsPage& metrics;
  ~StopsMetrics() { metrics.Stop(); }
};

absl::StatusOr<std::unique_ptr<SqliteStore>> OpenStore(const PerfdFlags& flags,
                                                       MetricsPage& metrics, AuditTrimLog& audit) {
  StoreOptions options;
  options.directory = flags.store_dir;
  options.audit_user_bytes = RetentionOf(flags).audit.user_bytes;
  options.on_audit = [&audit](const AuditChange& change) { audit.Record(change); };
  options.on_commit = [&metrics](double seconds) { metrics.ObserveCommit(seconds); };
  return SqliteStore::Open(std::move(options));
}

absl::Status OpenTcpDoor(GrpcHost& host, const TlsOptions& options) {
  if (options.listen.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string address, host.ListenTls(options));
  LogInfo("mutual TLS on {}", address);
  return absl::OkStatus();
}

absl::Status Serve(const PerfdFlags& flags, const Reloader::Read& read_flags) {
  const ServiceNotify notify = ServiceNotify::FromEnvironment();
  ASSIGN_OR_RETURN(const StopSignal stop, StopSignal::Catch());
  StopDeadline deadline;  // ends after everything else
  RaiseFileLimit();
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> http,
                   HttpServer::Listen(flags.metrics_listen));
  MetricsPage metrics;
  const SystemClock clock;
  AuditTrimLog audit(clock, [](const std::string& line) { LogWarning("{}", line); });
  ASSIGN_OR_RETURN(const std::unique_ptr<SqliteStore> store, OpenStore(flags, metrics, audit));
  ASSIGN_OR_RETURN(const ReportLinks links, LinksOf(flags, *store, http->address()));
  ASSIGN_OR_RETURN(const std::unique_ptr<UnixDoor> door, UnixDoor::Open(flags.socket));

  PolicySource policy(flags.policy);
  ReadFirst(policy);
  Archiver archive(ArchiveOf(flags, *store), clock);
  TlsGate tls;
  PipelineOptions options;
  options.retention = RetentionOf(flags);
  options.on_attach = [&](double seconds) { metrics.ObserveAttach(seconds); };
  options.on_stop = [&](double seconds) { metrics.ObserveStop(seconds); };
  options.on_hook = [&](double seconds) { metrics.ObserveHook(seconds); };
  options.extra_checks = [&] { return OwnChecks(*door, archive, policy, tls); };
  options.on_final = [&](const std::string& id) { archive.Add(id); };
  options.report_url = [&](const std::string& id) { return links.UrlOf(id); };
  options.policy = &policy;
  Limits& limits = *options.limits;
  limits.Set(flags.limits);
  Pipeline pipeline(*store, clock, std::move(options));
  RETURN_IF_ERROR(pipeline.Restore());
  Accounts accounts;
  AccessRules access(accounts);
  ASSIGN_OR_RETURN(IdentityOptions identity, access.AtStart(flags));
  GrpcHost host(pipeline, std::move(identity), accounts, tls, limits);
  RETURN_IF_ERROR(OpenTcpDoor(host, flags.tls));
  pipeline.Run();
  archive.Begin();
  const StopsMetrics stops_metrics{metrics};
  metrics.Serve([&] { return FiguresOf(flags, pipeline, *http, archive, audit, tls); });
  ReportSite site(*http, links, SourceOf(pipeline, metrics));
  RETURN_IF_ERROR(site.Serve());
  RETURN_IF_ERROR(door->Serve([&](UniqueFd fd, uint32_t uid) { host.Adopt(std::move(fd), uid); }));
  LogInfo("perfd {} listens on {}; metrics on http://{}/metrics", kVersion, flags.socket,
          http->address());

  ReloadThread reload(
      Reloader(flags, read_flags, LiveSettings(pipeline, host, policy, access, tls, limits)),
      notify);
  const int signal = AwaitStop(
      stop, notify, {.turns = [&] { return pipeline.turns(); }, .reload = reload.Asking()});
  deadline.Begin(kStopWithin);
  LogInfo("stopping on signal {}", signal);
  door->Stop();
  host.Shutdown(kCallsWithin);
  pipeline.Stop();  // before what may wait for a disk or a large page
  site.Stop();
  metrics.Stop();
  archive.Stop();
  return absl::OkStatus();
}

}  // namespace
}  // namespace perfd::daemon

int main(int argc, char** argv) {
  perfd::SkipLockOrderChecks();
  perfd::daemon::PerfdFlags flags;
  int exit_code = 0;
  if (!perfd::daemon::ParsePerfdFlags(argc, argv, &flags, &exit_code)) return exit_code;
  perfd::InitLog("perfd", perfd::LogLevel::kInfo);
  const perfd::daemon::GrpcLog grpc_log;
  absl::Status status = perfd::daemon::ApplyLog(flags);
  if (status.ok())
    status = perfd::daemon::Serve(flags,
                                  [=] { return perfd::daemon::ParsePerfdFlagsAgain(argc, argv); });
  if (status.ok()) return 0;
  perfd::LogError("{}", std::string(status.message()));
  return 1;
}
