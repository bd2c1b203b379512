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
  EXPECT_EQ(log.Next("x", 62 * kNsPerSecond), 0u) << "nothing came of the others for a minute";
  EXPECT_EQ(log.Next("x", 62 * kNsPerSecond), std::nullopt);
  EXPECT_EQ(log.Next("0", 62 * kNsPerSecond), 0u);
}

TEST(PeerLogTest, WhatWasLeftOutIsSaid) {
  EXPECT_EQ(LeftOutText(0), "");
  EXPECT_EQ(LeftOutText(7), " (7 more since the last such line)");
}

}  // namespace
}  // namespace perfd::daemon
