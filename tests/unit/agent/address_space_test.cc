#include "agent/pipeline/address_space.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace perfd::agent {
namespace {

MappingEvent Event(uint64_t start, uint64_t length, uint64_t offset, std::string path) {
  MappingEvent event;
  event.pid = 1;
  event.start = start;
  event.length = length;
  event.file_offset = offset;
  event.inode = 7;
  event.path = std::move(path);
  return event;
}

TEST(AddressSpace, FindsTheMappingAndItsFileOffset) {
  AddressSpace space;
  space.Add(Event(0x1000, 0x2000, 0x500, "/a"));
  EXPECT_EQ(space.Find(0xfff), nullptr);
  ASSERT_NE(space.Find(0x1000), nullptr);
  EXPECT_EQ(space.Find(0x2fff)->OffsetOf(0x2fff), 0x500u + 0x1fff);
  EXPECT_EQ(space.Find(0x3000), nullptr);
}

TEST(AddressSpace, GenerationChangesWithTheMappings) {
  AddressSpace space;
  space.Add(Event(0x1000, 0x1000, 0, "/a"));
  const uint64_t first = space.generation();
  MapEntry same;
  same.start = 0x1000;
  same.end = 0x2000;
  same.executable = true;
  same.inode = 7;
  same.path = "/a";
  space.Replace({same}, 0);
  EXPECT_EQ(space.generation(), first) << "the same mappings, read again";
  space.Add(Event(0x4000, 0x1000, 0, "/b"));
  const uint64_t second = space.generation();
  EXPECT_GT(second, first);
  space.Replace({same}, 0);
  EXPECT_GT(space.generation(), second);
  ASSERT_EQ(space.Mappings().size(), 1u);
  EXPECT_EQ(space.Mappings()[0], *space.Find(0x1000));
}

MapEntry Entry(uint64_t start, uint64_t end, bool executable, uint64_t inode) {
  MapEntry entry;
  entry.start = start;
  entry.end = end;
  entry.executable = executable;
  entry.inode = inode;
  if (inode != 0) entry.path = inode == 7 ? "/app/solver" : "/lib/libk.so";
  return entry;
}

TEST(AddressSpace, AnonymousCodeInThePlaceOfAFilesIsCalledAfterIt) {
  const auto path = [](const std::vector<MapEntry>& maps, uint64_t address) {
    AddressSpace space;
    space.Replace(maps, 0);
    const CodeMapping* mapping = space.Find(address);
    return mapping == nullptr ? "none" : mapping->path;
  };
  const std::string moved = "[moved code of /app/solver]";
  // All of its text, between its headers and its constants.
  EXPECT_EQ(path({Entry(0x1000, 0x2000, false, 7), Entry(0x2000, 0x4000, true, 0),
                  Entry(0x4000, 0x5000, false, 7)},
                 0x3000),
            moved);
  // Only whole large pages of it: what is left of the text stands on both sides.
  EXPECT_EQ(path({Entry(0x1000, 0x2000, true, 7), Entry(0x2000, 0x4000, true, 0),
                  Entry(0x4000, 0x5000, true, 7)},
                 0x3000),
            moved);
  // One segment for headers and text: only its data are still there.
  EXPECT_EQ(path({Entry(0x1000, 0x4000, true, 0), Entry(0x4000, 0x5000, false, 7)}, 0x3000), moved);
  // Memory of a compiler at run time that happens to end where a library begins.
  EXPECT_EQ(path({Entry(0x1000, 0x4000, true, 0), Entry(0x4000, 0x5000, false, 8),
                  Entry(0x5000, 0x6000, true, 8)},
                 0x3000),
            "");
  // Between two files; apart from the file.
  EXPECT_EQ(path({Entry(0x1000, 0x2000, true, 7), Entry(0x2000, 0x4000, true, 0),
                  Entry(0x4000, 0x5000, true, 8)},
                 0x3000),
            "");
  EXPECT_EQ(path({Entry(0x1000, 0x3000, true, 0), Entry(0x4000, 0x5000, false, 7)}, 0x2000), "");
}

// As the memory that this agent maps into a rank: shared pages, and code against them.
TEST(AddressSpace, CodeBesideSharedAnonymousMemoryIsNoFilesOwn) {
  for (const char* name : {"/dev/zero (deleted)", "/SYSV00000000 (deleted)"}) {
    MapEntry shared = Entry(0x4000, 0x5000, false, 9);
    shared.path = name;
    AddressSpace space;
    space.Replace({Entry(0x1000, 0x4000, true, 0), shared}, 0);
    ASSERT_NE(space.Find(0x2000), nullptr);
    EXPECT_EQ(space.Find(0x2000)->path, "") << name;
  }
}

TEST(AddressSpace, MovedCodeSaysWhatOfItsFileIsBesideIt) {
  AddressSpace space;
  space.Replace({Entry(0x1000, 0x2000, false, 7), Entry(0x2000, 0x4000, true, 0),
                 Entry(0x4000, 0x5000, false, 7)},
                0);
  const CodeMapping* moved = space.Find(0x3000);
  ASSERT_TRUE(moved != nullptr && moved->beside.has_value());
  EXPECT_EQ(moved->beside->start, 0x1000u);
  EXPECT_EQ(moved->beside->end, 0x2000u);
  EXPECT_EQ(moved->beside->inode, 7u);
  EXPECT_EQ(moved->beside->path, "/app/solver");
}

TEST(AddressSpace, ReplaceTakesOnlyExecutableEntries) {
  AddressSpace space;
  space.Add(Event(0x9000, 0x1000, 0, "/old"));
  MapEntry code;
  code.start = 0x1000;
  code.end = 0x2000;
  code.executable = true;
  code.path = "/code";
  MapEntry data = code;
  data.start = 0x2000;
  data.end = 0x3000;
  data.executable = false;
  space.Replace({code, data}, 0);
  EXPECT_EQ(space.size(), 1u);
  EXPECT_EQ(space.Find(0x9000), nullptr);
  ASSERT_NE(space.Find(0x1800), nullptr);
  EXPECT_EQ(space.Find(0x2000), nullptr);
}

TEST(AddressSpace, ANewMappingInTheMiddleLeavesHeadAndTail) {
  AddressSpace space;
  space.Add(Event(0x1000, 0x3000, 0, "/a"));
  space.Add(Event(0x2000, 0x1000, 0x100, "/b"));
  EXPECT_EQ(space.Find(0x1fff)->path, "/a");
  EXPECT_EQ(space.Find(0x2000)->path, "/b");
  EXPECT_EQ(space.Find(0x3000)->path, "/a");
  EXPECT_EQ(space.Find(0x3000)->OffsetOf(0x3000), 0x2000u);
}

TEST(AddressSpace, RefusesEmptyAndOverflowingEvents) {
  AddressSpace space;
  space.Add(Event(0x1000, 0, 0, "/a"));
  space.Add(Event(~uint64_t{0} - 5, 100, 0, "/a"));
  EXPECT_EQ(space.size(), 0u);
}

// The last event that covers a page decides, as with mmap itself.
TEST(AddressSpace, AgreesWithAPageTableOnRandomEvents) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    AddressSpace space;
    std::map<uint64_t, std::pair<std::string, uint64_t>> pages;  // page -> path, file offset
    for (int i = 0; i < 12; ++i) {
      const uint64_t start = random() % 40;
      const uint64_t length = 1 + random() % 12;
      const uint64_t offset = random() % 100;
      const std::string path = std::to_string(i);
      space.Add(Event(start * 4096, length * 4096, offset * 4096, path));
      for (uint64_t p = 0; p < length; ++p) pages[start + p] = {path, (offset + p) * 4096};
    }
    for (uint64_t page = 0; page < 60; ++page) {
      const CodeMapping* found = space.Find(page * 4096 + 8);
      auto expected = pages.find(page);
      ASSERT_EQ(found != nullptr, expected != pages.end());
      if (found == nullptr) continue;
      EXPECT_EQ(found->path, expected->second.first);
      EXPECT_EQ(found->OffsetOf(page * 4096), expected->second.second);
    }
  }
}

MappingEvent EventAt(uint64_t time_ns, uint64_t start, uint64_t length, std::string path) {
  MappingEvent event = Event(start, length, 0, std::move(path));
  event.time_ns = time_ns;
  return event;
}

MapEntry Code(uint64_t start, uint64_t end, std::string path) {
  MapEntry entry;
  entry.start = start;
  entry.end = end;
  entry.executable = true;
  entry.path = std::move(path);
  return entry;
}

std::string PathAt(const AddressSpace& space, uint64_t address, uint64_t time_ns) {
  const CodeMapping* mapping = space.Find(address, time_ns);
  return mapping == nullptr ? "" : mapping->path;
}

TEST(AddressSpace, AnExecHidesNothingFromTheSamplesBeforeIt) {
  AddressSpace space;
  space.Replace({Code(0x1000, 0x3000, "/old"), Code(0x9000, 0xa000, "/libc")}, 0);
  space.Exec(500);
  EXPECT_EQ(space.size(), 0u);
  space.Replace({Code(0x2000, 0x4000, "/new")}, 900);
  EXPECT_EQ(PathAt(space, 0x2000, 499), "/old");
  EXPECT_EQ(PathAt(space, 0x9000, 499), "/libc");
  EXPECT_EQ(PathAt(space, 0x3000, 499), "") << "the new program was not there yet";
  EXPECT_EQ(PathAt(space, 0x2000, 500), "/new");
  EXPECT_EQ(PathAt(space, 0x9000, 500), "");
  EXPECT_EQ(PathAt(space, 0x1000, AddressSpace::kNow), "");
}

// The maps can already be the new program's while the record of its exec is not yet read.
TEST(AddressSpace, MapsThatWereReadAheadOfTheExecAreOfTheNewProgram) {
  AddressSpace space;
  space.Replace({Code(0x1000, 0x3000, "/old")}, 0);
  space.Replace({Code(0x1000, 0x3000, "/new")}, 900);
  EXPECT_EQ(PathAt(space, 0x1000, 899), "/old");
  space.Exec(500);
  space.Add(EventAt(600, 0x1000, 0x2000, "/new"));
  EXPECT_EQ(PathAt(space, 0x1000, 499), "/old");
  EXPECT_EQ(PathAt(space, 0x1000, 500), "");
  EXPECT_EQ(PathAt(space, 0x1000, 600), "/new");
}

TEST(AddressSpace, AMappingOfBeforeTheExecIsNotTheNewProgramsWhenItsRecordComesLate) {
  AddressSpace space;
  space.Exec(500);
  space.Add(EventAt(400, 0x1000, 0x1000, "/old"));
  EXPECT_EQ(space.size(), 0u);
  EXPECT_EQ(PathAt(space, 0x1000, 399), "");
  EXPECT_EQ(PathAt(space, 0x1000, 400), "/old");
  EXPECT_EQ(PathAt(space, 0x1000, 499), "/old");
  EXPECT_EQ(PathAt(space, 0x1000, 500), "");
}

TEST(AddressSpace, AMappingHoldsFromItsTimeOn) {
  AddressSpace space;
  space.Add(EventAt(100, 0x1000, 0x3000, "/a"));
  space.Add(EventAt(200, 0x2000, 0x1000, "/b"));
  EXPECT_EQ(PathAt(space, 0x2000, 99), "");
  EXPECT_EQ(PathAt(space, 0x2000, 199), "/a");
  EXPECT_EQ(PathAt(space, 0x2000, 200), "/b");
  EXPECT_EQ(PathAt(space, 0x1000, 150), "/a") << "its head is still there";
  EXPECT_EQ(PathAt(space, 0x1000, 250), "/a");
  space.Replace({Code(0x2000, 0x3000, "/c")}, 300);
  EXPECT_EQ(PathAt(space, 0x2000, 299), "/b");
  EXPECT_EQ(PathAt(space, 0x1000, 299), "/a");
  EXPECT_EQ(PathAt(space, 0x1000, 300), "");
}

TEST(AddressSpace, ForgetsTheOldestOfTooManyThatAreNoMore) {
  AddressSpace space;
  space.Add(EventAt(1, 0x1000, 0x1000, "0"));
  for (uint64_t i = 1; i <= AddressSpace::kMaxPast; ++i)
    space.Add(EventAt(i + 1, 0x1000, 0x1000, std::to_string(i)));
  EXPECT_EQ(PathAt(space, 0x1000, 1), "0");
  space.Add(EventAt(AddressSpace::kMaxPast + 2, 0x1000, 0x1000, "last"));
  EXPECT_EQ(PathAt(space, 0x1000, 1), "");
  EXPECT_EQ(PathAt(space, 0x1000, 2), "1");
  EXPECT_EQ(PathAt(space, 0x1000, AddressSpace::kNow), "last");
}

}  // namespace
}  // namespace perfd::agent
