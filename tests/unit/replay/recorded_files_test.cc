#include "agent/replay/recorded_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

using ::testing::HasSubstr;

// A file whose build-id is its contents, in hex.
class TextSource final : public CodeSource {
 public:
  explicit TextSource(std::string build_id) { facts_.build_id = std::move(build_id); }
  const ModuleFacts& facts() const override { return facts_; }
  absl::StatusOr<CodeFacts> Lookup(const std::vector<ElfAddress>&, absl::Duration) override {
    return CodeFacts();
  }

 private:
  ModuleFacts facts_;
};

class RecordedFilesTest : public testing::Test {
 protected:
  RecordedFilesTest() {
    std::string name = "/tmp/perfd-files-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~RecordedFilesTest() override { std::filesystem::remove_all(folder_); }

  void WriteFile(const std::string& path, const std::string& build_id) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << build_id;
  }

  absl::StatusOr<std::unique_ptr<CodeSource>> Open(const std::string& path,
                                                   const std::string& build_id) {
    std::vector<RecordedModule> modules;
    if (!build_id.empty()) modules.push_back({-1, build_id, path});
    RecordedFiles files(
        modules,
        [this](const RawModule& module, ModuleDetail) -> absl::StatusOr<std::unique_ptr<CodeSource>> {
          opened_.push_back(module.key.path);
          EXPECT_EQ(module.pid, ::getpid()) << "through this process, with its rights";
          std::string text;
          std::ifstream(module.key.path) >> text;
          return std::make_unique<TextSource>(text);
        },
        {folder_ + "/cache"});
    MappingEvent mapping;
    mapping.path = path;
    RawModule module;
    module.pid = 1;
    module.key.path = path;
    module.key.inode = files.Identify(mapping).inode;
    return files.Opener()(module, ModuleDetail::kLines);
  }

  std::string folder_;
  std::vector<std::string> opened_;
};

TEST_F(RecordedFilesTest, TheFileItselfOrTheCacheWithTheSameBuildId) {
  const std::string path = folder_ + "/app";
  const std::string cached = folder_ + "/cache/.build-id/ab/cdef/elf";
  WriteFile(path, "abcdef");
  EXPECT_TRUE(Open(path, "\xab\xcd\xef").ok());
  WriteFile(path, "000000");  // built anew since
  EXPECT_EQ(Open(path, "\xab\xcd\xef").status().code(), absl::StatusCode::kNotFound);
  WriteFile(cached, "abcdef");
  opened_.clear();
  EXPECT_TRUE(Open(path, "\xab\xcd\xef").ok());
  EXPECT_EQ(opened_.back(), cached);
  std::filesystem::remove(path);
  EXPECT_TRUE(Open(path, "\xab\xcd\xef").ok());
}

TEST_F(RecordedFilesTest, SaysWhereAFileWouldBeFound) {
  const auto source = Open(folder_ + "/app", "\xab\xcd\xef");
  EXPECT_EQ(source.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(source.status().message()), HasSubstr("cache/.build-id/ab/cdef/elf"));
}

// Containers have a libc.so.6 each.
TEST_F(RecordedFilesTest, APathWithTwoBuildIdsIsTwoFiles) {
  RecordedFiles files({{1, "\xaa\xbb", "/lib/c.so"}, {2, "\xcc\xdd", "/lib/c.so"}}, nullptr, {});
  MappingEvent mapping;
  mapping.path = "/lib/c.so";
  const uint64_t untold = files.Identify(mapping).inode;
  mapping.build_id = "\xaa\xbb";
  const uint64_t first = files.Identify(mapping).inode;
  EXPECT_EQ(files.Identify(mapping).inode, first);
  mapping.build_id = "\xcc\xdd";
  const uint64_t second = files.Identify(mapping).inode;
  EXPECT_EQ(std::set<uint64_t>({untold, first, second}).size(), 3u);
  RawModule module;
  module.key = {0, 0, untold, "/lib/c.so"};
  EXPECT_EQ(files.Opener()(module, ModuleDetail::kLines).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "which of them it is, is not known";
}

TEST_F(RecordedFilesTest, WithoutABuildIdNothingIsRead) {
  const std::string path = folder_ + "/app";
  WriteFile(path, "abcdef");
  EXPECT_EQ(Open(path, "").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(opened_.empty());
}

// A recording of strangers may name anything.
TEST_F(RecordedFilesTest, OnlyRegularFilesAreOpened) {
  for (const char* path : {"/dev/zero", "/tmp", "/proc/self/mem/../../.."}) {
    EXPECT_FALSE(Open(path, "\xab\xcd\xef").ok()) << path;
  }
  EXPECT_TRUE(opened_.empty());
}

}  // namespace
}  // namespace perfd::agent
