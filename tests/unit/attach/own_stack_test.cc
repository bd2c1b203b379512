#include "agent/attach/thread/own_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace perfd::agent {
namespace {

constexpr uint64_t kEnd = 0x140000;
constexpr uint64_t kControlBlock = kEnd - 0x900;  // where glibc has it

MapEntry Memory(const std::string& path = "") {
  MapEntry map;
  map.start = 0x100000;
  map.end = kEnd;
  map.readable = map.writable = true;
  map.path = path;
  return map;
}

StackPlace Thread(uint64_t stack_pointer) {
  return {9, false, stack_pointer, kControlBlock};
}
StackPlace Main(uint64_t stack_pointer) {
  return {7, true, stack_pointer, 0x7f0000000740};
}

TEST(OwnStackTest, NeedsRoomForAHandlerBelow) {
  EXPECT_TRUE(CheckOwnStack({Memory()}, Thread(0x13f000), 0x102000).ok());
  const absl::Status little = CheckOwnStack({Memory()}, Thread(0x13f000), 0x101fff);
  EXPECT_TRUE(absl::IsUnavailable(little));
  EXPECT_THAT(std::string(little.message()), testing::HasSubstr("little room"));
  EXPECT_FALSE(CheckOwnStack({Memory()}, Thread(0x13f000), ~uint64_t{0}).ok()) << "it wrapped";
  EXPECT_FALSE(CheckOwnStack({Memory()}, Thread(kEnd + 1), 0x130000).ok());
  EXPECT_FALSE(CheckOwnStack({}, Thread(0x13f000), 0x130000).ok());
}

TEST(OwnStackTest, OfMainThreadsItIsTheKernels) {
  EXPECT_TRUE(CheckOwnStack({Memory("[stack]")}, Main(0x13f000), 0x130000).ok());
  // What a coroutine, malloc or a handler's stack may have.
  for (const char* path : {"", "[heap]", "[anon:arena]", "/dev/zero"})
    EXPECT_FALSE(CheckOwnStack({Memory(path)}, Main(0x13f000), 0x130000).ok()) << path;
}

TEST(OwnStackTest, OfOtherThreadsItIsWhereTheirControlBlockIs) {
  EXPECT_TRUE(
      CheckOwnStack({Memory("[anon: glibc: pthread stack: 9]")}, Thread(0x13f000), 0x130000).ok());
  StackPlace coroutine = Thread(0x13f000);
  coroutine.control_block = kEnd + 0x1000;
  const absl::Status refused = CheckOwnStack({Memory()}, coroutine, 0x130000);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("need not be its own stack"));
  EXPECT_FALSE(CheckOwnStack({Memory("[stack]")}, Thread(0x13f000), 0x130000).ok())
      << "another thread's";
  // Memory above the control block is none of its stack, though one mapping may have both.
  StackPlace above = Thread(0x13f000);
  above.control_block = 0x120000;
  EXPECT_FALSE(CheckOwnStack({Memory()}, above, 0x130000).ok());
}

TEST(OwnStackTest, TheKernelGrowsOneForItsThreadOnly) {
  EXPECT_TRUE(CheckOwnStackHolds({Memory("[stack]")}, Main(0x100100), 6144).ok());
  EXPECT_TRUE(CheckOwnStack({Memory("[stack]")}, Main(0x101000), 0x100000).ok());
  EXPECT_FALSE(CheckOwnStack({Memory("[stack]")}, Main(0x101000), 0xfffff).ok());
  EXPECT_TRUE(CheckOwnStackHolds({Memory()}, Thread(0x101800), 6144).ok());
  EXPECT_TRUE(absl::IsUnavailable(CheckOwnStackHolds({Memory()}, Thread(0x101800), 6145)));
  StackPlace coroutine = Thread(0x13f000);
  coroutine.control_block = kEnd + 0x1000;
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckOwnStackHolds({Memory()}, coroutine, 0)));
}

TEST(OwnStackTest, OfManyMappingsTheRightOne) {
  std::vector<MapEntry> maps;
  for (uint64_t i = 0; i < 9; ++i) {
    maps.push_back(Memory(i == 4 ? "[stack]" : ""));
    maps.back().start = 0x100000 + i * 0x10000;
    maps.back().end = maps.back().start + 0x10000;
  }
  EXPECT_TRUE(CheckOwnStack(maps, Main(0x150000), 0x148000).ok()) << "the end is its own";
  EXPECT_FALSE(CheckOwnStack(maps, Main(0x140000), 0x138000).ok());
  EXPECT_FALSE(CheckOwnStack(maps, Main(0x150001), 0x148000).ok());
}

TEST(OwnStackTest, OnlyMemoryThatCanBeAStack) {
  MapEntry file = Memory();
  file.inode = 7;  // static memory
  MapEntry shared = Memory();
  shared.shared = true;
  MapEntry constant = Memory();
  constant.writable = false;
  for (const MapEntry& map : {file, shared, constant})
    EXPECT_FALSE(CheckOwnStack({map}, Thread(0x13f000), 0x130000).ok());
}

}  // namespace
}  // namespace perfd::agent
