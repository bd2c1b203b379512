#include "agent/shadow/forking/fault_cost.h"

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace perfd::agent {
namespace {

constexpr int64_t kGoodNs = 60 * kNsPerSecond;

}  // namespace

PageCosts CurrentPageCosts(const std::string& program) {
  if (program.empty()) return kUsualCosts;
  static Mutex mutex;
  static std::optional<PageCosts> known ABSL_GUARDED_BY(mutex);
  static int64_t until_ns ABSL_GUARDED_BY(mutex) = 0;
  MutexLock lock(&mutex);
  const int64_t now = SystemClock().MonotonicNs();
  if (!known || now >= until_ns) {
    known = AskPageCosts(program);
    until_ns = now + kGoodNs;
  }
  return known.value_or(kUsualCosts);
}

}  // namespace perfd::agent
