#include "agent/shadow/forking/fault_cost.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "core/base/clock.h"
#include "core/base/cpu_time.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPages = 128;
constexpr size_t kBytes = kPages * kPage;
constexpr int kRounds = 9;
constexpr int64_t kGoodNs = 60 * kNsPerSecond;
constexpr double kLeastNs = 200, kMostNs = 200'000;  // 0.6 to 54 us were seen

class Mapping {
 public:
  Mapping(int fd, int sharing)
      : start_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, sharing, fd, 0)) {}
  ~Mapping() {
    if (ok()) munmap(start_, kBytes);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  bool ok() const { return start_ != MAP_FAILED; }
  volatile char& page(size_t i) const { return static_cast<volatile char*>(start_)[i * kPage]; }

 private:
  void* const start_;
};

// The pages exist in the file and are mapped for reading: what is left is to copy them.
std::optional<double> Round(int fd) {
  const Mapping copy(fd, MAP_PRIVATE);
  if (!copy.ok()) return std::nullopt;
  for (size_t i = 0; i < kPages; ++i) [[maybe_unused]] const char mapped = copy.page(i);
  const uint64_t begin = ThreadCpuNs();
  for (size_t i = 0; i < kPages; ++i) copy.page(i) = 2;
  return static_cast<double>(ThreadCpuNs() - begin) / kPages;
}

}  // namespace

std::optional<double> MeasureCopyFaultNs() {
  const UniqueFd file(memfd_create("perfd-fault-cost", MFD_CLOEXEC));
  if (!file.valid() || ftruncate(file.get(), kBytes) != 0) return std::nullopt;
  {
    const Mapping whole(file.get(), MAP_SHARED);
    if (!whole.ok()) return std::nullopt;
    for (size_t i = 0; i < kPages; ++i) whole.page(i) = 1;
  }
  std::array<double, kRounds> rounds{};
  for (double& round : rounds) {
    const std::optional<double> ns = Round(file.get());
    if (!ns) return std::nullopt;
    round = *ns;
  }
  std::sort(rounds.begin(), rounds.end());
  // The lower quartile: a CPU that a hypervisor lends to others amid a round is not what the copies cost.
  return std::clamp(rounds[kRounds / 4], kLeastNs, kMostNs);
}

double CopyFaultNs() {
  static Mutex mutex;
  static std::optional<double> known ABSL_GUARDED_BY(mutex);
  static int64_t until_ns ABSL_GUARDED_BY(mutex) = 0;
  MutexLock lock(&mutex);
  const int64_t now = SystemClock().MonotonicNs();
  if (!known || now >= until_ns) {
    known = MeasureCopyFaultNs();
    until_ns = now + kGoodNs;
  }
  return known.value_or(kUsualFaultNs);
}

}  // namespace perfd::agent
