// tests/unit/core/service/flags_fixture.h - a daemon's command line, parsed as its main would, with a file to name in it.
//
// Shape    Write a configuration, Parse words (what was printed is in out_ and err_), Again as at a reload.
// Threads  thread-bound.
#ifndef TESTS_UNIT_CORE_SERVICE_FLAGS_FIXTURE_H_
#define TESTS_UNIT_CORE_SERVICE_FLAGS_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/spec/config_table.h"

namespace perfd {

template <typename Flags>
class FlagsFixture : public testing::Test {
 protected:
  using ParseFunction = bool (*)(int argc, char** argv, Flags* flags, int* exit_code);
  using AgainFunction = absl::StatusOr<Flags> (*)(int argc, char** argv);

  FlagsFixture(std::string program, ParseFunction parse, AgainFunction again)
      : program_(std::move(program)),
        path_(testing::TempDir() + program_ + "_flags_" + std::to_string(::getpid()) + ".yaml"),
        parse_(parse),
        again_(again) {}
  ~FlagsFixture() override { std::filesystem::remove(path_); }

  // Nobody else may write what a daemon reads.
  void Write(const std::string& text) {
    std::ofstream(path_) << text;
    ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  }
  // The exit code, or -1 when the program goes on.
  int Parse(std::vector<std::string> words) {
    flags_ = Flags();
    words_ = std::move(words);
    words_.insert(words_.begin(), program_);
    arguments_.clear();
    for (std::string& word : words_) arguments_.push_back(word.data());
    int code = 0;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const bool goes_on =
        parse_(static_cast<int>(arguments_.size()), arguments_.data(), &flags_, &code);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return goes_on ? -1 : code;
  }
  absl::StatusOr<Flags> Again() {
    return again_(static_cast<int>(arguments_.size()), arguments_.data());
  }

  // Keys that the file does not show in their sections; one that belongs to no section may stand in
  // a comment.
  static std::vector<std::string> NotShown(const std::string& file, const ConfigTable& table) {
    std::set<std::string> shown;
    std::string section;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      const size_t begin = line.find_first_not_of(line[0] == '#' ? "# " : " ");
      if (begin == std::string::npos) continue;
      std::string name = line.substr(begin, line.find(':') - begin);
      if (line[0] != ' ') section = name;
      shown.insert(line[0] == ' ' ? section + "." + name : std::move(name));
    }
    std::vector<std::string> missing;
    for (const ConfigKey& key : table.keys) {
      if (!shown.contains(std::string(key.path))) missing.emplace_back(key.path);
    }
    return missing;
  }

  const std::string program_;
  const std::string path_;
  Flags flags_;
  std::string out_;
  std::string err_;

 private:
  const ParseFunction parse_;
  const AgainFunction again_;
  std::vector<std::string> words_;
  std::vector<char*> arguments_;
};

}  // namespace perfd

#endif  // TESTS_UNIT_CORE_SERVICE_FLAGS_FIXTURE_H_
