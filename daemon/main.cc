// perfd: accepts profile requests, directs agents, merges and stores what they measure, serves reports and metrics.
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/perfd_flags.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/service/grpc_host.h"
#include "daemon/service/stop_signal.h"
#include "daemon/service/unix_door.h"
#include "daemon/store/sqlite_store.h"

namespace perfd {
namespace {

constexpr int64_t kNsPerDay = 24 * 3600 * kNsPerSecond;
constexpr absl::Duration kShutdownWithin = absl::Seconds(5);

absl::Status Serve(const PerfdFlags& flags) {
  ASSIGN_OR_RETURN(const StopSignal stop, StopSignal::Catch());
  RaiseFileLimit();
  ASSIGN_OR_RETURN(const std::unique_ptr<MetricsServer> metrics,
                   MetricsServer::Create(flags.metrics_listen));
  StoreOptions store_options;
  store_options.directory = flags.store_dir;
  store_options.on_commit = [&](double seconds) { metrics->ObserveCommit(seconds); };
  ASSIGN_OR_RETURN(const std::unique_ptr<SqliteStore> store,
                   SqliteStore::Open(std::move(store_options)));
  ASSIGN_OR_RETURN(const std::unique_ptr<UnixDoor> door, UnixDoor::Open(flags.socket));

  const SystemClock clock;
  PipelineOptions options;
  options.retention = {flags.retention_days * kNsPerDay, flags.retention_mib << 20};
  options.on_attach = [&](double seconds) { metrics->ObserveAttach(seconds); };
  options.on_stop = [&](double seconds) { metrics->ObserveStop(seconds); };
  options.extra_checks = [&] { return door->Checks(); };
  Pipeline pipeline(*store, clock, std::move(options));
  RETURN_IF_ERROR(pipeline.Restore());
  GrpcHost host(pipeline, {.admin_group = flags.admin_group,
                           .tls_admins = {flags.tls_admins.begin(), flags.tls_admins.end()},
                           .own_uid = ::getuid()});
  if (!flags.tls.listen.empty()) {
    ASSIGN_OR_RETURN(const std::string address, host.ListenTls(flags.tls));
    LogInfo("mutual TLS on {}", address);
  }
  pipeline.Run();
  metrics->Serve([&] { return pipeline.Figures(); });
  RETURN_IF_ERROR(door->Serve([&](UniqueFd fd, uint32_t uid) { host.Adopt(std::move(fd), uid); }));
  LogInfo("perfd {} listens on {}; metrics on http://{}/metrics", kVersion, flags.socket,
          metrics->address());

  LogInfo("stopping on signal {}", stop.Wait());
  door->Stop();
  host.Shutdown(kShutdownWithin);
  metrics->Stop();
  pipeline.Stop();
  return absl::OkStatus();
}

}  // namespace
}  // namespace perfd

int main(int argc, char** argv) {
  perfd::PerfdFlags flags;
  int exit_code = 0;
  if (!perfd::ParsePerfdFlags(argc, argv, &flags, &exit_code)) return exit_code;
  perfd::InitLog("perfd", flags.log_level);
  const absl::Status status = perfd::Serve(flags);
  if (status.ok()) return 0;
  perfd::LogError("{}", std::string(status.message()));
  return 1;
}
