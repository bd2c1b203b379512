#include "agent/shadow/evict.h"

#include <unistd.h>

#include <algorithm>

namespace perfd {

// Twice a level, so that every set of it is filled whatever its rule of replacement.
uint64_t EvictBytesOfThisCpu(Evict level) {
  constexpr long kUsualFirst = 32 << 10, kUsualSecond = 512 << 10;
  constexpr uint64_t kMost = 16 << 20;
  const auto size = [](int name, long usual) {
    const long bytes = sysconf(name);
    return static_cast<uint64_t>(bytes > 0 ? bytes : usual);
  };
  const uint64_t first = 2 * size(_SC_LEVEL1_DCACHE_SIZE, kUsualFirst);
  const uint64_t second = 2 * size(_SC_LEVEL2_CACHE_SIZE, kUsualSecond);
  const auto cpus = static_cast<uint64_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  const uint64_t all = second + size(_SC_LEVEL3_CACHE_SIZE, 0) / cpus;
  switch (level) {
    case Evict::kNothing:
      return 0;
    case Evict::kFirst:
      return std::min(first, kMost);
    case Evict::kSecond:
      return std::min(second, kMost);
    case Evict::kAll:
      return std::min(all, kMost);
  }
  return 0;
}

}  // namespace perfd
