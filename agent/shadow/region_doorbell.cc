#include "agent/shadow/region_doorbell.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/injection.h"
#include "agent/shadow/protocol.h"
#include "agent/shadow/region_access.h"
#include "agent/shadow/region_layout.h"
#include "core/base/clock.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {

RegionDoorbell::RegionDoorbell(const Memory* memory, uint64_t region)
    : memory_(memory), region_(region) {
  const auto maps = ProcFs().Maps(memory->pid());
  if (!maps.ok()) return;
  const MapEntry* map = FindMapping(*maps, region);
  if (map == nullptr || !map->shared) return;
  const std::string path =
      absl::StrFormat("/proc/%d/map_files/%x-%x", memory->pid(), map->start, map->end);
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return;
  const auto offset = static_cast<off_t>(map->file_offset + (region - map->start));
  void* page = mmap(nullptr, kRegionPage, PROT_READ, MAP_SHARED, file.get(), offset);
  if (page != MAP_FAILED) page_ = page;
}

RegionDoorbell::~RegionDoorbell() {
  if (page_ != nullptr) munmap(page_, kRegionPage);
}

absl::StatusOr<uint32_t> RegionDoorbell::Count() const {
  return RegionAccess(memory_, region_, 1)
      .Read<uint32_t>(region_ + offsetof(RegionHeader, doorbell));
}

void RegionDoorbell::Await(uint32_t seen, int64_t ns) const {
  ns = std::max<int64_t>(0, ns);
  if (!can_wait()) return absl::SleepFor(absl::Nanoseconds(ns));
  const timespec time{ns / kNsPerSecond, ns % kNsPerSecond};
  const auto* word = static_cast<const char*>(page_) + offsetof(RegionHeader, doorbell);
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

}  // namespace perfd::agent
