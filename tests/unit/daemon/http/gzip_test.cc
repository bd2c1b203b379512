#include "daemon/http/gzip.h"

#include <gtest/gtest.h>

#include <string>

namespace perfd::daemon {
namespace {

TEST(GzipTest, ThereAndBack) {
  std::string large;
  for (int i = 0; i < 200000; ++i) large += std::to_string(i * 7919 % 65537);
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(65536, 'x'), large}) {
    const auto packed = Gzip(text);
    ASSERT_TRUE(packed.ok()) << packed.status();
    EXPECT_EQ(packed->substr(0, 2), "\x1f\x8b");  // RFC 1952 2.3.1
    const auto plain = Gunzip(*packed);
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_EQ(*plain, text);
    EXPECT_EQ(UnpackedBytes(*packed), text.size());
  }
  EXPECT_LT(Gzip(large)->size(), large.size());
}

TEST(GzipTest, WhatIsNoGzipIsAnError) {
  EXPECT_EQ(UnpackedBytes("abc"), 0u);
  EXPECT_EQ(UnpackedBytes(absl::string_view("\1\2\3\4", 4)), 0x04030201u);
  EXPECT_EQ(Gunzip("").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Gunzip("plain text").status().code(), absl::StatusCode::kDataLoss);
  const std::string packed = *Gzip(std::string(1000, 'x') + "end");
  EXPECT_EQ(Gunzip(packed.substr(0, packed.size() - 9)).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace perfd::daemon
