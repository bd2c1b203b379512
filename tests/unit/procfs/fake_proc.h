// tests/unit/procfs/fake_proc.h - a fake /proc in a scratch folder, removed at the end.
//
// Shape    FakeProc proc; proc.AddProcess({...}); ProcFs(proc.root()).
#ifndef TESTS_UNIT_PROCFS_FAKE_PROC_H_
#define TESTS_UNIT_PROCFS_FAKE_PROC_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace perfd::agent {

struct FakeProcess {
  int32_t pid = 0;
  uint32_t uid = 1000;
  std::string executable = "/usr/bin/app";  // empty: a kernel thread
  std::vector<std::string> arguments = {"app"};
  std::vector<std::pair<std::string, std::string>> environment{};
  std::string cgroup = "0::/\n";
  uint64_t start_ticks = 100;
  uint64_t user_ticks = 150;
  char state = 'R';
  int exit_signal = 17;
  int64_t effective_uid = -1;  // -1: uid; also the saved one
  uint32_t effective_gid = 100;
  int32_t parent_pid = 0;
};

class FakeProc {
 public:
  FakeProc();
  ~FakeProc();
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;

  const std::string& root() const { return root_; }
  void AddProcess(const FakeProcess& process);
  void Remove(int32_t pid);
  // `path` is relative to the root; folders are made.
  void Write(absl::string_view path, absl::string_view contents);
  // What /proc/PID/exe leads to: an ELF header with this class and machine, as a file of the fake tree.
  void SetExecutableHead(int32_t pid, uint8_t elf_class, uint16_t machine);

 private:
  std::string root_;
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_PROCFS_FAKE_PROC_H_
