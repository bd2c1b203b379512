#include "core/json/memory/memory_words.h"

namespace perfd {

Words LevelWords(MemoryLevel level) {
  switch (level) {
    case MemoryLevel::kUnknown:
      return {"not told", "unknown"};
    case MemoryLevel::kL1:
      return {"L1", "l1"};
    case MemoryLevel::kFillBuffer:
      return {"fill buffer", "fill_buffer"};
    case MemoryLevel::kL2:
      return {"L2", "l2"};
    case MemoryLevel::kL3:
      return {"L3", "l3"};
    case MemoryLevel::kL4:
      return {"L4", "l4"};
    case MemoryLevel::kOtherCache:
      return {"another core's cache", "other_cache"};
    case MemoryLevel::kRemoteCache:
      return {"another node's cache", "remote_cache"};
    case MemoryLevel::kLocalDram:
      return {"local DRAM", "local_dram"};
    case MemoryLevel::kRemoteDram:
      return {"another node's DRAM", "remote_dram"};
    case MemoryLevel::kDram:
      return {"DRAM", "dram"};
    case MemoryLevel::kPersistent:
      return {"persistent memory", "persistent"};
    case MemoryLevel::kCxl:
      return {"CXL memory", "cxl"};
    case MemoryLevel::kIo:
      return {"I/O memory", "io"};
    case MemoryLevel::kUncached:
      return {"uncached memory", "uncached"};
  }
  return {"not told", "unknown"};
}

Words TlbWords(TlbResult result) {
  switch (result) {
    case TlbResult::kUnknown:
      return {"not told", "unknown"};
    case TlbResult::kHit:
      return {"hit", "hit"};
    case TlbResult::kFirstLevel:
      return {"hit in the first level", "first_level"};
    case TlbResult::kSecondLevel:
      return {"hit in the second level", "second_level"};
    case TlbResult::kWalk:
      return {"page table walk", "walk"};
    case TlbResult::kFault:
      return {"page fault", "fault"};
  }
  return {"not told", "unknown"};
}

Words BorderWords(MemoryBorder border) {
  switch (border) {
    case MemoryBorder::kL1:
      return {"beyond L1", "l1"};
    case MemoryBorder::kL2:
      return {"beyond L2", "l2"};
    case MemoryBorder::kL3:
      return {"beyond L3", "l3"};
    case MemoryBorder::kNode:
      return {"on another node", "node"};
  }
  return {"", ""};
}

Words OperationWords(MemoryOperation operation) {
  switch (operation) {
    case MemoryOperation::kUnknown:
      return {"not told", "unknown"};
    case MemoryOperation::kLoad:
      return {"load", "load"};
    case MemoryOperation::kStore:
      return {"store", "store"};
    case MemoryOperation::kPrefetch:
      return {"prefetch", "prefetch"};
    case MemoryOperation::kExecute:
      return {"instruction", "execute"};
  }
  return {"not told", "unknown"};
}

Words SnoopWords(SnoopResult result) {
  switch (result) {
    case SnoopResult::kUnknown:
      return {"not told", "unknown"};
    case SnoopResult::kNone:
      return {"none", "none"};
    case SnoopResult::kHit:
      return {"hit", "hit"};
    case SnoopResult::kMiss:
      return {"miss", "miss"};
    case SnoopResult::kHitModified:
      return {"hit a changed line", "hit_modified"};
    case SnoopResult::kForwarded:
      return {"forwarded", "forwarded"};
    case SnoopResult::kFromPeer:
      return {"from a peer", "peer"};
  }
  return {"not told", "unknown"};
}

Words LockWords(LockState state) {
  switch (state) {
    case LockState::kUnknown:
      return {"not told", "unknown"};
    case LockState::kNotLocked:
      return {"no", "no"};
    case LockState::kLocked:
      return {"yes", "yes"};
  }
  return {"not told", "unknown"};
}

}  // namespace perfd
