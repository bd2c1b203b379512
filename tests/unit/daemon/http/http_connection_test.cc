// One connection over a socket pair; the test is the clock.
#include "daemon/http/http_connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

namespace perfd::daemon {
namespace {

using Yields = HttpConnection::Yields;

constexpr int64_t kSecond = kNsPerSecond;

class HttpConnectionTest : public testing::Test {
 protected:
  HttpConnectionTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    peer_ = UniqueFd(ends[0]);
    connection_ = std::make_unique<HttpConnection>(UniqueFd(ends[1]), 0);
  }
  void Send(const std::string& text) {
    EXPECT_EQ(::send(peer_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // What there is for the peer now.
  size_t Drain() {
    std::array<char, 65536> buffer;
    size_t taken = 0;
    ssize_t size = 0;
    while ((size = ::recv(peer_.get(), buffer.data(), buffer.size(), 0)) > 0)
      taken += static_cast<size_t>(size);
    return taken;
  }

  const HttpResponse large_ = PlainResponse(200, std::string(size_t{8} << 20, 'x'));
  UniqueFd peer_;
  std::unique_ptr<HttpConnection> connection_;
};

// However long the answer took to make, and although the peer takes some of it all the time.
TEST_F(HttpConnectionTest, TheWholeResponseIsBounded) {
  Send("GET / HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(connection_->Ready(kSecond).has_value());
  const int64_t end_ns = kSecond + HttpConnection::kResponseNs;
  EXPECT_EQ(connection_->deadline_ns(), end_ns);
  connection_->Answer(large_, 31 * kSecond);
  for (int64_t now_ns = 32 * kSecond; now_ns < end_ns; now_ns += 10 * kSecond) {
    EXPECT_GT(Drain(), 0u);
    EXPECT_FALSE(connection_->Ready(now_ns).has_value());
    connection_->Expire(now_ns);
    ASSERT_FALSE(connection_->done());
  }
  connection_->Expire(end_ns - 1);
  EXPECT_FALSE(connection_->done());
  connection_->Expire(end_ns);
  EXPECT_TRUE(connection_->done());
}

TEST_F(HttpConnectionTest, WhoYieldsWhen) {
  EXPECT_EQ(connection_->yields(0), Yields::kAsReader);
  Send("GET / HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(connection_->Ready(0).has_value());
  EXPECT_EQ(connection_->yields(59 * kSecond), Yields::kNever) << "it is we who are slow";
  connection_->Answer(large_, 30 * kSecond);
  EXPECT_EQ(connection_->yields(30 * kSecond + HttpConnection::kPatienceNs - 1), Yields::kNever);
  EXPECT_EQ(connection_->yields(30 * kSecond + HttpConnection::kPatienceNs), Yields::kAsSlowTaker);
  while (Drain() > 0) connection_->Ready(31 * kSecond);
  EXPECT_EQ(connection_->yields(31 * kSecond), Yields::kAsLingerer);
  EXPECT_EQ(connection_->deadline_ns(), 31 * kSecond + HttpConnection::kLingerNs);
}

TEST_F(HttpConnectionTest, ARefusalIsBoundedToo) {
  Send("GET / HT");
  EXPECT_FALSE(connection_->Ready(0).has_value());
  EXPECT_EQ(connection_->deadline_ns(), HttpConnection::kReadNs);
  connection_->Expire(HttpConnection::kReadNs);
  EXPECT_EQ(connection_->status(), 408);
  EXPECT_LE(connection_->deadline_ns(), HttpConnection::kReadNs + HttpConnection::kRefusalNs);
}

}  // namespace
}  // namespace perfd::daemon
