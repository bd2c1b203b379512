#include "agent/shadow/calls/trapped_call.h"

#include <sys/syscall.h>

#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

MapEntry Map(uint64_t start, uint64_t end, uint64_t inode, std::string path) {
  MapEntry map;
  map.start = start;
  map.end = end;
  map.inode = inode;
  map.path = std::move(path);
  return map;
}

std::vector<MapEntry> Maps() {
  return {Map(0x10000, 0x20000, 7, "/lib/libc.so.6"), Map(0x20000, 0x30000, 7, "/lib/libc.so.6"),
          Map(0x30000, 0x31000, 0, ""), Map(0x400000, 0x401000, 5, "/usr/bin/app")};
}

TEST(TrappedCallTest, IsToldByFileAndOffset) {
  const TrappedCall call = LocateCall(SYS_write, 0x20010, Maps());
  EXPECT_EQ(call, (TrappedCall{SYS_write, 0x20010, "libc.so.6", 0x10010}));
  EXPECT_EQ(TextOf(call), "calls write() from libc.so.6+0x10010");
}

TEST(TrappedCallTest, CodeOfNoFileIsToldByAddress) {
  EXPECT_EQ(TextOf(LocateCall(SYS_openat, 0x30010, Maps())), "calls openat() from 0x30010");
  EXPECT_EQ(TextOf(LocateCall(SYS_openat, 0x50, Maps())), "calls openat() from 0x50");
}

TEST(TrappedCallTest, RareCallsAreToldByNumber) {
  EXPECT_EQ(TextOf(LocateCall(SYS_sync, 0x400010, Maps())), "calls system call 162 from app+0x10");
}

}  // namespace
}  // namespace perfd::agent
