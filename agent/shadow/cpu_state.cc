#include "agent/shadow/cpu_state.h"

#include <cpuid.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/variant/thread_block.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kTiles = uint64_t{3} << 17;
constexpr uint32_t kOsxsave = 1u << 27;

}  // namespace

absl::StatusOr<uint64_t> XsaveMaskOfThisCpu() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsxsave) == 0)
    return absl::UnimplementedError("the CPU has no XSAVE");
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const uint64_t mask = (uint64_t{high} << 32 | low) & ~kTiles;
  uint64_t bytes = 576;  // legacy area and header
  for (uint32_t component = 2; component < 63; ++component) {
    if ((mask >> component & 1) == 0 || __get_cpuid_count(0xd, component, &a, &b, &c, &d) == 0)
      continue;
    bytes = std::max<uint64_t>(bytes, uint64_t{a} + b);
  }
  if (bytes > kBlockXsaveBytes)
    return absl::UnimplementedError(
        absl::StrCat("the CPU's vector state of ", bytes, " bytes is larger than foreseen"));
  return mask;
}

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

}  // namespace perfd::agent
