#include "core/base/frame.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "core/base/clock.h"
#include "core/base/unique_fd.h"

namespace perfd::agent {
namespace {

class FrameTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    a_ = UniqueFd(ends[0]);
    b_ = UniqueFd(ends[1]);
  }
  static int64_t Soon() { return SystemClock().MonotonicNs() + 10 * kNsPerSecond; }

  UniqueFd a_;
  UniqueFd b_;
};

TEST_F(FrameTest, RoundTrip) {
  for (const std::string& message : {std::string(), std::string("x"), std::string(100000, 'y')}) {
    ASSERT_TRUE(SendFrame(a_.get(), message, Soon()).ok());
    const auto got = ReceiveFrame(b_.get(), Soon());
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got, message);
  }
}

TEST_F(FrameTest, LargerThanTheSocketBuffer) {
  const std::string message(kMaxFrameBytes, 'z');
  std::thread sender([&] { EXPECT_TRUE(SendFrame(a_.get(), message, Soon()).ok()); });
  const auto got = ReceiveFrame(b_.get(), Soon());
  sender.join();
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(*got == message);
}

TEST_F(FrameTest, LimitOnBothSides) {
  EXPECT_EQ(SendFrame(a_.get(), std::string(kMaxFrameBytes + 1, 'z'), Soon()).code(),
            absl::StatusCode::kResourceExhausted);
  const unsigned char head[4] = {1, 0, 0, 4};  // 64 MiB + 1
  ASSERT_EQ(::send(a_.get(), head, 4, 0), 4);
  EXPECT_EQ(ReceiveFrame(b_.get(), Soon()).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FrameTest, DeadlineAndDeath) {
  EXPECT_EQ(ReceiveFrame(b_.get(), 0).status().code(), absl::StatusCode::kDeadlineExceeded);
  const unsigned char head[5] = {2, 0, 0, 0, 'x'};  // one byte short
  ASSERT_EQ(::send(a_.get(), head, 5, 0), 5);
  a_.Reset();
  EXPECT_EQ(ReceiveFrame(b_.get(), Soon()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(SendFrame(b_.get(), "x", Soon()).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace perfd::agent
