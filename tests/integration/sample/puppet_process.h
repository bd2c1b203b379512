// tests/integration/sample/puppet_process.h - runs the puppet; it stops at each "wait" until Go().
#ifndef TESTS_INTEGRATION_SAMPLE_PUPPET_PROCESS_H_
#define TESTS_INTEGRATION_SAMPLE_PUPPET_PROCESS_H_

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/unique_fd.h"

extern char** environ;

namespace perfd::agent {

class PuppetProcess {
 public:
  explicit PuppetProcess(std::vector<std::string> steps,
                         std::vector<std::string> environment = {}) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
    UniqueFd child_in(in[0]), child_out(out[1]);
    to_ = UniqueFd(in[1]);
    from_ = UniqueFd(out[0]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, child_in.get(), 0);
    posix_spawn_file_actions_adddup2(&actions, child_out.get(), 1);
    steps.insert(steps.begin(), PERFD_SAMPLE_PUPPET);
    std::vector<char*> arguments, variables;
    for (std::string& step : steps) arguments.push_back(step.data());
    for (std::string& variable : environment) variables.push_back(variable.data());
    arguments.push_back(nullptr);
    variables.push_back(nullptr);
    if (::posix_spawn(&pid_, PERFD_SAMPLE_PUPPET, &actions, nullptr, arguments.data(),
                      environment.empty() ? environ : variables.data()) != 0) {
      std::abort();
    }
    posix_spawn_file_actions_destroy(&actions);
  }
  ~PuppetProcess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  PuppetProcess(const PuppetProcess&) = delete;
  PuppetProcess& operator=(const PuppetProcess&) = delete;

  int pid() const { return pid_; }
  bool Go() { return ::write(to_.get(), "g", 1) == 1; }
  // Waits at most 20 s for the next "say".
  bool Heard() {
    pollfd ready{from_.get(), POLLIN, 0};
    char byte = 0;
    while (::poll(&ready, 1, 20'000) == 1 && ::read(from_.get(), &byte, 1) == 1) {
      if (byte == '\n') return true;
    }
    return false;
  }
  // Exit code; the puppet ends by itself within its alarm.
  int Wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd to_, from_;
};

}  // namespace perfd::agent

#endif  // TESTS_INTEGRATION_SAMPLE_PUPPET_PROCESS_H_
