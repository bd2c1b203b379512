#include "agent/reader/module_open.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/binary/elf_file.h"
#include "agent/procfs/process_rights.h"
#include "agent/procfs/procfs.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// Opens without side effects first: a path may name a device or a pipe. Relative to `root`, and never out of it.
UniqueFd OpenPath(int root, absl::string_view path) {
  const std::string name(path);
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, name.c_str(), &how, sizeof how)));
}

// The same file, for reading; invalid (errno set) unless it is a regular file that may be read.
UniqueFd Reopen(const UniqueFd& path) {
  struct stat facts;
  if (!path.valid() || ::fstat(path.get(), &facts) != 0) return {};
  if (!S_ISREG(facts.st_mode)) {
    errno = EINVAL;
    return {};
  }
  const std::string self = absl::StrCat("/proc/self/fd/", path.get());
  return UniqueFd(::open(self.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
}

// Names the file without opening it for reading: whether the user may read it is asked later, as the user.
UniqueFd OpenLink(const std::string& link) {
  return UniqueFd(::open(link.c_str(), O_PATH | O_CLOEXEC));
}

bool SameFile(const UniqueFd& a, const UniqueFd& b) {
  struct stat x;
  struct stat y;
  return a.valid() && b.valid() && ::fstat(a.get(), &x) == 0 && ::fstat(b.get(), &y) == 0 &&
         x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

// Some file systems (btrfs, overlayfs) show another device in maps than in stat: then the inode alone decides.
bool HasIdentity(const UniqueFd& fd, const ModuleFile& file) {
  struct stat facts;
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return false;
  return file.inode == 0 || facts.st_ino == file.inode;
}

bool HasDevice(const UniqueFd& fd, const ModuleFile& file) {
  struct stat facts;
  return ::fstat(fd.get(), &facts) == 0 && major(facts.st_dev) == file.device_major &&
         minor(facts.st_dev) == file.device_minor;
}

// The groups through which the process itself reaches its files; none when it is not, or no longer, that user's.
std::vector<gid_t> GroupsOf(const ModuleFile& file) {
  const auto status = ProcFs().Status(file.pid);
  if (!status.ok()) return {};
  const ProcessRights expected{{file.uid, file.uid, file.uid}, {file.gid, file.gid, file.gid}};
  if (WithoutCapabilities(RightsOf(*status)) != expected) return {};
  return {status->groups.begin(), status->groups.end()};
}

// A change from root to a user takes the capabilities away; one between two users leaves an agent's own with us
// (capabilities(7) "Effect of user ID changes").
absl::Status DropCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 ||
      ::syscall(SYS_capset, &header, none) != 0)
    return absl::InternalError(
        absl::StrCat("reader: cannot give up its capabilities: ", strerror(errno)));
  return absl::OkStatus();
}

bool MayBecomeOthers() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3] = {};
  return ::syscall(SYS_capget, &header, own) == 0 && (own[0].effective >> CAP_SETUID & 1) != 0;
}

absl::Status BecomeUser(const ModuleFile& file) {
  const bool root = ::geteuid() == 0;
  // An ordinary user can only be itself.
  if (!root && !MayBecomeOthers()) return DropCapabilities();
  const std::vector<gid_t> groups = GroupsOf(file);
  const uint32_t uid = file.uid;
  const uint32_t gid = file.gid;
  if (::setgroups(groups.size(), groups.data()) != 0 || ::setresgid(gid, gid, gid) != 0 ||
      ::setresuid(uid, uid, uid) != 0)
    return absl::InternalError(
        absl::StrCat("reader: cannot become user ", uid, ": ", strerror(errno)));
  if (!root) RETURN_IF_ERROR(DropCapabilities());
  if (uid != 0 && ::setresuid(0, 0, 0) == 0)
    return absl::InternalError("reader: rights of root were not given up");
  return absl::OkStatus();
}

// What only the starter may name: the mapping itself, whatever became of its path. Neither can be read from.
struct Mapping {
  UniqueFd root;
  UniqueFd mapped;
  bool ended = false;  // the process is gone: root is our own, and only the very same file will do
};

Mapping OpenMapping(const ModuleFile& file) {
  Mapping out;
  const std::string process = absl::StrCat("/proc/", file.pid);
  out.root =
      UniqueFd(::open(absl::StrCat(process, "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!out.root.valid()) {
    out.root = UniqueFd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    out.ended = true;
    return out;
  }
  if (file.map_end > file.map_start)
    out.mapped = OpenLink(absl::StrCat(process, "/map_files/", absl::Hex(file.map_start), "-",
                                       absl::Hex(file.map_end)));
  if (out.mapped.valid()) return out;
  UniqueFd executable = OpenLink(process + "/exe");
  if (file.inode != 0 && HasIdentity(executable, file)) out.mapped = std::move(executable);
  return out;
}

absl::Status CannotRead(const ModuleFile& file, int error, bool replaced) {
  if (replaced)
    return absl::NotFoundError(
        absl::StrCat(file.path, ": replaced on disk since process ", file.pid,
                     " mapped it, and the mapping "
                     "cannot be read; restart the job or run perf-agent as root"));
  if (error == EACCES || error == EPERM)
    return absl::PermissionDeniedError(
        absl::StrCat(file.path, ": user ", file.uid, " may not read it (", strerror(error), ")"));
  if (error == EINVAL)
    return absl::InvalidArgumentError(absl::StrCat(file.path, ": not a regular file"));
  return absl::NotFoundError(absl::StrCat(file.path, ": ", strerror(error)));
}

}  // namespace

namespace {

bool IsFile(const ModuleFile& file) {
  return !file.path.empty() && file.path[0] != '[';
}

absl::Status NotAFile(const ModuleFile& file) {
  return absl::UnimplementedError(absl::StrCat("'", file.path, "' is not a file"));
}

// As the target's user already.
absl::StatusOr<OpenedModule> OpenNamed(const ModuleFile& file, Mapping mapping) {
  if (!mapping.root.valid()) return absl::NotFoundError(absl::StrCat("open /: ", strerror(errno)));
  errno = 0;
  UniqueFd named = Reopen(OpenPath(mapping.root.get(), file.path));
  const int error = errno;
  const bool same = HasIdentity(named, file);
  if (mapping.ended && !(same && file.inode != 0 && HasDevice(named, file)))
    return absl::NotFoundError(
        absl::StrCat("process ", file.pid, " is gone, or its files may not be seen"));
  if (same &&
      (HasDevice(named, file) || !mapping.mapped.valid() || SameFile(named, mapping.mapped)))
    return OpenedModule{std::move(mapping.root), std::move(named)};
  // What its own user may not read is not read for them.
  const bool gone = named.valid() || error == ENOENT || error == ENOTDIR;
  if (!gone || !mapping.mapped.valid()) return CannotRead(file, error, named.valid());
  UniqueFd mapped = Reopen(mapping.mapped);
  if (!mapped.valid()) return CannotRead(file, errno, false);
  return OpenedModule{std::move(mapping.root), std::move(mapped)};
}

}  // namespace

absl::StatusOr<OpenedModule> OpenModule(const ModuleFile& file) {
  if (!IsFile(file)) return NotAFile(file);
  Mapping mapping = OpenMapping(file);
  RETURN_IF_ERROR(BecomeUser(file));
  return OpenNamed(file, std::move(mapping));
}

absl::StatusOr<std::vector<absl::StatusOr<UniqueFd>>> OpenModules(
    const std::vector<ModuleFile>& files) {
  if (files.empty()) return absl::InvalidArgumentError("no module to open");
  std::vector<Mapping> mappings;
  mappings.reserve(files.size());
  for (const ModuleFile& file : files)
    mappings.push_back(IsFile(file) ? OpenMapping(file) : Mapping{});
  RETURN_IF_ERROR(BecomeUser(files[0]));
  std::vector<absl::StatusOr<UniqueFd>> opened;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!IsFile(files[i])) {
      opened.emplace_back(NotAFile(files[i]));
      continue;
    }
    auto module = OpenNamed(files[i], std::move(mappings[i]));
    if (module.ok())
      opened.emplace_back(std::move(module->main));
    else
      opened.emplace_back(module.status());
  }
  return opened;
}

UniqueFd OpenDebugFile(const OpenedModule& module, absl::string_view path) {
  const auto main = ElfFile::Open(UniqueFd(::fcntl(module.main.get(), F_DUPFD_CLOEXEC, 0)));
  if (!main.ok() || (*main)->HasDebugInfo()) return {};
  std::vector<std::string> names;
  const std::string& id = (*main)->build_id();
  if (id.size() > 2)
    names.push_back(
        absl::StrCat("usr/lib/debug/.build-id/", id.substr(0, 2), "/", id.substr(2), ".debug"));
  if (const std::string link = (*main)->debug_link().name; !link.empty()) {
    const std::string directory(path.substr(0, path.rfind('/')));
    names.push_back(absl::StrCat(directory, "/", link));
    names.push_back(absl::StrCat(directory, "/.debug/", link));
    names.push_back(absl::StrCat("usr/lib/debug", directory, "/", link));
  }
  const UniqueFd host(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const int root : {module.root.get(), host.get()}) {
    for (const std::string& name : names) {
      UniqueFd found = Reopen(OpenPath(root, name));
      if (!found.valid()) continue;
      const auto debug = ElfFile::Open(UniqueFd(::fcntl(found.get(), F_DUPFD_CLOEXEC, 0)));
      if (debug.ok() && IsDebugFileOf(**debug, **main)) return found;
    }
  }
  return {};
}

}  // namespace perfd::agent
