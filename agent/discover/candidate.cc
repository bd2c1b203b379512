#include "agent/discover/candidate.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/base/utf8.h"

namespace perfd::agent {
namespace {

constexpr absl::string_view kLaunchers[] = {"mpirun",
                                            "mpiexec",
                                            "mpiexec.hydra",
                                            "orterun",
                                            "orted",
                                            "prterun",
                                            "prted",
                                            "prte",
                                            "srun",
                                            "hydra_pmi_proxy",
                                            "hydra_bstrap_proxy",
                                            "slurmstepd",
                                            "slurmd",
                                            "palsd",
                                            "pmi_proxy"};
constexpr absl::string_view kWrappers[] = {
    "sh",      "bash", "dash",    "zsh",    "ksh",    "csh",  "tcsh",   "fish",   "busybox",
    "env",     "time", "timeout", "nice",   "stdbuf", "perf", "strace", "ltrace", "numactl",
    "taskset", "sudo", "su",      "setsid", "nohup",  "ssh",  "sshd",   "tee",    "script"};
constexpr absl::string_view kInterpreters[] = {"python", "perl", "ruby", "Rscript", "julia", "java",
                                               "node",   "lua",  "php",  "sh",      "bash",  "dash",
                                               "zsh",    "ksh",  "csh",  "tcsh"};

template <size_t n>
bool Contains(const absl::string_view (&list)[n], absl::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// The first argument that is no option; "-c" and "-m" take program text or a module, not a file.
absl::string_view ScriptOf(const std::vector<std::string>& arguments) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (arguments[i] == "-c" || arguments[i] == "-m") return {};
    if (!arguments[i].empty() && arguments[i][0] != '-') return arguments[i];
  }
  return {};
}

template <typename T>
absl::Status Assign(absl::StatusOr<T> from, T* to, Candidate* candidate) {
  if (from.ok()) {
    *to = *std::move(from);
  } else if (absl::IsUnavailable(from.status()) || absl::IsPermissionDenied(from.status())) {
    if (!IsSilent(*candidate)) candidate->unread = from.status();
  } else {
    return from.status();
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

// "python3.11" is "python": versions are digits and dots after the name.
bool IsInterpreter(absl::string_view base_name) {
  while (!base_name.empty() && (absl::ascii_isdigit(static_cast<unsigned char>(base_name.back())) ||
                                base_name.back() == '.')) {
    base_name.remove_suffix(1);
  }
  return Contains(kInterpreters, base_name);
}

absl::Status ReadOwner(const ProcFs& procfs, Candidate* candidate) {
  ASSIGN_OR_RETURN(const ProcessStatus status, procfs.Status(candidate->pid));
  candidate->uid = status.real_uid;
  candidate->state = status.state;
  candidate->admission.rights = RightsOf(status);
  return absl::OkStatus();
}

absl::Status ReadExecutable(const ProcFs& procfs, Candidate* candidate) {
  absl::StatusOr<std::string> executable = procfs.Executable(candidate->pid);
  candidate->has_executable = !absl::IsNotFound(executable.status());
  if (!candidate->has_executable) return absl::OkStatus();
  return Assign(std::move(executable), &candidate->executable, candidate);
}

absl::Status ReadArguments(const ProcFs& procfs, Candidate* candidate) {
  // A kernel thread or zombie has no arguments either.
  if (!candidate->has_executable || IsStuck(*candidate)) return absl::OkStatus();
  return Assign(procfs.CommandLine(candidate->pid), &candidate->arguments, candidate);
}

absl::Status ReadRights(const ProcFs& procfs, Candidate* candidate) {
  if (candidate->state == 'Z' || candidate->state == 'X')
    return absl::OkStatus();  // CheckRunnable says so
  absl::StatusOr<Admission> admission = ReadAdmission(procfs, candidate->pid);
  if (absl::IsUnavailable(admission.status())) {
    candidate->unread = admission.status();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(admission.status());
  candidate->admission = *std::move(admission);
  return absl::OkStatus();
}

absl::Status ReadEnvironment(const ProcFs& procfs, Candidate* candidate) {
  EnvironmentMap environment;
  // The environment of a kernel thread or zombie reads as empty; some kernels refuse it.
  if (candidate->has_executable) {
    RETURN_IF_ERROR(Assign(procfs.Environment(candidate->pid), &environment, candidate));
  }
  candidate->environment = ReadRankEnvironment(environment);
  return absl::OkStatus();
}

absl::Status CheckSame(const ProcFs& procfs, const Candidate& candidate) {
  ASSIGN_OR_RETURN(const uint64_t start, procfs.StartTicks(candidate.pid));
  if (start == candidate.start_ticks) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("process ", candidate.pid, " ended and its pid was reused"));
}

std::string CommandName(const Candidate& candidate) {
  if (!candidate.executable.empty()) return std::string(BaseName(candidate.executable));
  return candidate.arguments.empty() ? candidate.name
                                     : std::string(BaseName(candidate.arguments[0]));
}

// TASK_COMM_LEN of include/linux/sched.h, less the NUL.
bool MayBeCommand(const Candidate& candidate, absl::string_view command) {
  constexpr size_t kNameBytes = 15;
  return DisplayForm(candidate.name) == DisplayForm(command.substr(0, kNameBytes));
}

bool MatchesCommand(const Candidate& candidate, absl::string_view command) {
  const auto called = [command](absl::string_view path) {
    return DisplayForm(BaseName(path)) == command;
  };
  if (called(candidate.executable)) return true;
  if (candidate.arguments.empty()) return false;
  if (called(candidate.arguments[0])) return true;
  return IsInterpreter(CommandName(candidate)) && called(ScriptOf(candidate.arguments));
}

bool BelongsToSlurmJob(const Candidate& candidate, uint32_t job) {
  if (candidate.environment.slurm_job == job) return true;
  const std::string component = absl::StrCat("job_", job);
  for (const CgroupEntry& entry : candidate.cgroups) {
    for (absl::string_view part : absl::StrSplit(entry.path, '/')) {
      if (part == component) return true;
    }
  }
  return false;
}

bool IsLauncher(absl::string_view base_name) {
  return Contains(kLaunchers, base_name);
}
bool IsWrapper(absl::string_view base_name) {
  return Contains(kWrappers, base_name);
}

// ELF identification: System V gABI chapter 4 "ELF Header" (elf(5)); EM_X86_64 with ELFCLASS32 is the x32 ABI.
absl::Status CheckRunnable(const Candidate& candidate, absl::string_view head) {
  const std::string who =
      absl::StrCat("process ", candidate.pid, " (", CommandName(candidate), ") ");
  if (candidate.state == 'Z' || candidate.state == 'X') {
    return absl::NotFoundError(who + "has ended and waits for its parent (zombie)");
  }
  if (!candidate.has_executable) {
    return absl::FailedPreconditionError(who + "is a kernel thread: it has no program to profile");
  }
  if (head.empty()) return absl::OkStatus();  // not readable here; its reader will say why
  Elf64_Ehdr header{};
  if (head.size() < offsetof(Elf64_Ehdr, e_version) ||
      !absl::StartsWith(head, absl::string_view(ELFMAG, SELFMAG))) {
    return absl::UnimplementedError(who + "does not run an ELF file");
  }
  std::memcpy(&header, head.data(), offsetof(Elf64_Ehdr, e_version));
  if (header.e_ident[EI_CLASS] != ELFCLASS64) {
    return absl::UnimplementedError(who + "is a 32-bit program: only 64-bit x86 is supported");
  }
  if (header.e_machine != EM_X86_64) {
    return absl::UnimplementedError(absl::StrCat(who, "is built for another machine (ELF machine ",
                                                 header.e_machine, "): only x86-64 is supported"));
  }
  return absl::OkStatus();
}

}  // namespace perfd::agent
