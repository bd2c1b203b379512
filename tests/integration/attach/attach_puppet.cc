#include "tests/integration/attach/attach_puppet.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "agent/procfs/procfs.h"

namespace perfd::agent {
namespace {

constexpr int kPatienceMs = 20'000;

}  // namespace

AttachPuppet::AttachPuppet(std::vector<std::string> words) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
  const UniqueFd child_in(in[0]), child_out(out[1]);
  to_ = UniqueFd(in[1]);
  from_ = UniqueFd(out[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_in.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, child_out.get(), 1);
  words.insert(words.begin(), PERFD_ATTACH_PUPPET);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  char* no_environment[] = {nullptr};
  if (::posix_spawn(&pid_, PERFD_ATTACH_PUPPET, &actions, nullptr, arguments.data(),
                    no_environment) != 0)
    std::abort();
  posix_spawn_file_actions_destroy(&actions);
  for (std::string line = ReadLine(); !line.empty() && line != "ready"; line = ReadLine()) {
    unsigned long start = 0, end = 0;
    if (std::sscanf(line.c_str(), "section %lx %lx", &start, &end) == 2) section_ = {start, end};
  }
}

AttachPuppet::~AttachPuppet() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string AttachPuppet::ReadLine() {
  while (buffered_.find('\n') == std::string::npos) {
    pollfd ready{from_.get(), POLLIN, 0};
    char bytes[4096];
    if (::poll(&ready, 1, kPatienceMs) != 1) return "";
    const ssize_t got = ::read(from_.get(), bytes, sizeof(bytes));
    if (got <= 0) return "";
    buffered_.append(bytes, static_cast<size_t>(got));
  }
  const size_t end = buffered_.find('\n');
  std::string line = buffered_.substr(0, end);
  buffered_.erase(0, end + 1);
  return line;
}

uint64_t AttachPuppet::start_ticks() const {
  return ProcFs().StartTicks(pid_).value_or(0);
}

char AttachPuppet::state() const {
  const auto stamp = ProcFs().Stamp(pid_);
  return stamp.ok() ? stamp->state : '?';
}

bool AttachPuppet::traced() const {
  const auto tids = ProcFs().Threads(pid_);
  if (!tids.ok()) return false;
  for (const int32_t tid : *tids) {
    const auto status = ProcFs().Status(tid);
    if (status.ok() && status->tracer_pid != 0) return true;
  }
  return false;
}

bool AttachPuppet::Becomes(char wanted) const {
  for (int i = 0; i < 1000; ++i) {
    if (state() == wanted) return true;
    ::usleep(1000);
  }
  return false;
}

int AttachPuppet::Finish() {
  to_.Reset();
  std::string line;
  bool complete = false;
  while (!complete && !(line = ReadLine()).empty()) {
    std::istringstream words(line);
    std::string role, turns, eintr, bad;
    Role part;
    if (words >> role >> turns >> part.turns >> eintr >> part.eintr >> bad >> part.bad) {
      roles_[role].turns += part.turns;
      roles_[role].eintr += part.eintr;
      roles_[role].bad += part.bad;
    }
    complete = role == "end";
  }
  for (const auto& [role, sum] : roles_)
    std::cout << "  " << role << ": turns " << sum.turns << ", eintr " << sum.eintr << ", bad "
              << sum.bad << "\n";
  int status = 0;
  if (!complete) ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int64_t AttachPuppet::eintr() const {
  int64_t sum = 0;
  for (const auto& [role, part] : roles_) sum += part.eintr;
  return sum;
}

}  // namespace perfd::agent
