#include "tests/integration/shadow/puppet_rank.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/attach/memory.h"
#include "agent/experiment/text_scan.h"
#include "agent/procfs/procfs.h"

extern char** environ;

namespace perfd::agent {
namespace {

std::string ReadLine(int fd) {
  std::string line;
  for (char c = 0;;) {
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, 60000) <= 0 || read(fd, &c, 1) != 1 || c == '\n') return line;
    line += c;
  }
}

}  // namespace

PuppetRank::PuppetRank(std::vector<std::string> arguments, std::string program) {
  if (program.empty()) program = PERFD_INJECTOR_PUPPET;
  arguments.insert(arguments.begin(), program);
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) abort();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  if (posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ) != 0) abort();
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  out_ = ends[0];
  const std::string line = ReadLine(out_);
  Place &a = loops_[0], &b = loops_[1];
  if (sscanf(line.c_str(), "%lx %lx %lx %lx %lx %lx %lx %lx", &a.low, &a.header, &a.exit, &a.high,
             &b.low, &b.header, &b.exit, &b.high) != 8) {
    fprintf(stderr, "puppet said: %s\n", line.c_str());
  }
}

PuppetRank PuppetRank::OfAnotherUser(std::vector<std::string> arguments) {
  if (geteuid() != 0) return PuppetRank(std::move(arguments));
  const std::vector<std::string> user = {"--reuid=30002", "--regid=30002", "--clear-groups",
                                         PERFD_INJECTOR_PUPPET};
  arguments.insert(arguments.begin(), user.begin(), user.end());
  return PuppetRank(std::move(arguments), "/usr/bin/setpriv");
}

PuppetRank::~PuppetRank() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(out_);
}

RankInfo PuppetRank::rank() const {
  RankInfo rank;
  rank.pid = pid_;
  rank.start_ticks = ProcFs().StartTicks(pid_).value_or(0);
  return rank;
}

LoopBytes PuppetRank::BytesOf(int which) const {
  const Place& place = loops_[which];
  auto memory = Memory::Open(pid_, rank().start_ticks);
  return {.function = {{place.low, memory->Read(place.low, place.high - place.low).value()}},
          .header = place.header,
          .body = {{place.header, place.exit}}};
}

LoopToInject PuppetRank::MakeLoop(const std::vector<std::string>& variants, int which) const {
  LoopToInject loop;
  loop.loop_id = which == 0 ? "triad" : "bump";
  LoopBytes bytes = BytesOf(which);
  auto memory = Memory::Open(pid_, rank().start_ticks);
  ReadCalledCode(*memory, &bytes);
  auto code = DecodeLoop(bytes);
  if (!code.ok()) fprintf(stderr, "%s\n", code.status().ToString().c_str());
  loop.code = code.value();
  for (const std::string& name : variants) loop.variants.push_back(ParseVariantName(name).value());
  return loop;
}

std::vector<uint8_t> PuppetRank::Text() const {
  auto memory = Memory::Open(pid_, rank().start_ticks);
  const uint64_t low = std::min(loops_[0].low, loops_[1].low),
                 high = std::max(loops_[0].high, loops_[1].high);
  return memory->Read(low, high - low).value();
}

std::vector<std::string> PuppetRank::Maps() const {
  std::vector<std::string> lines;
  const auto maps = ProcFs().Maps(pid_);
  for (const MapEntry& map : *maps) {
    if (map.path == "[heap]" || map.path == "[stack]") continue;
    lines.push_back(absl::StrCat(absl::Hex(map.start), "-", absl::Hex(map.end), " ", map.readable,
                                 map.writable, map.executable, map.shared, " ", map.path));
  }
  return lines;
}

int PuppetRank::Descriptors() const {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid_, "/fd")))
    n += !entry.path().empty();
  return n;
}

std::vector<int32_t> PuppetRank::Children() const {
  std::vector<int32_t> children;
  ProcFs procfs;
  const auto pids = procfs.Pids();
  for (int32_t pid : *pids) {
    auto status = procfs.Status(pid);
    if (status.ok() && status->parent_pid == pid_) children.push_back(pid);
  }
  return children;
}

PuppetEnd PuppetRank::Stop() {
  PuppetEnd end;
  kill(pid_, SIGTERM);
  const std::string line = ReadLine(out_);
  char sum[64] = "";
  if (sscanf(line.c_str(), "%ld %63s %lf", &end.passes, sum, &end.figure) >= 2) end.checksum = sum;
  waitpid(pid_, &end.status, 0);
  pid_ = 0;
  return end;
}

std::string ChecksumOf(int threads, int64_t n, int64_t passes, const std::string& mode) {
  PuppetRank puppet({absl::StrCat(threads), absl::StrCat(n), absl::StrCat(passes), mode});
  return puppet.Stop().checksum;
}

}  // namespace perfd::agent
