// tests/integration/attach/attach_puppet.h - runs tests/puppets/attach_threads.c and reads what it found out about itself.
#ifndef TESTS_INTEGRATION_ATTACH_ATTACH_PUPPET_H_
#define TESTS_INTEGRATION_ATTACH_ATTACH_PUPPET_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/unique_fd.h"

namespace perfd::agent {

class AttachPuppet {
 public:
  struct Role {
    int64_t turns = 0;
    int64_t eintr = 0;
    int64_t bad = 0;
  };

  // Returns when it has printed "ready".
  explicit AttachPuppet(std::vector<std::string> words);
  ~AttachPuppet();
  AttachPuppet(const AttachPuppet&) = delete;
  AttachPuppet& operator=(const AttachPuppet&) = delete;

  pid_t pid() const { return pid_; }
  uint64_t start_ticks() const;
  // The section of code it named.
  std::pair<uint64_t, uint64_t> section() const { return section_; }
  char state() const;  // of /proc/PID/stat
  bool traced() const;
  // Waits at most a second for the state.
  bool Becomes(char state) const;

  // Ends it and takes its report: the exit code; -1 when it died or hung.
  int Finish();
  // Sum over the threads of a role; over all roles.
  const std::map<std::string, Role>& roles() const { return roles_; }
  int64_t eintr() const;

 private:
  std::string ReadLine();

  pid_t pid_ = -1;
  UniqueFd to_, from_;
  std::string buffered_;
  std::pair<uint64_t, uint64_t> section_{};
  std::map<std::string, Role> roles_;
};

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_ATTACH_ATTACH_PUPPET_H_
