#include "agent/procfs/open_as_owner.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/base/mutex.h"

namespace perfd::agent {
namespace {

// The flag is one for all threads: a second that came in between would take ours, cleared, for its
// own, and leave it so for ever. A process that is not dumpable cannot read its own files in /proc
// without CAP_DAC_READ_SEARCH, nor be debugged.
Mutex& DumpableFlag() {
  static auto* const mutex = new Mutex;  // for as long as there are threads
  return *mutex;
}

// While it lives, this thread opens files as `uid`.
class FileUser {
 public:
  explicit FileUser(uid_t uid) : lock_(&DumpableFlag()), parent_(::getppid()) {
    ::prctl(PR_GET_PDEATHSIG, &death_signal_);
    dumpable_ = ::prctl(PR_GET_DUMPABLE);
    before_ = static_cast<uid_t>(::setfsuid(uid));
  }
  ~FileUser() {
    ::setfsuid(before_);
    if (dumpable_ == 1) ::prctl(PR_SET_DUMPABLE, 1);
    if (death_signal_ == 0) return;
    ::prctl(PR_SET_PDEATHSIG, death_signal_);
    // The parent may have died while there was no signal to say so.
    if (::getppid() != parent_) ::raise(death_signal_);
  }
  FileUser(const FileUser&) = delete;
  FileUser& operator=(const FileUser&) = delete;

 private:
  const MutexLock lock_;  // let go of last
  const pid_t parent_;
  int death_signal_ = 0;
  int dumpable_ = 0;
  uid_t before_ = 0;
};

}  // namespace

UniqueFd OpenAsOwner(const std::string& path, int flags) {
  UniqueFd file(::open(path.c_str(), flags));
  if (file.valid() || (errno != EACCES && errno != EPERM)) return file;
  const int refused = errno;
  struct stat facts {};
  // Not as root: going there and back costs the thread its rights over files (capabilities(7),
  // "Effect of user ID changes").
  const bool found = ::stat(path.c_str(), &facts) == 0;
  if (found && facts.st_uid != 0 && facts.st_uid != ::geteuid()) {
    const FileUser owner(facts.st_uid);
    file = UniqueFd(::open(path.c_str(), flags));
  }
  if (!file.valid()) errno = refused;
  return file;
}

}  // namespace perfd::agent
