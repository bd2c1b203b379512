// tests/integration/shadow/puppet_rank.h - a puppet process to experiment on, and what a test must find unchanged in it.
#ifndef TESTS_INTEGRATION_SHADOW_PUPPET_RANK_H_
#define TESTS_INTEGRATION_SHADOW_PUPPET_RANK_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/attach/tracer.h"
#include "agent/shadow/rank_injector.h"

namespace perfd::agent {

struct PuppetEnd {
  int64_t passes = 0;
  std::string checksum;
  int status = -1;  // of wait
  double figure = 0;  // what else it says
};

class PuppetRank {
 public:
  // Arguments of lab_puppet, or of another program that says the same.
  explicit PuppetRank(std::vector<std::string> arguments, std::string program = "");
  // Of another user than we are, where we may: what such a rank tells of itself is not all zeros.
  static PuppetRank OfAnotherUser(std::vector<std::string> arguments);
  ~PuppetRank();

  pid_t pid() const { return pid_; }
  RankInfo rank() const;
  // which: 0 triad, 1 bump.
  LoopToInject MakeLoop(const std::vector<std::string>& variants, int which = 0) const;
  LoopBytes BytesOf(int which) const;
  std::vector<uint8_t> Text() const;      // of the two functions
  std::vector<std::string> Maps() const;  // lines without those of stacks and heap sizes
  int Descriptors() const;
  std::vector<int32_t> Children() const;  // zombies too
  PuppetEnd Stop();                       // SIGTERM, waits

 private:
  pid_t pid_ = 0;
  int out_ = -1;
  struct Place {
    uint64_t low = 0, header = 0, exit = 0, high = 0;
  };
  Place loops_[2];
};

// What an undisturbed puppet computes.
std::string ChecksumOf(int threads, int64_t n, int64_t passes, const std::string& mode = "");

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_SHADOW_PUPPET_RANK_H_
