#include "agent/app/agent_flags.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "agent/app/agent_config.h"
#include "core/base/host_name.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "core/service/account.h"
#include "core/service/config_file.h"

namespace perfd::agent {
namespace {

constexpr int kUsage = 2;
constexpr int kInvalidConfig = 5;  // as perfd

// A user's home is often shared by all nodes, and a user may run several programs under `exec`:
// each has its own spool. Empty: no folder of the user's is known; below /tmp anybody could have made it before.
// Source: XDG Base Directory Specification 0.8.
std::string DefaultSpool(const AgentFlags& flags, const std::string& node) {
  if (!flags.options.user_mode) return "/var/lib/perf-agent/spool";
  std::string own = node;
  if (flags.command == AgentCommand::kExec) absl::StrAppend(&own, "-", ::getpid());
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return absl::StrCat(state, "/perf-agent/spool-", own);
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
    return absl::StrCat(home, "/.local/state/perf-agent/spool-", own);
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime == '/')
    return absl::StrCat(runtime, "/perf-agent/spool-", own);
  return "";
}

std::string DefaultAddress() {
  const char* address = std::getenv("PERFD_ADDRESS");
  return address != nullptr && *address != 0 ? address : "unix:/run/perfd/perfd.sock";
}

// Root, or the user of a service that was given what it takes to serve everyone.
bool MayServeNode() {
  if (::geteuid() == 0) return true;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, own) != 0) return false;
  constexpr uint32_t kNeeded = 1U << CAP_SYS_PTRACE | 1U << CAP_SETUID | 1U << CAP_SETGID;
  return (own[0].effective & kNeeded) == kNeeded;
}

constexpr char kFooter[] =
    "Examples:\n"
    "  perf-agent                                  serve the perfd on this host (as root)\n"
    "  perf-agent --user-mode --address unix:/tmp/me/perfd.sock\n"
    "                                              serve one's own perfd, for one's own processes\n"
    "  perf-agent exec -- mpirun -n 4 ./app        run a program under an agent of one's own\n"
    "  perf-agent heal --all                       restore every rank of this node, without agent "
    "or daemon\n"
    "  touch /etc/perfd/no-injection               stop altering loops on this node at once\n"
    "  perf-agent --replay perf.data --as old-run  a recording of perf as a node of one's own\n"
    "  perf-agent doctor                           what this node needs, with the line that fixes "
    "it\n"
    "  perf-agent --config FILE --check-config     what the file and the flags come to\n"
    "SIGHUP reads --config again and opens --log-file anew; with neither it ends the agent. Flags "
    "win over the file.\n"
    "Exit codes: 0 ok, 1 failure, 2 usage, 5 invalid configuration; exec: the program's own.";

void DeclareDaemon(CLI::App& app, AgentFlags& flags) {
  DialOptions& dial = flags.options.dial;
  app.add_option("--address", dial.address, "perfd: unix:PATH or HOST:PORT [$PERFD_ADDRESS]")
      ->capture_default_str();
  app.add_option("--tls-ca", dial.tls_ca, "PEM file of the site CA (with HOST:PORT)");
  app.add_option("--tls-cert", dial.tls_cert, "PEM file of this agent's certificate");
  app.add_option("--tls-key", dial.tls_key, "PEM file of this agent's key");
  app.add_option(
      "--daemon-uid", flags.daemon_user,
      "accept a perfd that runs as this user (name or number) besides root and ourselves");
}

void DeclareNode(CLI::App& app, AgentFlags& flags) {
  AgentOptions& options = flags.options;
  app.add_option("--node", options.node, "name of this node [host name]");
  app.add_option("--spool-dir", options.spool_directory,
                 "folder for windows that perfd does not have yet");
  app.add_option("--spool-limit-mib", flags.spool_limit_mib, "most MiB in the spool")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, kMaxSpoolMib));
  app.add_option("--reader", options.reader_binary,
                 "path of perf-agent-reader [beside this program]");
  app.add_option("--tracer", options.tracer_binary,
                 "path of perf-agent-tracer [beside this program]");
  app.add_option("--journal-dir", options.journal_directory,
                 "folder with what is in ranks now [SPOOL-DIR-journal]");
  app.add_option("--disable-file", options.disable_file,
                 "while this file exists, no loop on this node is altered")
      ->capture_default_str();
  app.add_flag("!--no-injection", options.inject, "never alter a loop: sampling only");
  app.add_flag("--allow-recovery", options.allow_recovery,
               "let requests ask for recovery mode: variants of very short loops run in the ranks' "
               "own threads");
  app.add_flag("--user-mode", options.user_mode, "serve only one's own processes, without root");
  app.add_option(
      "--replay", flags.replay.files,
      "a recording (perf.data) that is a node of its own, for one's own profiles; may be repeated");
  app.add_option("--as", flags.replay.nodes, "the name of that node [the file's]; may be repeated");
}

void DeclareService(CLI::App& app, AgentFlags& flags) {
  app.add_option("--config", flags.config, "configuration file; see docs/services.md");
  app.add_flag("--check-config", flags.check_config,
               "print the configuration that results, and end");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error")
      ->capture_default_str()
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  app.add_option("--log-file", flags.log_file,
                 "append the log to this file instead of standard error");
}

// False: the program ends with *exit_code; what there is to say was printed.
bool ParseOver(int argc, char** argv, AgentFlags* flags, int* exit_code) {
  CLI::App app{"perf-agent - measures the ranks of one node for perfd"};
  DeclareDaemon(app, *flags);
  DeclareNode(app, *flags);
  DeclareService(app, *flags);
  app.set_version_flag("--version", absl::StrCat("perf-agent ", kVersion));
  app.footer(kFooter);
  app.fallthrough();
  auto* exec = app.add_subcommand("exec", "start a program under a user's own agent");
  exec->add_option("program", flags->program, "the program and its arguments, after --")
      ->required();
  exec->positionals_at_end();
  auto* heal = app.add_subcommand("heal", "take out of ranks what an agent left there");
  heal->add_option("pid", flags->heal.pids, "processes");
  heal->add_flag("--all", flags->heal.all, "every rank of this node");
  heal->add_flag("--after-agent", flags->heal.after_agent, "")->group("");  // not for people
  auto* doctor = app.add_subcommand("doctor", "check what this node needs");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error) == 0 ? 0 : kUsage;
    return false;
  }
  if (exec->parsed()) flags->command = AgentCommand::kExec;
  if (heal->parsed()) flags->command = AgentCommand::kHeal;
  if (doctor->parsed()) flags->command = AgentCommand::kDoctor;
  return true;
}

AgentFlags Defaults() {
  AgentFlags flags;
  flags.options.dial.address = DefaultAddress();
  return flags;
}

// The file's name without what names cannot have.
std::string NodeOfFile(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_')
      c = '-';
  }
  return name;
}

absl::Status CompleteReplay(AgentFlags* flags) {
  ReplayFlags& replay = flags->replay;
  if (replay.files.empty() && replay.nodes.empty()) return absl::OkStatus();
  if (replay.nodes.size() > replay.files.size())
    return absl::InvalidArgumentError("--as names the node of a --replay: there are more of them");
  if (flags->command != AgentCommand::kServe)
    return absl::InvalidArgumentError("--replay takes no command beside it");
  if (replay.nodes.empty() && replay.files.size() == 1 && !flags->options.node.empty())
    replay.nodes.push_back(flags->options.node);
  // Two users' perf.data are two nodes.
  while (replay.nodes.size() < replay.files.size())
    replay.nodes.push_back(
        absl::StrCat(NodeOfFile(replay.files[replay.nodes.size()]), "-", ::geteuid()));
  for (const std::string& node : replay.nodes) {
    if (node.empty() || NodeOfFile(node) != node || node.front() == '.')
      return absl::InvalidArgumentError(absl::StrCat(
          "--as ", node,
          ": a name of letters, digits, '.', '-' and '_' that does not begin with '.'"));
  }
  const std::set<std::string> once(replay.nodes.begin(), replay.nodes.end());
  if (once.size() < replay.nodes.size())
    return absl::InvalidArgumentError(
        "two recordings cannot be the same node: name them with --as");
  flags->command = AgentCommand::kReplay;
  flags->options.user_mode = true;
  return absl::OkStatus();
}

// What is not given follows from what is.
absl::Status Complete(AgentFlags* flags) {
  AgentOptions& options = flags->options;
  RETURN_IF_ERROR(CompleteReplay(flags));
  const bool own_spool = flags->command == AgentCommand::kReplay;
  if (!flags->daemon_user.empty()) {
    ASSIGN_OR_RETURN(options.dial.daemon_uid, UidOf(flags->daemon_user));
  }
  options.user_mode |= !MayServeNode();
  options.spool_limit_bytes = SpoolLimitBytes(*flags);
  if (options.node.empty()) options.node = HostName();
  if (options.spool_directory.empty() && !own_spool)
    options.spool_directory = DefaultSpool(*flags, options.node);
  return absl::OkStatus();
}

// `flags` name the file; what it says is taken, then the command line again.
absl::Status ReadFile(int argc, char** argv, AgentFlags* flags) {
  if (!flags->config.empty()) {
    AgentFlags from_file = Defaults();
    RETURN_IF_ERROR(ReadConfigFile(flags->config, AgentConfig(from_file)));
    int exit_code = 0;
    if (!ParseOver(argc, argv, &from_file, &exit_code))
      return absl::InternalError("the command line cannot be read twice");
    *flags = std::move(from_file);
  }
  return Complete(flags);
}

}  // namespace

std::string SpoolOfNode(const AgentFlags& flags, const std::string& node) {
  const std::string& given = flags.options.spool_directory;
  return given.empty() ? DefaultSpool(flags, node) : absl::StrCat(given, "-", node);
}

bool ParseAgentFlags(int argc, char** argv, AgentFlags* flags, int* exit_code) {
  *flags = Defaults();
  if (!ParseOver(argc, argv, flags, exit_code)) return false;
  const absl::Status status = ReadFile(argc, argv, flags);
  if (!status.ok()) {
    std::fprintf(stderr, "perf-agent: %s\n", std::string(status.message()).c_str());
    *exit_code = flags->config.empty() ? kUsage : kInvalidConfig;
    return false;
  }
  if (!flags->check_config) return true;
  std::fputs(FormatConfig(AgentConfig(*flags)).c_str(), stdout);
  *exit_code = 0;
  return false;
}

absl::StatusOr<AgentFlags> ParseAgentFlagsAgain(int argc, char** argv) {
  AgentFlags flags = Defaults();
  int exit_code = 0;
  if (!ParseOver(argc, argv, &flags, &exit_code))
    return absl::InternalError("the command line cannot be read twice");
  RETURN_IF_ERROR(ReadFile(argc, argv, &flags));
  return flags;
}

}  // namespace perfd::agent
