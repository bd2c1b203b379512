// perfd: accepts profile requests, directs agents, merges and stores what they measure, serves reports and metrics.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "daemon/metrics/metrics_server.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/service/grpc_host.h"
#include "daemon/service/stop_signal.h"
#include "daemon/service/unix_door.h"
#include "daemon/store/sqlite_store.h"

namespace perfd {
namespace {

constexpr int64_t kNsPerDay = 24 * 3600 * kNsPerSecond;
constexpr absl::Duration kShutdownWithin = absl::Seconds(5);

struct Flags {
  std::string store_dir = "/var/lib/perfd";
  std::string socket = "/run/perfd/perfd.sock";
  TlsOptions tls;
  std::vector<std::string> tls_admins;
  std::string metrics_listen = "127.0.0.1:9754";
  std::string admin_group;
  int64_t retention_days = 90;
  int64_t retention_mib = 0;
  std::string log_level = "info";
};

void Declare(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", std::string("perfd ") + kVersion);
  app.add_option("--store-dir", flags.store_dir, "folder of the database, on a local disk")
      ->capture_default_str();
  app.add_option("--socket", flags.socket, "Unix socket for agents and clients")
      ->capture_default_str();
  app.add_option("--listen-tcp", flags.tls.listen,
                 "HOST:PORT for agents and clients; needs the three --tls files");
  app.add_option("--tls-ca", flags.tls.ca,
                 "CA that signs agents and clients (see deploy/make-certs.sh)");
  app.add_option("--tls-cert", flags.tls.cert, "certificate of this daemon");
  app.add_option("--tls-key", flags.tls.key, "key of this daemon, mode 0600");
  app.add_option("--tls-admin", flags.tls_admins,
                 "user who may profile anyone over TCP; may be repeated");
  app.add_option("--metrics-listen", flags.metrics_listen, "HOST:PORT of /metrics; port 0: any")
      ->capture_default_str();
  app.add_option("--admin-group", flags.admin_group, "members of this group may profile anyone");
  app.add_option("--retention-days", flags.retention_days,
                 "finished profiles are kept so long; 0: for ever")
      ->capture_default_str()
      ->check(CLI::Range(0, 36500));
  app.add_option("--retention-mib", flags.retention_mib,
                 "above this size the oldest profiles go; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 24));
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->capture_default_str();
}

absl::Status Serve(const Flags& flags) {
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
  CLI::App app("perfd, the daemon of the remote profiler");
  perfd::Flags flags;
  perfd::Declare(app, flags);
  CLI11_PARSE(app, argc, argv);
  perfd::LogLevel level{};
  absl::Status status = perfd::ParseLogLevel(flags.log_level, &level);
  perfd::InitLog("perfd", level);
  if (status.ok()) status = perfd::Serve(flags);
  if (status.ok()) return 0;
  perfd::LogError("{}", std::string(status.message()));
  return 1;
}
