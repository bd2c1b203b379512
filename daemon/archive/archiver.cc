#include "daemon/archive/archiver.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "daemon/archive/archive_entry.h"

namespace perfd::daemon {
namespace {

constexpr absl::Duration kTurn = absl::Seconds(1);
constexpr int64_t kFreshNs = 3600 * kNsPerSecond;

}  // namespace

Archiver::Archiver(ArchiverOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      folder_(options_.folder),
      started_monotonic_ns_(clock.MonotonicNs()),
      started_unix_ns_(clock.UnixNs()) {}

void Archiver::Begin() {
  if (on()) thread_ = std::thread([this] { Run(); });
}

void Archiver::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void Archiver::Run() {
  pthread_setname_np(pthread_self(), "perfd-archive");
  CatchUp();
  while (true) {
    {
      MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(this, &Archiver::HasWork), kTurn);
      if (stopping_) return;  // what still waits is found again at the next start
    }
    Turn();
  }
}

void Archiver::Add(const std::string& profile_id) {
  if (!on()) return;
  MutexLock lock(&mutex_);
  if (std::find(pending_.begin(), pending_.end(), profile_id) != pending_.end()) return;
  pending_.push_back(profile_id);
  if (pending_.size() <= kMostPending) return;
  pending_.pop_front();
  ++figure_.dropped;
}

void Archiver::CatchUp() {
  const int64_t since_ns = clock_.UnixNs() - kCatchUpNs;
  std::vector<ProfileStatus> newest = options_.newest();
  std::reverse(newest.begin(), newest.end());
  for (const ProfileStatus& status : newest) {
    if (!IsFinal(status.state) || status.finished_unix_ns < since_ns) continue;
    if (!folder_.Has(status.id, status.finished_unix_ns)) Add(status.id);
  }
}

void Archiver::Turn() {
  while (true) {
    std::string id;
    {
      MutexLock lock(&mutex_);
      if (stopping_ || pending_.empty() || clock_.MonotonicNs() < due_ns_) break;
      id = std::move(pending_.front());
      pending_.pop_front();  // a report that is stored anew meanwhile comes again
    }
    if (ArchiveOne(id)) continue;
    Add(id);  // behind the others: what is wrong may be wrong with this one only
    break;
  }
  Sweep();
}

bool Archiver::ArchiveOne(const std::string& id) {
  const absl::StatusOr<Report> report = options_.report(id);
  if (!report.ok() && (absl::IsNotFound(report.status()) || absl::IsDataLoss(report.status()))) {
    LogWarning("{} is not archived: {}", id, Text(report.status()));
    MutexLock lock(&mutex_);
    ++figure_.dropped;
    return true;
  }
  const absl::Status written =
      report.ok() ? folder_.Write(id, report->status.finished_unix_ns, ArchiveEntry(*report))
                  : report.status();
  if (!written.ok()) {
    RecordFailure(id, written);
    return false;
  }
  MutexLock lock(&mutex_);
  ++figure_.written;
  if (!figure_.healthy) LogInfo("the archive in {} can be written again", folder_.path());
  figure_.healthy = true;
  trouble_.clear();
  wait_ns_ = due_ns_ = 0;
  return true;
}

void Archiver::RecordFailure(const std::string& id, const absl::Status& status) {
  MutexLock lock(&mutex_);
  ++figure_.failures;
  trouble_ = std::string(status.message());
  wait_ns_ = std::clamp(wait_ns_ * 2, kFirstWaitNs, kLongestWaitNs);
  due_ns_ = clock_.MonotonicNs() + wait_ns_;
  if (!figure_.healthy) return;
  figure_.healthy = false;
  LogWarning("{} cannot be archived: {}; it is tried again, profiles go on", id, Text(status));
}

void Archiver::Sweep() {
  {
    MutexLock lock(&mutex_);
    if (stopping_ || clock_.MonotonicNs() < sweep_due_ns_) return;
    sweep_due_ns_ = clock_.MonotonicNs() + kSweepNs;
  }
  // The clock may have been set since the start: for ages, time passes no faster than it does. One that is wrong at the
  // start may yet be put right.
  const int64_t passed_ns = clock_.MonotonicNs() - started_monotonic_ns_;
  ArchiveLimits limits = options_.limits;
  if (passed_ns < kFreshNs) limits.days = 0;
  const ArchiveContents contents =
      folder_.Sweep(limits, std::min(clock_.UnixNs(), started_unix_ns_ + passed_ns));
  MutexLock lock(&mutex_);
  figure_.files = contents.files;
  figure_.bytes = contents.bytes;
  figure_.deleted += contents.deleted;
}

ArchiveFigure Archiver::Figures() {
  MutexLock lock(&mutex_);
  ArchiveFigure figure = figure_;
  figure.pending = pending_.size();
  return figure;
}

std::vector<DoctorCheck> Archiver::Checks() {
  if (!on()) return {};
  MutexLock lock(&mutex_);
  DoctorCheck check{.name = "archive",
                    .ok = figure_.healthy,
                    .optional = true,
                    .found = figure_.healthy
                                 ? absl::StrCat(folder_.path(), ", ", figure_.written, " written")
                                 : trouble_,
                    .fix = ""};
  if (!check.ok)
    check.fix = absl::StrCat("free space in ", folder_.path(), " and let perfd write there; ",
                             pending_.size(), " reports wait");
  return {check};
}

}  // namespace perfd::daemon
