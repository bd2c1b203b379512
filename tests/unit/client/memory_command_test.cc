// perfctl memory on a recording of a Skylake, whose figures perf 6.1 gives as well (`perf mem report`, tests/data/perf/README.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/commands/exit_code.h"
#include "core/files/own_file.h"
#include "core/zstd/zstd.h"
#include "tests/unit/client/command_runner.h"

namespace perfd::client {
namespace {

using ::testing::HasSubstr;

class MemoryCommandTest : public ::testing::Test {
 protected:
  MemoryCommandTest() {
    std::string name = std::filesystem::temp_directory_path() / "memory_command_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~MemoryCommandTest() override { std::filesystem::remove_all(folder_); }

  // The recording, or its first bytes.
  std::string Unpacked(size_t bytes = SIZE_MAX) const {
    const auto packed = ReadBoundedFile(
        "tests/data/perf/skx-load-latency-weight-struct.perf.data.zst", size_t{1} << 20);
    EXPECT_TRUE(packed.ok()) << packed.status();
    const auto* first = reinterpret_cast<const std::byte*>(packed->data());
    std::vector<std::byte> out;
    EXPECT_TRUE(DecompressStream().Append({first, packed->size()}, size_t{8} << 20, &out).ok());
    out.resize(std::min(bytes, out.size()));
    std::string path = folder_ / "perf.data";
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(out.data()), static_cast<std::streamsize>(out.size()));
    return path;
  }

  CommandRunner perfctl;
  std::filesystem::path folder_;
};

TEST_F(MemoryCommandTest, WhatPerfSaysOfIt) {
  ASSERT_EQ(perfctl.Run({"memory", "--json", "--recording", Unpacked()}), 0) << perfctl.err;
  const auto json = nlohmann::json::parse(perfctl.out);
  EXPECT_EQ(json["provenance"], "replayed");
  EXPECT_EQ(json["recording"]["cpus"], 112);
  EXPECT_EQ(json["recording"]["numa_nodes"].size(), 2u);
  EXPECT_EQ(json["events"][0]["latency_threshold"], 64);
  EXPECT_EQ(json["events"][0]["period"], 10009);
  EXPECT_EQ(json["events"][0]["accesses"], 14);
  EXPECT_EQ(json["events"][1]["samples"], 0);
  const auto& accesses = json["accesses"];
  EXPECT_EQ(accesses["samples"], 14);
  EXPECT_EQ(accesses["locked"], 2);
  EXPECT_EQ(accesses["hit_modified"], 0);
  std::map<std::string, int> levels;
  for (const auto& row : accesses["loads"]) levels[row["level"]] = row["samples"];
  EXPECT_EQ(levels,
            (std::map<std::string, int>{{"fill_buffer", 5}, {"l1", 4}, {"l2", 1}, {"l3", 4}}));
  std::map<std::string, int> dtlb;
  for (const auto& row : accesses["dtlb"]) dtlb[row["result"]] = row["samples"];
  EXPECT_EQ(dtlb, (std::map<std::string, int>{{"hit", 13}, {"walk", 1}}));
  for (const auto& border : json["beyond"]) {
    EXPECT_TRUE(border["share"].is_null()) << "14 samples say nothing of a share";
    EXPECT_EQ(border["why_not"], "too_few");
  }
  EXPECT_EQ(json["processes"].size(), 9u);
}

TEST_F(MemoryCommandTest, Text) {
  ASSERT_EQ(perfctl.Run({"memory", "--recording", Unpacked(), "--top", "3"}), 0) << perfctl.err;
  EXPECT_THAT(perfctl.out, HasSubstr("fill buffer"));
  EXPECT_THAT(perfctl.out, HasSubstr("page table walk"));
  EXPECT_THAT(perfctl.out, HasSubstr("too few"));
  EXPECT_THAT(perfctl.out, HasSubstr("and 6 more"));
  EXPECT_THAT(perfctl.err, HasSubstr("fewer than 64 cycles were not sampled"));
}

TEST_F(MemoryCommandTest, WhatIsCutOffIsSaid) {
  EXPECT_EQ(perfctl.Run({"memory", "--recording", Unpacked(200'000)}),
            static_cast<int>(ExitCode::kPartial));
  EXPECT_THAT(perfctl.err, HasSubstr("ends amid a record"));
  EXPECT_THAT(perfctl.err, HasSubstr("parts of its header could not be read"));
}

TEST_F(MemoryCommandTest, Refusals) {
  EXPECT_EQ(perfctl.Run({"memory"}), static_cast<int>(ExitCode::kUsage));
  EXPECT_EQ(perfctl.Run({"memory", "--recording", "/nowhere"}),
            static_cast<int>(ExitCode::kNotFound));
  const std::string text = folder_ / "text";
  std::ofstream(text) << std::string(500, 'x');
  EXPECT_EQ(perfctl.Run({"memory", "--recording", text}), static_cast<int>(ExitCode::kFailure));
  EXPECT_THAT(perfctl.err, HasSubstr("PERFILE2"));
}

}  // namespace
}  // namespace perfd::client
