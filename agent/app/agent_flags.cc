#include "agent/app/agent_flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/base/host_name.h"
#include "core/base/version.h"

namespace perfd {
namespace {

// A user's home is often shared by all nodes, and a user may run several programs under `exec`: each has its own spool.
std::string DefaultSpool(const AgentFlags& flags) {
  if (!flags.options.user_mode) return "/var/lib/perf-agent/spool";
  std::string own = flags.options.node;
  if (flags.command == AgentCommand::kExec) absl::StrAppend(&own, "-", ::getpid());
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return absl::StrCat(state, "/perf-agent/spool-", own);
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return absl::StrCat(home, "/.local/state/perf-agent/spool-", own);
  return absl::StrCat("/tmp/perf-agent-", ::geteuid(), "/spool-", own);
}

std::string DefaultAddress() {
  const char* address = std::getenv("PERFD_ADDRESS");
  return address != nullptr && *address != 0 ? address : "unix:/run/perfd/perfd.sock";
}

constexpr char kFooter[] =
    "Examples:\n"
    "  perf-agent                                  serve the perfd on this host (as root)\n"
    "  perf-agent --user-mode --address unix:/tmp/me/perfd.sock\n"
    "                                              serve one's own perfd, for one's own processes\n"
    "  perf-agent exec -- mpirun -n 4 ./app        run a program under an agent of one's own\n"
    "  perf-agent heal --all                       restore every rank of this node, without agent or daemon\n"
    "  touch /etc/perfd/no-injection               stop altering loops on this node at once\n"
    "  perf-agent doctor                           what this node needs, with the line that fixes it\n"
    "Exit codes: 0 ok, 1 failure, 2 usage; exec: the program's own.";

}  // namespace

bool ParseAgentFlags(int argc, char** argv, AgentFlags* flags, int* exit_code) {
  CLI::App app{"perf-agent - measures the ranks of one node for perfd"};
  AgentOptions& options = flags->options;
  std::string level = "info";
  uint64_t spool_mib = options.spool_limit_bytes >> 20;
  int64_t daemon_uid = -1;
  options.dial.address = DefaultAddress();
  app.add_option("--address", options.dial.address, "perfd: unix:PATH or HOST:PORT [$PERFD_ADDRESS]")
      ->capture_default_str();
  app.add_option("--tls-ca", options.dial.tls_ca, "PEM file of the site CA (with HOST:PORT)");
  app.add_option("--tls-cert", options.dial.tls_cert, "PEM file of this agent's certificate");
  app.add_option("--tls-key", options.dial.tls_key, "PEM file of this agent's key");
  app.add_option("--daemon-uid", daemon_uid, "accept a perfd that runs as this user besides root and ourselves");
  app.add_option("--node", options.node, "name of this node [host name]");
  app.add_option("--spool-dir", options.spool_directory, "folder for windows that perfd does not have yet");
  app.add_option("--spool-limit-mib", spool_mib, "most MiB in the spool")->capture_default_str()->check(
      CLI::Range(1, 1 << 20));
  app.add_option("--reader", options.reader_binary, "path of perf-agent-reader [beside this program]");
  app.add_option("--tracer", options.tracer_binary, "path of perf-agent-tracer [beside this program]");
  app.add_option("--journal-dir", options.journal_directory, "folder with what is in ranks now [SPOOL-DIR-journal]");
  app.add_option("--disable-file", options.disable_file, "while this file exists, no loop on this node is altered")
      ->capture_default_str();
  app.add_flag("!--no-injection", options.inject, "never alter a loop: sampling only");
  app.add_flag("--allow-recovery", options.allow_recovery,
               "let requests ask for recovery mode: variants of very short loops run in the ranks' own threads");
  app.add_flag("--user-mode", options.user_mode, "serve only one's own processes, without root");
  app.add_option("--log-level", level, "debug, info, warning or error")->capture_default_str();
  app.set_version_flag("--version", absl::StrCat("perf-agent ", kVersion));
  app.footer(kFooter);
  app.fallthrough();
  auto* exec = app.add_subcommand("exec", "start a program under a user's own agent");
  exec->add_option("program", flags->program, "the program and its arguments, after --")->required();
  exec->positionals_at_end();
  auto* heal = app.add_subcommand("heal", "take out of ranks what an agent left there");
  heal->add_option("pid", flags->heal.pids, "processes");
  heal->add_flag("--all", flags->heal.all, "every rank of this node");
  auto* doctor = app.add_subcommand("doctor", "check what this node needs");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  if (const absl::Status status = ParseLogLevel(level, &flags->log_level); !status.ok()) {
    std::fprintf(stderr, "perf-agent: %s\n", std::string(status.message()).c_str());
    *exit_code = 2;
    return false;
  }
  if (daemon_uid >= 0) options.dial.daemon_uid = static_cast<uint32_t>(daemon_uid);
  if (exec->parsed()) flags->command = AgentCommand::kExec;
  if (heal->parsed()) flags->command = AgentCommand::kHeal;
  if (doctor->parsed()) flags->command = AgentCommand::kDoctor;
  options.user_mode |= ::geteuid() != 0;
  options.spool_limit_bytes = spool_mib << 20;
  if (options.node.empty()) options.node = HostName();
  if (options.spool_directory.empty()) options.spool_directory = DefaultSpool(*flags);
  return true;
}

}  // namespace perfd
