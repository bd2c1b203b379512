#include "daemon/limits/peer_log.h"

#include <gtest/gtest.h>

#include "core/base/clock.h"

namespace perfd::daemon {
namespace {

TEST(PeerLogTest, EachPeerWritesALineASecond) {
  PeerLog log;
  EXPECT_EQ(log.Next("a", 5), 0u);
  EXPECT_EQ(log.Next("a", 6), std::nullopt);
  EXPECT_EQ(log.Next("b", 6), 0u) << "another peer";
  EXPECT_EQ(log.Next("a", 4 + kNsPerSecond), std::nullopt);
  EXPECT_EQ(log.Next("a", 5 + kNsPerSecond), 2u);
  EXPECT_EQ(log.Next("a", 5 + 2 * kNsPerSecond), 0u);
}

TEST(PeerLogTest, WhomThereIsNoRoomForShareALine) {
  PeerLog log;
  for (size_t i = 0; i < PeerLog::kMostPeers; ++i) ASSERT_EQ(log.Next(std::to_string(i), 0), 0u);
  EXPECT_EQ(log.Next("0", 1), std::nullopt);
  EXPECT_EQ(log.Next("x", 1), 0u);
  EXPECT_EQ(log.Next("y", 2), std::nullopt);
  EXPECT_EQ(log.Next("z", 1 + kNsPerSecond / 2), std::nullopt);
  EXPECT_EQ(log.Next("1", 1), std::nullopt) << "who has room keeps it";
  // Who has written nothing for a second makes room, unless something of theirs is still to be told.
  EXPECT_EQ(log.Next("x", 2 * kNsPerSecond), 0u);
  EXPECT_EQ(log.Next("x", 2 * kNsPerSecond), std::nullopt);
  EXPECT_EQ(log.Next("0", 2 * kNsPerSecond), 1u);
  EXPECT_EQ(log.Next("1", 70 * kNsPerSecond), 1u) << "nobody needed the room yet";
}

TEST(PeerLogTest, WhatWasLeftOutIsSaid) {
  EXPECT_EQ(LeftOutText(0), "");
  EXPECT_EQ(LeftOutText(7), " (7 more since the last such line)");
}

}  // namespace
}  // namespace perfd::daemon
