// agent/shadow/evict.h - which caches are emptied before a run, and how much must be walked through for it.
//
// Shape    a walk through a private buffer pushes out of the thread's caches what they held. Nothing is flushed by address: the
//          live rank shares those lines.
// Units    bytes, per thread; larger for each level, bounded. ns: about what one walk takes.
// Source   hazards of measuring, "Cold protocol"; sysconf(3) _SC_LEVEL*_CACHE_SIZE.
#ifndef AGENT_SHADOW_EVICT_H_
#define AGENT_SHADOW_EVICT_H_

#include <cstddef>
#include <cstdint>

namespace perfd {

// Of the first level; of the second, too; of all.
enum class Evict : uint8_t { kNothing, kFirst, kSecond, kAll };
inline constexpr size_t kEvictLevels = 4;

uint64_t EvictBytesOfThisCpu(Evict level);

}  // namespace perfd

#endif  // AGENT_SHADOW_EVICT_H_
