#include "agent/shadow/install/map_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "agent/procfs/process_limits.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/install/own_rights.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostLockable = uint64_t{1} << 46;  // beyond it there is no room to ask for

CallOp MapCall(uint64_t address, uint64_t bytes, uint64_t protection, uint64_t flags) {
  CallOp call;
  call.call = SYS_mmap;
  call.arguments = {OpValue{address},      OpValue{bytes},
                    OpValue{protection},   OpValue{flags | MAP_ANONYMOUS},
                    OpValue{~uint64_t{0}}, OpValue{0}};
  call.expect = CallOp::Expect::kEqual;
  call.expected = address;
  return call;
}

CallOp MapHere(uint64_t address, uint64_t bytes, uint64_t flags) {
  return MapCall(address, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE);
}

// More than it may lock: EAGAIN if it were to be locked; EINVAL else, as there is no such mapping.
CallOp AskWhetherItLocks(uint64_t limit) {
  CallOp call = MapCall(0, limit + kPage, PROT_NONE, MAP_SHARED | MAP_GROWSDOWN);
  call.expected = -uint64_t{EINVAL};
  return call;
}

bool ItLocks(const HoldReply& reply) {
  return !reply.status.ok() && reply.results.size() == 1 &&
         reply.results.front().value == -uint64_t{EAGAIN};
}

uint64_t BytesOf(const PcRange& range) {
  return range.end - range.start;
}

}  // namespace

absl::StatusOr<HoldReply> MapMemory(InjectedRank& rank, size_t first_cache) {
  std::vector<HoldOp> ops;
  uint64_t bytes = 0;
  for (size_t i = first_cache; i < rank.code.caches.size(); ++i) {
    const CodeCache& cache = rank.code.caches[i];
    ops.push_back(MapHere(cache.address, cache.bound, MAP_PRIVATE));
    bytes += cache.bound;
  }
  if (first_cache == 0) {
    const PcRange& region = rank.code.injection.region;
    ops.push_back(MapHere(region.start, BytesOf(region), MAP_SHARED));
    bytes += BytesOf(region);
    // Where pairs of addresses come later. The region begins with zeros until it is filled: by them it is known if this fails.
    for (HoldOp& op : OwnRightsOps(rank.region->MapAddress())) ops.push_back(std::move(op));
  }
  // Once more: since it was planned it may have mapped, or locked, something.
  ASSIGN_OR_RETURN(ProcessLimits limits, ReadProcessLimits(ProcFs(), rank.info.pid));
  RETURN_IF_ERROR(CheckRoom(limits, bytes));
  if (limits.locks || limits.locked.limit > kMostLockable) return rank.hold.Stop(std::move(ops));
  std::vector<HoldOp> asking = {AskWhetherItLocks(limits.locked.limit)};
  asking.insert(asking.end(), ops.begin(), ops.end());
  auto reply = rank.hold.TryStop(std::move(asking));
  if (!reply.ok()) return reply;
  if (!ItLocks(*reply)) {
    RETURN_IF_ERROR(reply->status);
    return reply;
  }
  limits.locks = true;
  RETURN_IF_ERROR(CheckRoom(limits, bytes));
  return rank.hold.Stop(std::move(ops));
}

}  // namespace perfd::agent
