#include <gtest/gtest.h>

#include "agent/attach/remote_call.h"

namespace perfd::agent {
namespace {

MapEntry Stack() {
  MapEntry map;
  map.start = 0x100000;
  map.end = 0x140000;
  map.readable = map.writable = true;
  return map;
}

TEST(StackRoomTest, NeedsRoomForAHandlerBelowTheFrame) {
  EXPECT_TRUE(CheckStackRoom({Stack()}, 0x13fff0, 0x102000).ok());
  EXPECT_TRUE(absl::IsUnavailable(CheckStackRoom({Stack()}, 0x13fff0, 0x101fff)));
  EXPECT_FALSE(CheckStackRoom({Stack()}, 0x140001, 0x130000).ok());  // pointer not inside
  EXPECT_FALSE(CheckStackRoom({}, 0x13fff0, 0x130000).ok());
}

TEST(StackRoomTest, OnlyMappingsThatCanBeStacks) {
  MapEntry map = Stack();
  map.path = "[stack]";
  EXPECT_TRUE(CheckStackRoom({map}, 0x13fff0, 0x130000).ok());
  map.path = "[heap]";
  EXPECT_FALSE(CheckStackRoom({map}, 0x13fff0, 0x130000).ok());
  map = Stack();
  map.inode = 7;  // static memory
  EXPECT_FALSE(CheckStackRoom({map}, 0x13fff0, 0x130000).ok());
  map = Stack();
  map.writable = false;
  EXPECT_FALSE(CheckStackRoom({map}, 0x13fff0, 0x130000).ok());
}

}  // namespace
}  // namespace perfd::agent
