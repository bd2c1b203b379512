#include "daemon/perfd_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "core/base/version.h"

namespace perfd {
namespace {

constexpr char kFooter[] =
    "One per cluster. Agents and clients reach it by a Unix socket, whose peers' uids decide what "
    "they may do, or by TCP\n"
    "with mutual TLS. It writes only below --store-dir and beside --socket.\n\n"
    "EXAMPLES\n"
    "  perfd                                              as root, for this host\n"
    "  perfd --store-dir ~/perfd --socket ~/perfd/sock    one's own, without root\n"
    "  perfd --listen-tcp 0.0.0.0:9753 --tls-ca ca.pem --tls-cert server.pem --tls-key "
    "server.key\n\n"
    "SIGTERM and SIGINT end it in good order; running profiles go on at the next start.\n"
    "EXIT CODES  0 ended by a signal   1 failure   2 usage";

void Declare(CLI::App& app, PerfdFlags& flags, std::string& level) {
  app.footer(kFooter);
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
  app.add_option("--log-level", level, "debug, info, warning or error")->capture_default_str();
}

}  // namespace

bool ParsePerfdFlags(int argc, char** argv, PerfdFlags* flags, int* exit_code) {
  CLI::App app("perfd, the daemon of the remote profiler");
  std::string level = "info";
  Declare(app, *flags, level);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  const absl::Status status = ParseLogLevel(level, &flags->log_level);
  if (status.ok()) return true;
  std::fprintf(stderr, "perfd: %s\n", std::string(status.message()).c_str());
  *exit_code = 2;
  return false;
}

}  // namespace perfd
