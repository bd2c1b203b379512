#include "tests/unit/procfs/fake_proc.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace perfd::agent {

namespace fs = std::filesystem;

FakeProc::FakeProc() {
  std::string name = (fs::temp_directory_path() / "perfd-proc-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  root_ = name;
}

FakeProc::~FakeProc() {
  std::error_code error;
  fs::remove_all(root_, error);
}

void FakeProc::Write(absl::string_view path, absl::string_view contents) {
  const fs::path file = fs::path(root_) / std::string(path);
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << contents;
}

void FakeProc::AddProcess(const FakeProcess& p) {
  const std::string dir = absl::StrCat(p.pid, "/");
  const std::string name = p.arguments.empty() ? "kthread" : p.arguments[0];
  const uint32_t effective = p.effective_uid < 0 ? p.uid : static_cast<uint32_t>(p.effective_uid);
  // Fields 4 to 37 are 0 but for the parent (4), utime (14), stime (15) and the start (22).
  Write(dir + "stat",
        absl::StrCat(p.pid, " (", name, ") ", std::string(1, p.state), " ", p.parent_pid,
                     " 0 0 0 0 0 0 0 0 0 ", p.user_ticks, " 50 0 0 0 0 0 0 ", p.start_ticks,
                     " 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 ", p.exit_signal, " 0\n"));
  Write(dir + "status",
        absl::StrCat("Name:\t", name, "\nState:\t", std::string(1, p.state), " (x)\nTgid:\t", p.pid,
                     "\nPPid:\t1\nTracerPid:\t0\nUid:\t", p.uid, "\t", effective, "\t", effective,
                     "\t", effective, "\nGid:\t100\t", p.effective_gid, "\t", p.effective_gid,
                     "\t100\nThreads:\t1\nGroups:\t100 200 \n"));
  const std::string nul(1, '\0');
  std::string arguments = absl::StrJoin(p.arguments, nul);
  if (!p.arguments.empty()) arguments += nul;
  Write(dir + "cmdline", arguments);
  std::string environment;
  for (const auto& [key, value] : p.environment) {
    absl::StrAppend(&environment, key, "=", value, nul);
  }
  Write(dir + "environ", environment);
  Write(dir + "cgroup", p.cgroup);
  Write(absl::StrCat(dir, "task/", p.pid, "/schedstat"), "123456789 5 6\n");
  // The link of a real /proc leads to a file of another name space; here it dangles unless a head is set.
  fs::remove(fs::path(root_) / (dir + "exe"));
  if (!p.executable.empty()) fs::create_symlink(p.executable, fs::path(root_) / (dir + "exe"));
}

void FakeProc::Remove(int32_t pid) {
  fs::remove_all(fs::path(root_) / absl::StrCat(pid));
}

void FakeProc::SetExecutableHead(int32_t pid, uint8_t elf_class, uint16_t machine) {
  const fs::path link = fs::path(root_) / absl::StrCat(pid) / "exe";
  const std::string name = fs::read_symlink(link).filename().string();
  std::string head("\177ELF", 4);
  head += static_cast<char>(elf_class);
  head.resize(18, '\0');
  head += static_cast<char>(machine & 0xff);
  head += static_cast<char>(machine >> 8);
  head.resize(64, '\0');
  const std::string file = absl::StrCat("files/", pid, "/", name);
  Write(file, head);
  fs::remove(link);
  fs::create_symlink(fs::path(root_) / file, link);
}

}  // namespace perfd::agent
