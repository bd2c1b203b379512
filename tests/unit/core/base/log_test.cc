#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "core/base/log_file.h"

namespace perfd {
namespace {

using ::testing::HasSubstr;

class LogTest : public testing::Test {
 protected:
  LogTest() {
    folder_ = testing::TempDir() + "log_test_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    InitLog("tester", LogLevel::kInfo);
  }
  ~LogTest() override {
    (void)LogToFile("");
    std::filesystem::remove_all(folder_);
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string Read(const std::string& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

  std::string folder_;
};

TEST_F(LogTest, ARotatedFileIsLeftAtTheNextOpening) {
  ASSERT_TRUE(LogToFile(Path("a.log")).ok());
  LogInfo("one");
  std::filesystem::rename(Path("a.log"), Path("a.log.1"));
  LogInfo("two");  // the old file still: nothing is lost
  ASSERT_TRUE(LogToFile(Path("a.log")).ok());
  LogInfo("three");
  EXPECT_THAT(Read(Path("a.log.1")), AllOf(HasSubstr("tester info one\n"), HasSubstr("two\n")));
  EXPECT_THAT(Read(Path("a.log")), AllOf(HasSubstr("three\n"), testing::Not(HasSubstr("two"))));
  struct stat facts {};
  ASSERT_EQ(::stat(Path("a.log").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07, 0u);  // names users and their programs
}

// A peer's text must not look like lines of ours, nor move the reader's cursor.
TEST_F(LogTest, ALineIsOneLine) {
  ASSERT_TRUE(LogToFile(Path("forged.log")).ok());
  LogInfo("version {}",
          "1\n2026-11-25T00:00:00.000 perfd info submitted by root\r\x1b[2J\x7f\xc2\x9b");
  LogInfo("turned {}", "main\xE2\x80\xAE(c.niam");
  LogInfo("named {}", "caf\xc3\xa9 'quoted' back\\slash");
  EXPECT_THAT(Read(Path("forged.log")),
              HasSubstr("version 1\\x0a2026-11-25T00:00:00.000 perfd info submitted by root\\x0d"
                        "\\x1b[2J\\x7f\\xc2\\x9b\n"));
  EXPECT_THAT(Read(Path("forged.log")), HasSubstr("turned main\\xe2\\x80\\xae(c.niam\n"));
  EXPECT_THAT(Read(Path("forged.log")), HasSubstr("named caf\xc3\xa9 'quoted' back\\slash\n"));
}

TEST_F(LogTest, ALineIsBounded) {
  ASSERT_TRUE(LogToFile(Path("long.log")).ok());
  LogInfo("{}", std::string(15'000'000, 'x'));
  EXPECT_LT(Read(Path("long.log")).size(), 4300u);
  ASSERT_TRUE(LogToFile(Path("escaped.log")).ok());
  LogInfo("{}", std::string(15'000'000, '\n'));
  EXPECT_LT(Read(Path("escaped.log")).size(), 4300u) << "also when each byte becomes four";
  EXPECT_THAT(Read(Path("long.log")), HasSubstr("... (14995904 bytes more)\n"));
}

TEST_F(LogTest, AppendsToWhatIsThere) {
  std::ofstream(Path("b.log")) << "before\n";
  ASSERT_TRUE(LogToFile(Path("b.log")).ok());
  LogInfo("after");
  EXPECT_THAT(Read(Path("b.log")), testing::StartsWith("before\n"));
  EXPECT_THAT(Read(Path("b.log")), HasSubstr("after\n"));
}

TEST_F(LogTest, WhatCannotBeOpenedLeavesTheLogAsItWas) {
  ASSERT_TRUE(LogToFile(Path("c.log")).ok());
  EXPECT_EQ(LogToFile(Path("missing/c.log")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(LogToFile(folder_).ok(), false);
  std::filesystem::create_symlink(Path("elsewhere"), Path("link.log"));
  EXPECT_EQ(LogToFile(Path("link.log")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(Path("elsewhere")));
  ASSERT_EQ(::mkfifo(Path("pipe.log").c_str(), 0600), 0);
  EXPECT_EQ(LogToFile(Path("pipe.log")).code(),
            absl::StatusCode::kInvalidArgument);  // and does not wait
  LogInfo("still here");
  EXPECT_THAT(Read(Path("c.log")), HasSubstr("still here"));
}

TEST_F(LogTest, TheLevelMayChange) {
  ASSERT_TRUE(LogToFile(Path("d.log")).ok());
  LogDebug("hidden");
  SetLogLevel(LogLevel::kDebug);
  LogDebug("shown");
  SetLogLevel(LogLevel::kError);
  LogWarning("silent");
  EXPECT_THAT(Read(Path("d.log")), AllOf(HasSubstr("shown"), testing::Not(HasSubstr("hidden")),
                                         testing::Not(HasSubstr("silent"))));
}

TEST_F(LogTest, NoLineIsLostOrTornWhileFilesChange) {
  constexpr int kLines = 200;
  constexpr int kThreads = 4;
  ASSERT_TRUE(LogToFile(Path("e0.log")).ok());
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([t] {
      for (int i = 0; i < kLines; ++i) LogInfo("line {} of {} ends here", i, t);
    });
  }
  for (int file = 1; file <= 20; ++file)
    EXPECT_TRUE(LogToFile(Path("e" + std::to_string(file % 3) + ".log")).ok());
  for (std::thread& writer : writers) writer.join();
  int whole = 0;
  for (int file = 0; file < 3; ++file) {
    std::istringstream lines(Read(Path("e" + std::to_string(file) + ".log")));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_THAT(line, testing::EndsWith("ends here"));
      ++whole;
    }
  }
  EXPECT_EQ(whole, kLines * kThreads);
}

}  // namespace
}  // namespace perfd
