// What a fork may leave out of a rank's memory: choice, limits, refusals; smaps as the kernel writes it and as nobody should.
#include "agent/shadow/forking/trimmed_fork.h"

#include <sys/mman.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "agent/shadow/protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kMb = 1 << 20;

MemoryArea Area(uint64_t start, uint64_t end, uint64_t resident, std::string path = "") {
  MemoryArea area;
  area.map.start = start;
  area.map.end = end;
  area.map.readable = area.map.writable = true;
  area.map.path = std::move(path);
  area.anonymous = resident;
  area.flags = {"rd", "wr", "mr", "mw", "me", "ac", "sd"};
  return area;
}

std::vector<std::pair<uint64_t, uint64_t>> Mb(const TrimmedFork& trimmed_fork) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const PcRange& range : trimmed_fork.ranges) {
    EXPECT_EQ(range.start % kMb + range.end % kMb, 0u);
    ranges.emplace_back(range.start / kMb, range.end / kMb);
  }
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

TEST(ChooseTrimTest, CutsAtHugePagesAroundTheFootprint) {
  // 100 MB .. 1124 MB; the loop touches 201 .. 217 MB.
  const auto areas = {Area(100 * kMb, 1124 * kMb, 1024 * kMb)};
  const Footprint footprint{{{201 * kMb, 217 * kMb}}, false};
  const TrimmedFork trimmed_fork = ChooseTrim(areas, footprint, {});
  // A margin of 2 MB, then out to multiples of 2 MB.
  EXPECT_THAT(Mb(trimmed_fork), ElementsAre(std::pair(100u, 198u), std::pair(220u, 1124u)));
  EXPECT_EQ(trimmed_fork.small_bytes, (1024 - 22) * kMb);
  EXPECT_EQ(trimmed_fork.huge_bytes, 0u);
}

TEST(ChooseTrimTest, WholeAreasOnceCutsWereTooNarrow) {
  const auto areas = {Area(100 * kMb, 1124 * kMb, 1024 * kMb),
                      Area(2000 * kMb, 2100 * kMb, 100 * kMb)};
  Footprint footprint{{{201 * kMb, 217 * kMb}}, true};
  EXPECT_THAT(Mb(ChooseTrim(areas, footprint, {})), ElementsAre(std::pair(2000u, 2100u)));
  EXPECT_THAT(Mb(ChooseTrim(areas, footprint, {{}, {2050 * kMb}})), IsEmpty());
}

TEST(ChooseTrimTest, AsMuchAsTheLoopTouchesIsKeptAroundPointers) {
  const auto areas = {Area(100 * kMb, 1124 * kMb, 1024 * kMb)};
  const Footprint footprint{{{200 * kMb, 216 * kMb}}, false};
  const TrimmedFork trimmed_fork = ChooseTrim(areas, footprint, {{}, {600 * kMb, 5, UINT64_MAX}});
  EXPECT_THAT(Mb(trimmed_fork),
              ElementsAre(std::pair(100u, 198u), std::pair(218u, 584u), std::pair(616u, 1124u)));
}

TEST(ChooseTrimTest, StacksThatShareAMappingWithArraysAreKept) {
  const auto areas = {Area(100 * kMb, 600 * kMb, 500 * kMb), Area(700 * kMb, 900 * kMb, 200 * kMb)};
  // A stack of a thread library: its thread pointer is at its top.
  EXPECT_THAT(Mb(ChooseTrim(areas, {}, {{{200 * kMb, 400 * kMb}}, {}})),
              ElementsAre(std::pair(100u, 198u), std::pair(402u, 600u), std::pair(700u, 900u)));
  // Apart: what a frame may use above, what thread-local data may use below.
  EXPECT_THAT(Mb(ChooseTrim(areas, {}, {{{200 * kMb, 800 * kMb}}, {}})),
              ElementsAre(std::pair(100u, 198u), std::pair(208u, 600u), std::pair(700u, 792u),
                          std::pair(802u, 900u)));
}

TEST(ChooseTrimTest, OnlyLargePlainPrivateMemory) {
  EXPECT_THAT(ChooseTrim(std::vector{Area(0, 4 * kMb, kMb * 4)}, {}, {}).ranges, SizeIs(1));
  EXPECT_THAT(ChooseTrim(std::vector{Area(0, 4 * kMb - 4096, kMb * 3)}, {}, {}).ranges, IsEmpty());
  EXPECT_THAT(ChooseTrim(std::vector{Area(0, 4 * kMb, kMb * 4, "[heap]")}, {}, {}).ranges,
              SizeIs(1));
  auto none = [](auto change) {
    MemoryArea area = Area(0, 64 * kMb, 64 * kMb);
    change(area);
    return ChooseTrim(std::vector{area}, {}, {}).ranges.empty();
  };
  EXPECT_TRUE(none([](MemoryArea& a) { a.map.path = "/usr/lib/libx.so"; }));
  EXPECT_TRUE(none([](MemoryArea& a) { a.map.path = "[stack]"; }));
  EXPECT_TRUE(none([](MemoryArea& a) { a.map.inode = 5; }));
  EXPECT_TRUE(none([](MemoryArea& a) { a.map.shared = true; }));
  EXPECT_TRUE(none([](MemoryArea& a) { a.map.executable = true; }));
  EXPECT_TRUE(none([](MemoryArea& a) { a.map.writable = false; }));
  EXPECT_TRUE(none([](MemoryArea& a) { a.flags.clear(); }));  // a kernel that does not tell
  EXPECT_TRUE(none([](MemoryArea& a) { a.anonymous = 0; }));  // nothing to copy
  for (const char* flag : {"dc", "lo", "um", "uw", "ht", "mg", "gd", "io", "wf", "xx"})
    EXPECT_TRUE(none([&](MemoryArea& a) { a.flags.emplace_back(flag); })) << flag;
}

TEST(ChooseTrimTest, WhatIsResidentIsNotOverrated) {
  MemoryArea area = Area(0, 100 * kMb, 60 * kMb);
  area.huge = 40 * kMb;
  const Footprint footprint{{{10 * kMb, 20 * kMb}}, false};  // 8 .. 22 MB are kept
  const TrimmedFork trimmed_fork = ChooseTrim(std::vector{area}, footprint, {});
  EXPECT_NEAR(static_cast<double>(trimmed_fork.small_bytes), 6 * kMb, 2);
  EXPECT_NEAR(static_cast<double>(trimmed_fork.huge_bytes), 26 * kMb, 2);
  MemoryFacts facts;
  facts.anonymous = 61 * kMb;
  facts.huge = 40 * kMb;
  const MemoryFacts less = Trimmed(facts, trimmed_fork);
  EXPECT_NEAR(static_cast<double>(less.anonymous), 29 * kMb, 4);
  EXPECT_NEAR(static_cast<double>(less.huge), 14 * kMb, 4);
  EXPECT_EQ(Trimmed({}, trimmed_fork).anonymous, 0u);
}

TEST(ChooseTrimTest, TheLargestWhenThereAreTooMany) {
  std::vector<MemoryArea> areas;
  for (uint64_t i = 0; i < kMaxTrims + 1; ++i)
    areas.push_back(Area(i * 100 * kMb, i * 100 * kMb + 10 * kMb, i == 3 ? 5 * kMb : 10 * kMb));
  const auto ranges = Mb(ChooseTrim(areas, {}, {}));
  EXPECT_THAT(ranges, SizeIs(kMaxTrims));
  EXPECT_THAT(ranges, ::testing::Not(Contains(std::pair(uint64_t{300}, uint64_t{310}))));
}

TEST(JudgeTrimTest, MarksOfOthersAreNotTouched) {
  std::vector<MemoryArea> areas = {Area(0, 64 * kMb, 64 * kMb), Area(100 * kMb, 101 * kMb, 0)};
  EXPECT_TRUE(JudgeTrim(areas, {}, 0).ok());
  areas[1].flags.emplace_back("dc");
  EXPECT_THAT(std::string(JudgeTrim(areas, {}, 0).message()), HasSubstr("MADV_DONTFORK"));
  areas[1].map.path = "[vvar]";  // the kernel's own
  EXPECT_TRUE(JudgeTrim(areas, {}, 0).ok());
  const std::vector<OpenFile> files = {{5, "/dev/infiniband/uverbs0", 2}};
  EXPECT_THAT(std::string(JudgeTrim(areas, files, 0).message()), HasSubstr("uverbs0"));
  EXPECT_THAT(std::string(JudgeTrim(areas, {}, 4096).message()), HasSubstr("pinned"));
}

TEST(StillThereTest, OnlyMappingsThatHaveNotChanged) {
  std::vector<MemoryArea> areas = {Area(0x1000, 0x2000, 0), Area(0x3000, 0x5000, 0),
                                   Area(0x6000, 0x7000, 0)};
  std::vector<MapEntry> maps = {areas[0].map, areas[1].map, areas[2].map};
  EXPECT_THAT(StillThere(areas, maps), SizeIs(3));
  maps[1].end = 0x4000;
  maps[2].writable = false;
  ASSERT_THAT(StillThere(areas, maps), SizeIs(1));
  EXPECT_EQ(StillThere(areas, maps)[0].map.start, 0x1000u);
  EXPECT_THAT(StillThere(areas, {}), IsEmpty());
}

constexpr char kSmaps[] =
    "00400000-00401000 r-xp 00000000 fe:00 1234                               /usr/bin/a b\n"
    "Size:                  4 kB\n"
    "Rss:                   4 kB\n"
    "Anonymous:             0 kB\n"
    "VmFlags: rd ex mr mw me \n"
    "7f0000000000-7f0080000000 rw-p 00000000 00:00 0 \n"
    "Size:            2097152 kB\n"
    "Rss:              204800 kB\n"
    "Anonymous:        204800 kB\n"
    "AnonHugePages:    102400 kB\n"
    "THPeligible:    1\n"
    "ProtectionKey:         0\n"
    "VmFlags: rd wr mr mw me ac sd nh dc\n";

TEST(MemoryAreasTest, SmapsIsRead) {
  auto areas = ParseMemoryAreas(kSmaps);
  ASSERT_TRUE(areas.ok()) << areas.status();
  ASSERT_THAT(*areas, SizeIs(2));
  EXPECT_EQ((*areas)[0].map.path, "/usr/bin/a b");
  EXPECT_EQ((*areas)[1].map.start, 0x7f0000000000u);
  EXPECT_EQ((*areas)[1].anonymous, 200 * kMb);
  EXPECT_EQ((*areas)[1].huge, 100 * kMb);
  EXPECT_TRUE((*areas)[1].HasFlag("dc"));
  EXPECT_FALSE((*areas)[0].HasFlag("dc"));
}

TEST(MemoryAreasTest, HostileTextIsNotBelieved) {
  EXPECT_FALSE(ParseMemoryAreas("Rss: 4 kB\n").ok());
  EXPECT_FALSE(ParseMemoryAreas("nonsense\n").ok());
  auto areas = ParseMemoryAreas(
      "1000-2000 rw-p 0 00:00 0\nAnonymous: 99999999999999999999 kB\nAnonymous: x\nVmFlags:\n"
      "AnonHugePages: 18014398509481984 kB\n");
  ASSERT_TRUE(areas.ok());
  EXPECT_EQ(areas->at(0).anonymous + areas->at(0).huge, 0u);
  EXPECT_THAT(areas->at(0).flags, IsEmpty());
  EXPECT_TRUE(ParseMemoryAreas("")->empty());
}

TEST(MemoryAreasTest, WhatAForkSeesDifferentlyIsNamed) {
  const auto areas = ParseMemoryAreas(
      "1000-2000 rw-p 0 00:00 0\nRss: 4 kB\nPrivate_Dirty: 4 kB\nVmFlags: rd wr ac\n"
      "2000-3000 rw-p 0 00:00 0\nRss: 4 kB\nVmFlags: rd wr wf\n"
      "3000-4000 rw-p 0 00:00 0\nVmFlags: rd wr um\n"
      "4000-5000 rw-s 0 00:05 7 /somewhere\nVmFlags: rd wr sh pf io\n"
      "5000-6000 r--p 0 00:00 0 [vvar]\nVmFlags: rd mr pf io de\n"
      "6000-7000 rw-p 0 00:00 0\nVmFlags: rd wr dc\n");
  ASSERT_TRUE(areas.ok()) << areas.status();
  EXPECT_EQ(SumResident(*areas).resident, 8192u);
  EXPECT_EQ(SumResident(*areas).private_dirty, 4096u);
  const auto found = DiffersInFork(*areas);
  ASSERT_THAT(found, SizeIs(3)) << "neither the kernel's clock nor what is left out altogether";
  EXPECT_EQ(found[0].range.start, 0x2000u);
  EXPECT_EQ(found[0].why, WhyProtected::kEmptyInForks);
  EXPECT_EQ(found[1].range.start, 0x3000u);
  EXPECT_EQ(found[1].why, WhyProtected::kPagedByOthers);
  EXPECT_EQ(found[2].range.end, 0x5000u);
  EXPECT_EQ(found[2].why, WhyProtected::kDevice);
}

TEST(MemoryAreasTest, OwnMarksAreSeen) {
  constexpr size_t kBytes = 8 * kMb;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(madvise(memory, kBytes, MADV_DONTFORK), 0);
  auto areas = ReadMemoryAreas(getpid());
  ASSERT_TRUE(areas.ok()) << areas.status();
  EXPECT_THAT(std::string(JudgeTrim(*areas, {}, 0).message()), HasSubstr("MADV_DONTFORK"));
  munmap(memory, kBytes);
}

TEST(WithoutPointersTest, TakesOffWhatTheRegistersOfAGuessWillKeep) {
  TrimmedFork all;
  all.small_bytes = 100 << 20;
  all.huge_bytes = 50 << 20;
  Footprint traced;
  EXPECT_EQ(WithoutPointers(all, traced, 2).small_bytes, all.small_bytes) << "it is no guess";
  Footprint guess;
  guess.around = 4096;  // two megabytes on both sides are kept in any case: four pointers, 16 MB
  EXPECT_EQ(WithoutPointers(all, guess, 1).small_bytes, uint64_t{84} << 20);
  EXPECT_EQ(WithoutPointers(all, guess, 1).huge_bytes, all.huge_bytes);
  guess.around = 4 << 20;
  const TrimmedFork less = WithoutPointers(all, guess, 4);  // 128 MB
  EXPECT_EQ(less.small_bytes, 0u);
  EXPECT_EQ(less.huge_bytes, uint64_t{22} << 20);
}

}  // namespace
}  // namespace perfd::agent
