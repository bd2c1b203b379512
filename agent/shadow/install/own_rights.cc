#include "agent/shadow/install/own_rights.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace perfd::agent {
namespace {

// Made by system calls of the rank in its region, before that is filled.
struct RightsScratch {
  uint32_t uids[3], gids[3];
  __user_cap_header_struct whose;
  __user_cap_data_struct sets[2];
};

static_assert(sizeof(RightsScratch) <= kMaxMapEntries * sizeof(InstructionPair));

}  // namespace

std::vector<HoldOp> OwnRightsOps(uint64_t scratch) {
  constexpr size_t kWhose = offsetof(RightsScratch, whose);
  const auto ids_at = [scratch](int64_t call, uint64_t offset) {
    CallOp op;
    op.call = call;
    for (size_t i = 0; i < 3; ++i) op.arguments[i] = OpValue{scratch + offset + 4 * i};
    return op;
  };
  const __user_cap_header_struct whose{_LINUX_CAPABILITY_VERSION_3, 0};
  const auto* bytes = reinterpret_cast<const uint8_t*>(&whose);
  CallOp sets;
  sets.call = SYS_capget;
  sets.arguments[0] = OpValue{scratch + kWhose};
  sets.arguments[1] = OpValue{scratch + offsetof(RightsScratch, sets)};
  CallOp dumpable;
  dumpable.call = SYS_prctl;
  dumpable.arguments[0] = OpValue{PR_GET_DUMPABLE};
  return {WriteOp{{scratch + kWhose}, {bytes, bytes + sizeof whose}},
          ids_at(SYS_getresuid, offsetof(RightsScratch, uids)),
          ids_at(SYS_getresgid, offsetof(RightsScratch, gids)),
          sets,
          ReadOp{{scratch}, sizeof(RightsScratch)},
          dumpable};
}

// The last two results are the bytes and the answer of prctl.
OwnRights OwnRightsOf(const HoldReply& reply) {
  const auto& results = reply.results;
  OwnRights rights{};
  if (results.size() < 2) return rights;
  const std::vector<uint8_t>& bytes = results[results.size() - 2].bytes;
  RightsScratch read{};
  std::memcpy(&read, bytes.data(), std::min(bytes.size(), sizeof read));
  std::copy_n(read.uids, 3, rights.uids);
  std::copy_n(read.gids, 3, rights.gids);
  rights.capabilities = uint64_t{read.sets[1].permitted} << 32 | read.sets[0].permitted;
  rights.dumpable = results.back().value;
  return rights;
}

}  // namespace perfd::agent
