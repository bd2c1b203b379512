// agent/procfs/guarded/guarded_files.h - slow reads of /proc in helper processes: who does not answer in time is left out.
//
// Shape    one helper serves read after read; it is killed when it is late, and the process that it waited for is not asked again
//          for a while. As many helpers as reads at a time; a few stay for the next ones.
// Units    bounds below.
// Errors   as SlowFiles; kUnavailable: it does not answer, or did not a moment ago, or kMostOfUser others of its user do not, or
//          no helper can be started.
// Bounds   a user's processes that hang cost a reader kMostOfUser times Patience::read in kForget at most, those of further users
//          Patience::further each, and leave as many helpers that no signal ends (a file system that hangs for good); these count
//          until they have ended.
// Threads  thread-safe.
#ifndef AGENT_PROCFS_GUARDED_GUARDED_FILES_H_
#define AGENT_PROCFS_GUARDED_GUARDED_FILES_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/procfs/procfs.h"
#include "agent/procfs/slow_files.h"
#include "agent/spawn/helper_process.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace perfd::agent {

class GuardedFiles final : public SlowFiles {
 public:
  static constexpr int kMostOfUser = 4;
  static constexpr size_t kMostIdle = 4;
  static constexpr absl::Duration kForget = absl::Seconds(10);
  struct Patience {
    absl::Duration read = absl::Milliseconds(500);
    absl::Duration further =
        absl::Milliseconds(100);              // once kMostOfUser do not answer, whoever has them
    absl::Duration start = absl::Seconds(5);  // of a helper, on a busy node
  };
  using StartServer = std::function<absl::StatusOr<pid_t>(int socket)>;

  // `start` starts a process that calls ServeSlowFiles. `root` is that of ProcFs. `clock` outlives this.
  GuardedFiles(StartServer start, const Clock& clock, std::string root = "/proc");
  GuardedFiles(StartServer start, const Clock& clock, std::string root, Patience patience);
  ~GuardedFiles() override;

  absl::StatusOr<std::string> Read(int32_t pid, const SlowRead& read) override;

 private:
  struct Silence {
    int32_t pid = 0;
    uint64_t start_ticks = 0;
    uint32_t owner = 0;
    int64_t until_ns = 0;
    bool patient = false;  // it had all the time that there is
    pid_t helper = 0;      // killed, and has not ended
  };
  // `pid` may be asked. An error: not now.
  absl::Status CheckAnswers(int32_t pid);
  void ForgetSilences() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordSilence(int32_t pid, Helper helper, bool patient);
  absl::StatusOr<Helper> StartHelperInTime() const;
  absl::StatusOr<Helper> TakeHelper(bool* is_new);
  void Retain(Helper helper);
  absl::Duration PatienceNow();
  absl::StatusOr<std::string> Ask(const Helper& helper, const SlowRead& read,
                                  absl::Duration patience) const;
  uint32_t OwnerOf(int32_t pid) const;

  const StartServer start_;
  const Clock& clock_;
  const ProcFs procfs_;
  const Patience patience_;
  Mutex mutex_;
  std::vector<Helper> idle_ ABSL_GUARDED_BY(mutex_);
  std::vector<Silence> silences_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perfd::agent

#endif  // AGENT_PROCFS_GUARDED_GUARDED_FILES_H_
