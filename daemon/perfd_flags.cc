#include "daemon/perfd_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "core/service/config_file.h"
#include "daemon/limits/limit_table.h"
#include "daemon/perfd_config.h"

namespace perfd::daemon {
namespace {

constexpr int kUsage = 2;
constexpr int kInvalidConfig = 5;  // as the client's "invalid spec"

constexpr char kFooter[] =
    "One per cluster. Agents and clients reach it by a Unix socket, whose peers' uids decide what "
    "they may do, or by TCP\n"
    "with mutual TLS. It writes only below --store-dir and beside --socket.\n\n"
    "EXAMPLES\n"
    "  perfd                                              as root, for this host\n"
    "  perfd --store-dir ~/perfd --socket ~/perfd/sock    one's own, without root\n"
    "  perfd --listen-tcp 0.0.0.0:9753 --tls-ca ca.pem --tls-cert server.pem --tls-key "
    "server.key\n"
    "  perfd --config /etc/perfd/perfd.yaml --check-config   what the file and the flags come "
    "to\n\n"
    "SIGTERM and SIGINT end it in good order; running profiles go on at the next start. SIGHUP "
    "reads --config and --policy again\n"
    "and opens --log-file anew; with none of them it ends perfd. Flags win over the file.\n"
    "EXIT CODES  0 ended by a signal   1 failure   2 usage   5 invalid configuration";

void DeclareRetention(CLI::App& app, RetentionFlags& keep) {
  app.add_option("--retention-days", keep.days, "finished profiles are kept so long; 0: for ever")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, kMaxRetentionDays));
  app.add_option("--retention-mib", keep.mib,
                 "above this size the oldest profiles of who has most go; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, kMaxRetentionMib));
  app.add_option("--audit-days", keep.audit_days,
                 "entries of the audit log are kept so long; 0: for ever")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, kMaxRetentionDays));
  app.add_option("--audit-mib", keep.audit_mib,
                 "above this size a user's oldest entries of the audit log go; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, kMaxRetentionMib));
}

void Declare(CLI::App& app, PerfdFlags& flags, bool* only_check) {
  app.footer(absl::StrCat(
      kFooter, "\n\nLIMITS  what may be held of perfd, in the file only (docs/limits.md)\n",
      LimitsAsText()));
  app.set_version_flag("--version", std::string("perfd ") + kVersion);
  app.add_option("--config", flags.config, "configuration file; see docs/services.md");
  app.add_flag("--check-config", *only_check, "print the configuration that results, and end");
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
  app.add_option("--tls-revoked", flags.tls.revoked,
                 "file of certificates that are not accepted; see docs/security.md");
  app.add_option("--tls-admin", flags.tls_admins,
                 "user who may profile anyone over TCP; may be repeated");
  app.add_option("--metrics-listen", flags.metrics_listen,
                 "HOST:PORT of /metrics and /profiles; port 0: any")
      ->capture_default_str();
  app.add_flag("--metrics-names", flags.metrics_names,
               "/metrics names users, programs, functions and files; see docs/metrics.md");
  app.add_flag("--open-reports", flags.open_reports,
               "everyone who reaches that port may read every report, without its key");
  app.add_option("--report-url", flags.report_url,
                 "what links to reports begin with, e.g. https://perf.site (default: that port)");
  app.add_option("--archive", flags.archive_dir,
                 "folder that gets a JSON file of every finished profile");
  app.add_option("--archive-days", flags.archive_days, "files there are kept so long; 0: for ever")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, kMaxRetentionDays));
  app.add_option("--archive-mib", flags.archive_mib,
                 "above this size the oldest files there go; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, kMaxRetentionMib));
  app.add_option(
      "--policy", flags.policy,
      "file that says which jobs schedulers may have profiled; see docs/scheduler_hook.md");
  app.add_option("--admin-group", flags.admin_group, "members of this group may profile anyone");
  app.add_option(
      "--agent-user", flags.agent_user,
      "agents of this user serve whole nodes, as those of root and of perfd's own user do");
  DeclareRetention(app, flags.retention);
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->capture_default_str()
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  app.add_option("--log-file", flags.log_file,
                 "append the log to this file instead of standard error");
}

// False: the program ends with *exit_code; what there is to say was printed.
bool ParseOver(int argc, char** argv, PerfdFlags* flags, bool* only_check, int* exit_code) {
  CLI::App app("perfd, the daemon of the remote profiler");
  Declare(app, *flags, only_check);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : kUsage;
    return false;
  }
  return true;
}

// `flags` name the file; what it says is taken, then the command line again.
absl::Status ReadFile(int argc, char** argv, PerfdFlags* flags) {
  if (flags->config.empty()) return absl::OkStatus();
  PerfdFlags from_file;
  RETURN_IF_ERROR(ReadConfigFile(flags->config, PerfdConfig(from_file)));
  bool only_check = false;
  int exit_code = 0;
  if (!ParseOver(argc, argv, &from_file, &only_check, &exit_code))
    return absl::InternalError("the command line cannot be read twice");
  *flags = std::move(from_file);
  return absl::OkStatus();
}

}  // namespace

bool ParsePerfdFlags(int argc, char** argv, PerfdFlags* flags, int* exit_code) {
  bool only_check = false;
  if (!ParseOver(argc, argv, flags, &only_check, exit_code)) return false;
  const absl::Status status = ReadFile(argc, argv, flags);
  if (!status.ok()) {
    std::fprintf(stderr, "perfd: %s\n", std::string(status.message()).c_str());
    *exit_code = kInvalidConfig;
    return false;
  }
  if (!only_check) return true;
  std::fputs(FormatConfig(PerfdConfig(*flags)).c_str(), stdout);
  *exit_code = 0;
  return false;
}

absl::StatusOr<PerfdFlags> ParsePerfdFlagsAgain(int argc, char** argv) {
  PerfdFlags flags;
  bool only_check = false;
  int exit_code = 0;
  if (!ParseOver(argc, argv, &flags, &only_check, &exit_code))
    return absl::InternalError("the command line cannot be read twice");
  RETURN_IF_ERROR(ReadFile(argc, argv, &flags));
  return flags;
}

}  // namespace perfd::daemon
