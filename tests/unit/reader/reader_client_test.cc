#include "agent/reader/reader_client.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/binary/module_reader.h"
#include "tests/unit/binary/fixture.h"
#include "tests/unit/reader/confined_test.h"

namespace perfd::agent {
namespace {

using ReaderClientTest = ConfinedTest;

using ::testing::HasSubstr;

constexpr uint32_t kNobody = 65534;  // Source: Debian base-passwd
constexpr absl::Duration kPlenty = absl::Seconds(30);

// A scratch directory that everyone may enter.
class Scratch {
 public:
  Scratch() {
    std::string name = "/tmp/reader_test.XXXXXX";
    path_ = ::mkdtemp(name.data());
    ::chmod(path_.c_str(), 0755);
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  std::string Copy(const std::string& from, const std::string& name) const {
    const std::string to = path_ + "/" + name;
    std::filesystem::copy_file(from, to);
    return to;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A private mapping of a file in this process, as a rank has of its binary.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) : path_(path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ::fstat(fd.get(), &facts_);
    address_ = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  }
  ~MappedFile() { ::munmap(address_, 4096); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  ModuleFile Describe() const {
    const auto start = reinterpret_cast<uint64_t>(address_);
    return {.pid = ::getpid(),
            .uid = ::geteuid(),
            .gid = ::getegid(),
            .path = path_,
            .device_major = major(facts_.st_dev),
            .device_minor = minor(facts_.st_dev),
            .inode = facts_.st_ino,
            .map_start = start,
            .map_end = start + 4096};
  }

 private:
  std::string path_;
  struct stat facts_ {};
  void* address_;
};

ReaderOptions Options() {
  return {.reader_binary = PERFD_READER};
}

std::string StatusField(int32_t pid, const std::string& key) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.rfind(key + ":", 0) == 0) return line.substr(key.size() + 2);
  return "";
}

TEST_F(ReaderClientTest, AnswersLikeTheReaderInThisProcess) {
  const std::string path = Fixture("kernels-gcc-O2");
  const MappedFile mapped(path);
  auto client = ReaderClient::Start(mapped.Describe(), Options());
  ASSERT_TRUE(client.ok()) << client.status();
  auto here = ModuleReader::Open(OpenFile(path));
  ASSERT_TRUE(here.ok());
  EXPECT_EQ((*client)->facts(), (*here)->facts());
  std::vector<ElfAddress> addresses = {3};
  for (const char* name : {"single", "triple", "switched", "inlined", "main"})
    addresses.push_back(SymbolAddress(path, name));
  for (int round = 0; round < 2; ++round) {
    const auto answer = (*client)->Lookup(addresses, kPlenty);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(*answer, (*here)->FunctionsAt(addresses));
    EXPECT_EQ(answer->functions.size(), 5U);
    size_t spans = 0;
    for (const FunctionFacts& function : answer->functions) spans += function.spans.size();
    EXPECT_GE(spans, 4U);  // each kernel has a loop
  }
}

TEST_F(ReaderClientTest, ReaderIsConfined) {
  const MappedFile mapped(Fixture("shapes"));
  auto client = ReaderClient::Start(mapped.Describe(), Options());
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(StatusField((*client)->pid(), "Seccomp"), "2");
  EXPECT_EQ(StatusField((*client)->pid(), "NoNewPrivs"), "1");
  EXPECT_EQ(StatusField((*client)->pid(), "Threads"), "1");
}

TEST_F(ReaderClientTest, ReaderHasTheRightsOfTheTargetsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can start a reader for another user";
  const Scratch scratch;
  const std::string path = scratch.Copy(Fixture("shapes"), "program");
  const MappedFile mapped(path);
  ModuleFile file = mapped.Describe();
  file.uid = file.gid = kNobody;
  {
    auto client = ReaderClient::Start(file, Options());
    ASSERT_TRUE(client.ok()) << client.status();
    EXPECT_EQ(StatusField((*client)->pid(), "Uid"), "65534\t65534\t65534\t65534");
    EXPECT_EQ(StatusField((*client)->pid(), "Gid"), "65534\t65534\t65534\t65534");
    EXPECT_THAT(StatusField((*client)->pid(), "CapEff"), "0000000000000000");
  }
  ::chmod(path.c_str(), 0600);
  const auto refused = ReaderClient::Start(file, Options());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kPermissionDenied) << refused.status();
}

// A process of another user that waits to be killed; what it maps is described by the test's own mapping.
class OtherUsersProcess {
 public:
  explicit OtherUsersProcess(std::vector<gid_t> groups) : pid_(::fork()) {
    if (pid_ != 0) {
      for (int i = 0; i < 1000 && StatusField(pid_, "Uid") != "65534\t65534\t65534\t65534"; ++i)
        ::usleep(1000);
      return;
    }
    ::alarm(30);
    if (::setgroups(groups.size(), groups.data()) == 0 &&
        ::setresgid(kNobody, kNobody, kNobody) == 0 && ::setresuid(kNobody, kNobody, kNobody) == 0)
      ::pause();
    ::_exit(1);
  }
  ~OtherUsersProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  OtherUsersProcess(const OtherUsersProcess&) = delete;
  OtherUsersProcess& operator=(const OtherUsersProcess&) = delete;
  ModuleFile Describe(const MappedFile& mapped) const {
    ModuleFile file = mapped.Describe();
    file.pid = pid_;
    file.uid = file.gid = kNobody;
    return file;
  }

 private:
  pid_t pid_;
};

TEST_F(ReaderClientTest, ReaderHasTheGroupsOfTheProcess) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can start a reader for another user";
  constexpr gid_t kProject = 4000007;
  const Scratch scratch;
  const std::string folder = scratch.path() + "/project";
  std::filesystem::create_directory(folder);
  const std::string path = scratch.Copy(Fixture("shapes"), "project/program");
  ASSERT_EQ(::chown(folder.c_str(), 0, kProject), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0750), 0);
  const MappedFile mapped(path);
  {
    const OtherUsersProcess member({kProject, 4000008});
    auto client = ReaderClient::Start(member.Describe(mapped), Options());
    ASSERT_TRUE(client.ok()) << client.status();
    EXPECT_THAT(StatusField((*client)->pid(), "Groups"), HasSubstr("4000007 4000008"));
  }
  const OtherUsersProcess stranger({});
  EXPECT_EQ(ReaderClient::Start(stranger.Describe(mapped), Options()).status().code(),
            absl::StatusCode::kPermissionDenied);
  ModuleFile wrong = stranger.Describe(mapped);
  wrong.pid = ::getpid();  // another user's: its groups are not to be had
  EXPECT_EQ(ReaderClient::Start(wrong, Options()).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(ReaderClientTest, ADeletedFileIsReadWithTheRightsOfTheUserOnly) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can start a reader for another user";
  const Scratch scratch;
  const std::string path = scratch.Copy(Fixture("shapes"), "program");
  const MappedFile mapped(path);
  const OtherUsersProcess process({});
  ModuleFile file = process.Describe(mapped);  // forked from here: the same mappings
  ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  const int inode = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::filesystem::remove(path);
  EXPECT_TRUE(ReaderClient::Start(file, Options()).ok());
  ASSERT_EQ(::fchmod(inode, 0711), 0);
  const auto execute_only = ReaderClient::Start(file, Options());
  EXPECT_EQ(execute_only.status().code(), absl::StatusCode::kPermissionDenied)
      << execute_only.status();
  ::close(inode);
}

TEST_F(ReaderClientTest, DeletedOrReplacedFileIsReadThroughTheMapping) {
  const Scratch scratch;
  const std::string path = scratch.Copy(Fixture("shapes"), "program");
  const MappedFile mapped(path);
  std::filesystem::remove(path);
  std::string expected_id;
  {
    auto here = ModuleReader::Open(OpenFile(Fixture("shapes")));
    ASSERT_TRUE(here.ok());
    expected_id = (*here)->facts().build_id;
  }
  for (const bool replaced : {false, true}) {
    if (replaced) scratch.Copy(Fixture("team-gcc"), "program");
    auto client = ReaderClient::Start(mapped.Describe(), Options());
    if (::geteuid() == 0) {
      ASSERT_TRUE(client.ok()) << client.status();
      EXPECT_EQ((*client)->facts().build_id, expected_id);
    } else {
      EXPECT_EQ(client.status().code(), absl::StatusCode::kNotFound) << client.status();
    }
  }
  ModuleFile without_mapping = mapped.Describe();
  without_mapping.map_start = without_mapping.map_end = 0;
  const auto replaced = ReaderClient::Start(without_mapping, Options());
  EXPECT_EQ(replaced.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(replaced.status().message()), HasSubstr("replaced on disk"));
}

TEST_F(ReaderClientTest, SeparateDebugFileBesideTheBinaryIsFound) {
  const Scratch scratch;
  scratch.Copy(Fixture("kernels-gcc-O2.debug"), "program.debug");
  const std::string path = scratch.path() + "/program";
  OutputOf("objcopy --add-gnu-debuglink=" + scratch.path() + "/program.debug " +
           Fixture("kernels-gcc-O2-stripped") + " " + path);
  const MappedFile mapped(path);
  auto client = ReaderClient::Start(mapped.Describe(), Options());
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->facts().has_lines);
  EXPECT_TRUE((*client)->facts().has_symbols);
}

TEST_F(ReaderClientTest, SectionsAreDecompressedInConfinement) {
  const MappedFile mapped(Fixture("kernels-gcc-O2-zstd"));
  auto client = ReaderClient::Start(mapped.Describe(), Options());
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->facts().has_lines);
  EXPECT_EQ((*client)->facts().lines_problem, LinesProblem::kNone);
}

TEST_F(ReaderClientTest, RefusalsSayWhy) {
  const Scratch scratch;
  std::ofstream(scratch.path() + "/script") << "#!/bin/sh\n" << std::string(8192, '\n');
  auto start = [](const std::string& path) {
    const MappedFile mapped(path);
    return ReaderClient::Start(mapped.Describe(), Options()).status();
  };
  const absl::Status script = start(scratch.path() + "/script");
  EXPECT_EQ(script.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(script.message()), HasSubstr("script"));
  ModuleFile file{.pid = ::getpid(), .uid = ::geteuid(), .gid = ::getegid(), .path = "[vdso]"};
  EXPECT_EQ(ReaderClient::Start(file, Options()).status().code(), absl::StatusCode::kUnimplemented);
  file.path = "/dev/zero";
  EXPECT_EQ(ReaderClient::Start(file, Options()).status().code(),
            absl::StatusCode::kInvalidArgument);
  file.path = scratch.path() + "/nothing";
  EXPECT_EQ(ReaderClient::Start(file, Options()).status().code(), absl::StatusCode::kNotFound);
  // Its name is bytes, the answer is UTF-8.
  file.path = scratch.path() + "/n\xefthing";
  const absl::Status nothing = ReaderClient::Start(file, Options()).status();
  EXPECT_EQ(nothing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(nothing.message()), HasSubstr("/n?thing"));
  file.pid = 0x7FFFFFFF;
  EXPECT_EQ(ReaderClient::Start(file, Options()).status().code(), absl::StatusCode::kNotFound);
  const auto none = ReaderClient::Start(file, {.reader_binary = scratch.path() + "/none"});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
}

// A symbolic link must not lead out of the process's root; a pipe must not block the reader.
TEST_F(ReaderClientTest, PipesAreRefusedAtOnce) {
  const Scratch scratch;
  const std::string path = scratch.path() + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0644), 0);
  const ModuleFile file{.pid = ::getpid(), .uid = ::geteuid(), .gid = ::getegid(), .path = path};
  EXPECT_EQ(ReaderClient::Start(file, Options()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ReaderClientTest, DeathOfTheReaderIsAStatus) {
  const MappedFile mapped(Fixture("shapes"));
  auto client = ReaderClient::Start(mapped.Describe(), Options());
  ASSERT_TRUE(client.ok()) << client.status();
  const int32_t pid = (*client)->pid();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  const auto answer = (*client)->Lookup({1}, kPlenty);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kInternal) << answer.status();
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("signal 9"));
  EXPECT_EQ(::kill(pid, 0), -1);  // reaped
  EXPECT_EQ((*client)->Lookup({1}, kPlenty).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ReaderClientTest, SlowReaderIsKilled) {
  const MappedFile mapped(Fixture("shapes"));
  auto client = ReaderClient::Start(mapped.Describe(), Options());
  ASSERT_TRUE(client.ok()) << client.status();
  const int32_t pid = (*client)->pid();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  const auto answer = (*client)->Lookup({1}, absl::Milliseconds(50));
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded) << answer.status();
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST_F(ReaderClientTest, TooManyAddresses) {
  const MappedFile mapped(Fixture("shapes"));
  auto client = ReaderClient::Start(mapped.Describe(), Options());
  ASSERT_TRUE(client.ok()) << client.status();
  const auto most = (*client)->Lookup(std::vector<ElfAddress>(65536, 1), kPlenty);
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ(most->unresolved.size(), 1U);
  EXPECT_EQ((*client)->Lookup(std::vector<ElfAddress>(65537, 1), kPlenty).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace perfd::agent
