#include "agent/anonymous/perf_maps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

int64_t Lacking(const PerfMap& map, const std::vector<RuntimeAddress>& addresses) {
  return std::count_if(addresses.begin(), addresses.end(),
                       [&](RuntimeAddress at) { return map.At(at) == nullptr; });
}

}  // namespace

void PerfMaps::Learn(const ProcessId& process, uint32_t uid,
                     const std::vector<RuntimeAddress>& addresses) {
  if (!read_) return;
  if (known_.size() >= kMaxProcesses && !known_.contains(process))
    known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
      return a.second.asked < b.second.asked;
    }));
  Known& known = known_[process];
  known.asked = ++asked_;
  const int64_t now = clock_.MonotonicNs();
  const auto lacking = Lacking(known.map, addresses);
  if (lacking == 0 || now < known.next_read_ns) return;
  // Where it cannot be read now, what was known stays.
  if (const auto text = read_(process, uid); text.ok()) known.map = PerfMap::Parse(*text);
  const bool named = Lacking(known.map, addresses) < lacking;
  known.pause_ns = named ? kRereadNs : std::min(2 * known.pause_ns, kSeldomNs);
  known.next_read_ns = now + known.pause_ns;
}

const PerfMap::Symbol* PerfMaps::At(const ProcessId& process, RuntimeAddress address) const {
  const auto it = known_.find(process);
  return it == known_.end() ? nullptr : it->second.map.At(address);
}

absl::StatusOr<std::string> ReadPerfMap(const ProcFs& procfs, const Clock& clock,
                                        const ProcessId& process, uint32_t uid) {
  ASSIGN_OR_RETURN(const int32_t inner_pid, InnerPid(procfs, process.pid));
  const std::string path = absl::StrCat("/tmp/perf-", inner_pid, ".map");
  ASSIGN_OR_RETURN(ForeignFile file, FileOfUser(procfs, process.pid, uid,
                                                {.path = path, .limit = PerfMaps::kMaxBytes}));
  ASSIGN_OR_RETURN(const uint64_t start_ticks, procfs.StartTicks(process.pid));
  if (start_ticks != process.start_ticks)
    return absl::NotFoundError(absl::StrCat("process ", process.pid, " has ended"));
  if (file.modified_ns + kBeganBlurNs < BeganAtUnixNs(clock, start_ticks))
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": older than the process: it is of an earlier one"));
  return std::move(file.contents);
}

}  // namespace perfd::agent
