// tests/integration/sample/host_taken.h - the CPU time that the host itself says it took from this machine.
//
// While a CPU is away its timers do not fire, and the clock of software events goes on: bounds of tests widen by it.
//
// Units    ns of all CPUs together; 0 where the kernel does not tell.
// Source   the "steal" column of /proc/stat.
#ifndef TESTS_INTEGRATION_SAMPLE_HOST_TAKEN_H_
#define TESTS_INTEGRATION_SAMPLE_HOST_TAKEN_H_

#include <unistd.h>

#include <fstream>
#include <string>

namespace perfd::agent {

class HostTaken {
 public:
  double ns() const { return StealNs() - before_ns_; }  // since this was made
  double samples(double hz) const { return ns() * hz / 1e9; }

 private:
  static double StealNs() {
    std::ifstream stat("/proc/stat");
    std::string word;
    for (int i = 0; i < 9; ++i) {
      if (!(stat >> word)) return 0;
    }
    return std::stod(word) * 1e9 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

  double before_ns_ = StealNs();
};

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_SAMPLE_HOST_TAKEN_H_
