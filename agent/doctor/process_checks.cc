#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/doctor/check_scope.h"
#include "agent/procfs/read_file.h"
#include "core/base/unique_fd.h"

extern char** environ;

namespace perfd::agent {
namespace {

constexpr size_t kSmallFile = 65536;
constexpr int kReaderTimeoutMs = 2000;
constexpr rlim_t kWantedDescriptors = 65536;  // every thread of the largest nodes, with room
constexpr int kWantedMajor = 5;  // 5.12 copies pinned pages inside fork (design: refuse beforehand)
constexpr int kWantedMinor = 12;

// Nothing to mend: whoever wonders why a program is refused finds it here. The rule is ProcessRights'.
void TellOfKeptPrograms(const CheckScope& scope) {
  scope.Add(
      {.name = "programs kept from their users",
       .ok = true,
       .optional = true,
       .found = absl::StrCat("setuid and setgid, with file capabilities, with "
                             "prctl(PR_SET_DUMPABLE, 0), run but not readable: ",
                             scope.options.user_mode
                                 ? "not profiled in user mode"
                                 : "profiled for administrators only, not for who runs them")});
}

struct CapabilityRule {
  int number;
  const char* name;
  bool optional;
  const char* why;
  int instead = -1;  // another one that gives the same right
};

void CheckCapability(const CheckScope& scope, const CapabilityRule& rule) {
  const bool held = scope.Has(rule.number) || (rule.instead >= 0 && scope.Has(rule.instead));
  scope.Add({.name = rule.name,
             .ok = held,
             .optional = rule.optional || scope.options.user_mode,
             .found = absl::StrCat(held ? "effective: " : "missing: ", rule.why),
             .fix = scope.SetcapLine()});
}

void CheckYama(const CheckScope& scope) {
  const absl::StatusOr<int64_t> value = scope.procfs.SysctlInt("kernel/yama/ptrace_scope");
  NodeCheck check{.name = "kernel.yama.ptrace_scope", .optional = true};
  check.ok = absl::IsNotFound(value.status()) || (value.ok() && *value == 0) ||
             (scope.Has(CAP_SYS_PTRACE) && value.ok() && *value < 3);
  check.found = value.ok() ? absl::StrCat(*value) : "no Yama in this kernel";
  // 3 cannot be lowered without a reboot (Documentation/admin-guide/LSM/Yama.rst).
  check.fix = value.ok() && *value == 3
                  ? "sed -i 's/^kernel.yama.ptrace_scope.*/kernel.yama.ptrace_scope = 0/' "
                    "/etc/sysctl.d/*.conf && reboot"
                  : "sysctl -w kernel.yama.ptrace_scope=0";
  scope.Add(std::move(check));
}

void CheckDescriptors(const CheckScope& scope) {
  rlimit limit{};
  static_cast<void>(::getrlimit(RLIMIT_NOFILE, &limit));
  scope.Add(
      {.name = "RLIMIT_NOFILE",
       .ok = limit.rlim_max >= kWantedDescriptors,
       .optional = true,
       .found = absl::StrCat("hard limit ", limit.rlim_max, ", one per sampled thread is needed"),
       .fix = absl::StrCat("prlimit --pid ", ::getpid(), " --nofile=", kWantedDescriptors, ":",
                           kWantedDescriptors, "  # for good: LimitNOFILE= of the service")});
}

void CheckKernelVersion(const CheckScope& scope) {
  const std::string release = std::string(absl::StripAsciiWhitespace(
      ReadWholeFile(scope.procfs.root() + "/sys/kernel/osrelease", kSmallFile)
          .value_or("unknown")));
  const std::vector<std::string> parts = absl::StrSplit(release, absl::ByAnyChar(".-"));
  int major = 0;
  int minor = 0;
  const bool known =
      parts.size() >= 2 && absl::SimpleAtoi(parts[0], &major) && absl::SimpleAtoi(parts[1], &minor);
  scope.Add(
      {.name = "kernel version",
       .ok = known && (major > kWantedMajor || (major == kWantedMajor && minor >= kWantedMinor)),
       .optional = true,
       .found = release,
       .fix = "apt-get install linux-image-amd64  # 5.12 or later, then reboot"});
}

void CheckCgroups(const CheckScope& scope) {
  std::string found;
  const absl::StatusOr<std::vector<MountEntry>> mounts = scope.procfs.Mounts();
  if (mounts.ok()) {
    for (const MountEntry& mount : *mounts) {
      const std::vector<absl::string_view> options = absl::StrSplit(mount.options, ',');
      const bool v1 = mount.type == "cgroup" &&
                      std::find(options.begin(), options.end(), "perf_event") != options.end();
      if (v1 || (mount.type == "cgroup2" && found.empty())) {
        found = absl::StrCat(mount.type, " at ", mount.directory);
      }
    }
  }
  scope.Add({.name = "cgroup for perf",
             .ok = !found.empty(),
             .optional = true,
             .found = found.empty() ? "no unified hierarchy and no perf_event controller" : found,
             .fix = "mount -t cgroup2 cgroup2 /sys/fs/cgroup"});
}

void CheckHugePages(const CheckScope& scope) {
  const std::string file = scope.options.sys_root + "/kernel/mm/transparent_hugepage/enabled";
  const absl::StatusOr<std::string> text = ReadWholeFile(file, kSmallFile);
  scope.Add({.name = "transparent huge pages",
             .ok = text.ok() && text->find("[never]") == std::string::npos,
             .optional = true,
             .found = std::string(text.ok() ? absl::StripAsciiWhitespace(*text)
                                            : text.status().message()),
             .fix = absl::StrCat("echo madvise > ", file)});
}

void CheckSeccomp(const CheckScope& scope) {
  const absl::StatusOr<std::string> actions =
      ReadWholeFile(scope.procfs.root() + "/sys/kernel/seccomp/actions_avail", kSmallFile);
  const bool ok = actions.ok() && actions->find("kill_process") != std::string::npos;
  scope.Add({.name = "seccomp filters",
             .ok = ok,
             .found = ok ? "available: the reader of users' files is confined"
                         : "not available: users' files cannot be read in a confined process",
             .fix = "boot a kernel with CONFIG_SECCOMP_FILTER=y"});
}

// Exit code of `binary --version`; -1 when it does not start, does not end in time or is killed.
int RunVersion(const std::string& binary) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  std::string program = binary;
  std::string flag = "--version";
  char* const arguments[] = {program.data(), flag.data(), nullptr};
  pid_t child = 0;
  const int started = ::posix_spawn(&child, binary.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (started != 0) return -1;
  const UniqueFd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  pollfd ended{handle.get(), POLLIN, 0};
  if (!handle.valid() || ::poll(&ended, 1, kReaderTimeoutMs) != 1) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

NodeCheck CheckProgram(const std::string& name, const std::string& binary) {
  NodeCheck check{.name = name};
  if (::access(binary.c_str(), X_OK) != 0) {
    check.found = absl::StrCat(binary, ": ", std::strerror(errno));
    check.fix = absl::StrCat("install -m 0755 ", name, " ", binary);
  } else {
    const int code = RunVersion(binary);
    check.ok = code == 0;
    check.found = check.ok ? absl::StrCat(binary, " runs")
                           : absl::StrCat(binary, " --version fails with code ", code);
    check.fix =
        absl::StrCat("ldd ", binary, "  # a library is missing, or it is of another version");
  }
  return check;
}

void CheckRights(const CheckScope& scope) {
  const CapabilityRule rules[] = {
      {CAP_PERFMON, "CAP_PERFMON", scope.Has(CAP_SYS_ADMIN), "samples any user's processes"},
      {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", false, "reads any user's environment and memory map"},
      {CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", true,
       "is told by a rank what it else looks for; reads deleted binaries through map_files",
       CAP_SYS_ADMIN},
      {CAP_IPC_LOCK, "CAP_IPC_LOCK", true, "rings beyond kernel.perf_event_mlock_kb"},
      {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", true,
       "reads binaries in users' private folders"},
  };
  for (const CapabilityRule& rule : rules) CheckCapability(scope, rule);
  const bool changes_user = scope.Has(CAP_SETUID) && scope.Has(CAP_SETGID);
  scope.Add({.name = "CAP_SETUID, CAP_SETGID",
             .ok = changes_user,
             .optional = scope.options.user_mode,
             .found = absl::StrCat(changes_user ? "effective" : "missing",
                                   ": reads users' binaries as their owner"),
             .fix = "systemctl restart perf-agent  # its unit gives it: deploy/systemd"});
  CheckYama(scope);
  CheckDescriptors(scope);
  TellOfKeptPrograms(scope);
}

void CheckKernel(const CheckScope& scope) {
  CheckKernelVersion(scope);
  CheckCgroups(scope);
  CheckHugePages(scope);
  CheckSeccomp(scope);
}

void CheckPrograms(const CheckScope& scope) {
  if (!scope.options.reader_binary.empty())
    scope.Add(CheckProgram("perf-agent-reader", scope.options.reader_binary));
  std::error_code error;
  const bool debug = std::filesystem::is_directory(scope.options.debug_root + "/.build-id", error);
  scope.Add({.name = "debug symbols of libc",
             .ok = debug,
             .optional = true,
             .found = debug ? "installed"
                            : "none: functions of system libraries stay unnamed where stripped",
             .fix = "apt-get install libc6-dbg"});
}

}  // namespace perfd::agent
