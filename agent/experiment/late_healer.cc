#include "agent/experiment/late_healer.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/rank_injector.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kPatienceNs = 200 * kNsPerMs;  // the next attempt comes anyhow

// What stands still by somebody else's will, or is a debugger's, is left in peace.
absl::Status MayBeStopped(const RankInfo& rank) {
  const auto status = ProcFs().Status(rank.pid);
  if (!status.ok()) return absl::OkStatus();  // it has ended: there is the journal
  if (status->tracer_pid != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("process ", status->tracer_pid, " traces it (a debugger?)"));
  if (status->state == 'T') return absl::FailedPreconditionError("it is stopped (SIGSTOP)");
  return absl::OkStatus();
}

bool Same(const RankInfo& a, const RankInfo& b) {
  return a.pid == b.pid && a.start_ticks == b.start_ticks;
}

}  // namespace

std::function<absl::Status(const RankInfo&)> HealByJournal(
    TracerOptions tracer, const Journal* journal,
    std::function<absl::Status(int32_t pid)> answers) {
  return [tracer = std::move(tracer), journal,
          answers = std::move(answers)](const RankInfo& rank) -> absl::Status {
    RETURN_IF_ERROR(MayBeStopped(rank));
    ASSIGN_OR_RETURN(const auto started, Tracer::Start(tracer));
    InjectorOptions injector;
    injector.tracer = started.get();
    injector.journal = journal;
    injector.heal_patience_ns = kPatienceNs;
    injector.answers = answers;
    injector.audit = [](AuditEntry entry) {
      LogInfo("audit: {} pid {}: stopped for {} us: {}", entry.action, entry.pid,
              entry.pause_ns / 1000, entry.outcome);
    };
    return HealBefore(rank, injector);
  };
}

LateHealer::~LateHealer() {
  std::thread thread;
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

bool LateHealer::HealLater(const RankInfo& rank) {
  MutexLock lock(&mutex_);
  if (stop_ || ranks_.size() >= kMostRanks) return false;
  const bool known = std::any_of(ranks_.begin(), ranks_.end(),
                                 [&](const RankInfo& other) { return Same(other, rank); });
  if (!known) ranks_.push_back(rank);
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  return true;
}

bool LateHealer::Claim(const RankInfo& rank) {
  MutexLock lock(&mutex_);
  const size_t known =
      std::erase_if(ranks_, [&](const RankInfo& other) { return Same(other, rank); });
  const auto free = [this, &rank]()
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return under_way_ != rank.pid; };
  mutex_.Await(absl::Condition(&free));
  return known > 0;
}

size_t LateHealer::waiting() const {
  MutexLock lock(&mutex_);
  return ranks_.size();
}

bool LateHealer::AwaitRanks() {
  MutexLock lock(&mutex_);
  const auto due = [this]()
                       ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || !ranks_.empty(); };
  mutex_.Await(absl::Condition(&due));
  return !stop_;
}

bool LateHealer::AwaitTurn(int64_t wait_ns) {
  MutexLock lock(&mutex_);
  const auto over = [this]()
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || ranks_.empty(); };
  return !mutex_.AwaitWithTimeout(absl::Condition(&over), absl::Nanoseconds(wait_ns));
}

void LateHealer::Run() {
  pthread_setname_np(pthread_self(), "perfd-heal");
  while (AwaitRanks()) {
    for (int64_t wait_ns = options_.first_ns; AwaitTurn(wait_ns);
         wait_ns = std::min(2 * wait_ns, options_.longest_ns))
      HealOnce();
  }
}

bool LateHealer::Begin(const RankInfo& rank) {
  MutexLock lock(&mutex_);
  const bool waits = std::any_of(ranks_.begin(), ranks_.end(),
                                 [&](const RankInfo& other) { return Same(other, rank); });
  if (stop_ || !waits) return false;
  under_way_ = rank.pid;
  return true;
}

void LateHealer::HealOnce() {
  std::vector<RankInfo> ranks;
  {
    MutexLock lock(&mutex_);
    ranks = ranks_;
  }
  for (const RankInfo& rank : ranks) {
    if (!Begin(rank)) continue;
    const absl::Status healed = options_.heal(rank);
    if (healed.ok())
      LogInfo("pid {}: what could not be taken out before is out", rank.pid);
    else
      LogWarning("pid {}: what was left in it is still there: {}", rank.pid, Text(healed));
    MutexLock lock(&mutex_);
    under_way_ = 0;
    if (healed.ok())
      std::erase_if(ranks_, [&](const RankInfo& other) { return Same(other, rank); });
  }
}

}  // namespace perfd::agent
