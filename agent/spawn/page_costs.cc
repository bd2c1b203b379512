#include "agent/spawn/page_costs.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "agent/spawn/helper_process.h"
#include "core/base/cpu_time.h"

namespace perfd::agent {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPages = 128;
constexpr size_t kBytes = kPages * kPage;
constexpr size_t kRounds = 9;
constexpr double kLeastNs = 20, kMostNs = 200'000;  // 0.3 to 54 us were seen
constexpr int kPatienceMs = 1000;

class Pages {
 public:
  explicit Pages(int sharing)
      : start_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0)) {
    if (ok()) madvise(start_, kBytes, MADV_NOHUGEPAGE);
  }
  ~Pages() {
    if (ok()) munmap(start_, kBytes);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  bool ok() const { return start_ != MAP_FAILED; }
  void* start() const { return start_; }
  void Write() const {
    for (size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(start_)[i * kPage] = 1;
  }

 private:
  void* const start_;
};

double PerPage(uint64_t ns) {
  return static_cast<double>(ns) / kPages;
}

// As a shadow does it. Kernels before 5.14 do not know the advice.
double CopyNs(const Pages& pages) {
  constexpr int kPopulateWrite = 23;  // uapi/asm-generic/mman-common.h: MADV_POPULATE_WRITE
  const uint64_t begin = ThreadCpuNs();
  if (madvise(pages.start(), kBytes, kPopulateWrite) != 0) pages.Write();
  return PerPage(ThreadCpuNs() - begin);
}

std::optional<PageCosts> Round(const Pages& pages, const Pages& shared) {
  auto* const copy_ns = static_cast<double*>(shared.start());
  const pid_t child = fork();
  if (child == 0) {
    *copy_ns = CopyNs(pages);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return std::nullopt;
  const uint64_t begin = ThreadCpuNs();
  pages.Write();
  return PageCosts{PerPage(ThreadCpuNs() - begin), *copy_ns};
}

// The lower quartile: a CPU that a hypervisor lends to others amid a round is not what pages cost.
double Quartile(std::array<double, kRounds> rounds) {
  std::sort(rounds.begin(), rounds.end());
  return std::clamp(rounds[kRounds / 4], kLeastNs, kMostNs);
}

std::optional<PageCosts> Measure() {
  const Pages pages(MAP_PRIVATE), shared(MAP_SHARED);
  if (!pages.ok() || !shared.ok()) return std::nullopt;
  pages.Write();
  std::array<double, kRounds> rewrite{}, copy{};
  for (size_t i = 0; i < kRounds; ++i) {
    const std::optional<PageCosts> round = Round(pages, shared);
    if (!round) return std::nullopt;
    rewrite[i] = round->rewrite_ns;
    copy[i] = round->copy_ns;
  }
  return PageCosts{Quartile(rewrite), Quartile(copy)};
}

bool CanBe(double ns) {
  return ns >= kLeastNs && ns <= kMostNs;  // false of what is no number, too
}

}  // namespace

bool TellPageCosts(int socket) {
  const std::optional<PageCosts> costs = Measure();
  return costs && send(socket, &*costs, sizeof(*costs), MSG_NOSIGNAL) == sizeof(*costs);
}

std::optional<PageCosts> AskPageCosts(const std::string& program) {
  const HelperProgram helper{.name = "page costs", .path = program, .arguments = {kPageCostsMode}};
  const auto start = [&helper](int socket) { return StartHelper(helper, socket); };
  const absl::StatusOr<Helper> started = StartWithSocket(helper.name, start);
  if (!started.ok()) return std::nullopt;
  PageCosts costs;
  pollfd answer{started->socket.get(), POLLIN, 0};
  const bool told = poll(&answer, 1, kPatienceMs) == 1 &&
                    recv(started->socket.get(), &costs, sizeof(costs), MSG_DONTWAIT) ==
                        static_cast<ssize_t>(sizeof(costs));
  EndHelper(started->pid, 0);
  if (!told || !CanBe(costs.rewrite_ns) || !CanBe(costs.copy_ns)) return std::nullopt;
  return costs;
}

}  // namespace perfd::agent
