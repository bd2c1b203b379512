#include "agent/shadow/rank/live_region.h"

#include <algorithm>

#include "agent/procfs/procfs.h"
#include "agent/shadow/forking/process_files.h"
#include "agent/shadow/timing/tick_clock.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// While the agent waits; the payload takes ten times as long for death.
constexpr int64_t kBeatNs = 100 * kNsPerMs;

int64_t Now() {
  return SystemClock().MonotonicNs();
}

}  // namespace

// Somebody may have healed the rank beneath us: what is mapped there by now is not ours to write.
absl::Status LiveRegion::IsThere() const {
  const auto magic = Read<uint64_t>(address());
  if (magic.ok() && *magic == kShadowMagic) return absl::OkStatus();
  if (absl::IsNotFound(magic.status())) return magic.status();
  return absl::FailedPreconditionError("what was put into the rank has been taken out meanwhile");
}

absl::Status LiveRegion::Beat() {
  RETURN_IF_ERROR(IsThere());
  beat_ns_ = Now();
  return Write(address() + offsetof(RegionHeader, heartbeat_ticks), TickClock::Ticks());
}

absl::Status LiveRegion::BeatIfDue() {
  return Now() - beat_ns_ < kBeatNs ? absl::OkStatus() : Beat();
}

absl::Status LiveRegion::SetMode(uint32_t site, uint32_t mode) const {
  RETURN_IF_ERROR(IsThere());
  return Write(SiteAddress(site) + offsetof(Site, mode), mode);
}

absl::StatusOr<bool> LiveRegion::IsBusy() const {
  ASSIGN_OR_RETURN(const uint32_t busy, Read<uint32_t>(address() + offsetof(RegionHeader, busy)));
  return busy != 0;
}

absl::StatusOr<uint32_t> LiveRegion::InSitu() const {
  return Read<uint32_t>(address() + offsetof(RegionHeader, in_situ));
}

absl::StatusOr<std::vector<ThreadRecord>> LiveRegion::Records() const {
  return ReadMany<ThreadRecord>(RecordAddress(0), blocks());
}

// Records are claimed for good; those of threads that ended are given back here, while nobody enters slowly. The records come
// first: whoever has one by then and is alive is among the threads.
absl::Status LiveRegion::ForgetEndedThreads(int32_t pid) const {
  ASSIGN_OR_RETURN(NamespacePid inner, ReadNamespacePid(pid));
  if (inner.levels > 1) return absl::OkStatus();  // the rank knows its threads by other numbers
  ASSIGN_OR_RETURN(std::vector<ThreadRecord> records, Records());
  ASSIGN_OR_RETURN(std::vector<int32_t> threads, ProcFs().Threads(pid));
  for (uint32_t i = 0; i < records.size(); ++i) {
    const auto tid = static_cast<int32_t>(records[i].tid);
    if (tid == 0 || std::find(threads.begin(), threads.end(), tid) != threads.end()) continue;
    // A listing can miss a thread while others end, and a record may be all that knows the mask of who is in a copy.
    if (!absl::IsNotFound(ProcFs().CpuNs(pid, tid).status())) continue;
    RETURN_IF_ERROR(Write(RecordAddress(i), ThreadRecord{}));
  }
  return absl::OkStatus();
}

}  // namespace perfd::agent
