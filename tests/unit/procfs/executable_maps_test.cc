#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/procfs/procfs.h"
#include "agent/procfs/read_file.h"
#include "core/base/unique_fd.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

constexpr size_t kPage = 4096;
constexpr int kText = PROT_READ | PROT_EXEC;

// Its pages are a file's, all executable, but for the middle one.
class FileWithMovedCode {
 public:
  FileWithMovedCode() : path_(absl::StrCat(testing::TempDir(), "od d\nname", ::getpid())) {
    const UniqueFd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(::ftruncate(file.get(), 3 * kPage), 0);
    void* const pages = ::mmap(nullptr, 3 * kPage, PROT_READ, MAP_PRIVATE, file.get(), 0);
    at_ = static_cast<char*>(pages);
    EXPECT_EQ(::mmap(at_ + kPage, kPage, kText, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              at_ + kPage);
  }
  ~FileWithMovedCode() {
    ::munmap(at_, 3 * kPage);
    ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  uint64_t moved() const { return reinterpret_cast<uint64_t>(at_) + kPage; }

 private:
  std::string path_;
  char* at_ = nullptr;
};

std::vector<MapEntry> Executable(const std::vector<MapEntry>& maps) {
  std::vector<MapEntry> executable;
  // The page of emulated system calls is no mapping of the process: only the text of maps has it.
  std::copy_if(maps.begin(), maps.end(), std::back_inserter(executable), [](const MapEntry& entry) {
    return entry.executable && entry.path != "[vsyscall]";
  });
  return executable;
}

const MapEntry* At(const std::vector<MapEntry>& maps, uint64_t start) {
  const auto found = std::find_if(maps.begin(), maps.end(),
                                  [&](const MapEntry& entry) { return entry.start == start; });
  return found == maps.end() ? nullptr : &*found;
}

TEST(ExecutableMaps, AreThoseOfTheWholeFileWithTheNeighboursOfMovedCode) {
  const FileWithMovedCode file;
  const auto all = ProcFs().Maps(::getpid());
  const auto executable = ExecutableMaps(ProcFs(), ::getpid());
  ASSERT_TRUE(all.ok() && executable.ok()) << all.status() << executable.status();
  EXPECT_EQ(Executable(*executable), Executable(*all));
  EXPECT_LT(executable->size(), all->size());
  EXPECT_TRUE(std::is_sorted(executable->begin(), executable->end(),
                             [](const auto& a, const auto& b) { return a.start < b.start; }));
  for (const uint64_t start : {file.moved() - kPage, file.moved(), file.moved() + kPage}) {
    const MapEntry* const told = At(*executable, start);
    ASSERT_NE(told, nullptr) << start - file.moved();
    EXPECT_EQ(*told, *At(*all, start));
  }
  EXPECT_EQ(At(*executable, file.moved() - kPage)->path, file.path());
}

TEST(ExecutableMaps, OfADeletedFileSaySo) {
  const FileWithMovedCode file;
  ::unlink(file.path().c_str());
  const auto executable = ExecutableMaps(ProcFs(), ::getpid());
  ASSERT_TRUE(executable.ok()) << executable.status();
  const MapEntry* const below = At(*executable, file.moved() - kPage);
  ASSERT_NE(below, nullptr);
  EXPECT_EQ(below->path, file.path());
  EXPECT_TRUE(below->deleted);
}

TEST(ExecutableMaps, ArePickedWhereTheKernelCannotBeAsked) {
  FakeProc proc;
  proc.AddProcess({.pid = 5});
  proc.Write("5/maps",
             "1000-2000 r--p 00000000 08:01 7 /app\n"
             "2000-3000 r-xp 00000000 00:00 0 \n"
             "3000-4000 r--p 00002000 08:01 7 /app\n"
             "4000-5000 rw-p 00003000 08:01 7 /app\n"
             "5000-6000 r-xp 00000000 00:00 0 [anon:jit]\n"
             "6000-7000 rw-p 00000000 00:00 0\n"
             "7000-8000 r-xp 00000000 08:01 8 /lib\n");
  const auto executable = ExecutableMaps(ProcFs(proc.root()), 5);
  ASSERT_TRUE(executable.ok()) << executable.status();
  std::vector<uint64_t> starts;
  for (const MapEntry& entry : *executable) starts.push_back(entry.start);
  EXPECT_THAT(starts, testing::ElementsAre(0x1000, 0x2000, 0x3000, 0x5000, 0x7000));
}

TEST(ExecutableMaps, APickIsTheSameAsTheAnswer) {
  const FileWithMovedCode file;
  const std::string path = absl::StrCat("/proc/", ::getpid(), "/maps");
  const auto text = ReadWholeFile(path, 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto picked = ParseMaps(PickExecutable(*text));
  ASSERT_TRUE(picked.ok()) << picked.status();
  EXPECT_EQ(Executable(*picked), Executable(*ExecutableMaps(ProcFs(), ::getpid())));
  EXPECT_NE(At(*picked, file.moved() + kPage), nullptr);
}

TEST(ExecutableMaps, WhatCannotBeReadStaysToBeRefused) {
  EXPECT_EQ(PickExecutable("nonsense\n1000-2000 r--p 0\n"), "nonsense\n");
  EXPECT_TRUE(absl::IsNotFound(ReadExecutableMaps("/proc/none", 10).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(ReadExecutableMaps("/proc/self/maps", 10).status()));
}

}  // namespace
}  // namespace perfd::agent
