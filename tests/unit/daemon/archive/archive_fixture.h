// A folder for an archive.
#ifndef TESTS_UNIT_DAEMON_ARCHIVE_ARCHIVE_FIXTURE_H_
#define TESTS_UNIT_DAEMON_ARCHIVE_ARCHIVE_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace perfd::daemon {

class ArchiveFixture : public testing::Test {
 protected:
  ArchiveFixture() {
    std::string name = testing::TempDir() + "/perfd-archive-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) base_ = name;
    folder_ = base_ + "/archive";
  }
  ~ArchiveFixture() override { std::filesystem::remove_all(base_); }

  // Every file, hidden ones too, relative to the folder.
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    if (!std::filesystem::exists(folder_)) return files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (!entry.is_directory())
        files.push_back(std::filesystem::relative(entry.path(), folder_).string());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  std::string Read(const std::string& file) const {
    std::ifstream in(folder_ + "/" + file);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void Write(const std::string& file, const std::string& text = "x") const {
    std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + file).parent_path());
    std::ofstream(folder_ + "/" + file) << text;
  }

  std::string base_;
  std::string folder_;
};

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_ARCHIVE_ARCHIVE_FIXTURE_H_
