// The HTTP server against peers that do what they like.
#include "daemon/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "tests/unit/daemon/http/http_peer.h"

namespace perfd::daemon {
namespace {

using testing::HasSubstr;
using testing::Not;

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = HttpServer::Listen("127.0.0.1:0");
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    ASSERT_TRUE(server_
                    ->Serve([this](const HttpRequest& request, const HttpRespond& respond) {
                      ++calls_;
                      if (request.path == "/later") {
                        MutexLock lock(&mutex_);
                        later_.push_back(respond);
                        return;
                      }
                      if (request.path == "/never") return;
                      if (request.path == "/shared") {
                        HttpResponse response;
                        response.body = shared_;
                        return respond(response);
                      }
                      respond(request.path == "/large" ? PlainResponse(200, large_)
                                                       : PlainResponse(200, request.path));
                    })
                    .ok());
  }

  // Of the requests that the handler still owes an answer.
  void AwaitLater(size_t count) {
    MutexLock lock(&mutex_);
    const auto enough = [&] {
      mutex_.AssertReaderHeld();
      return later_.size() >= count;
    };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(10)));
  }

  const std::string& address() const { return server_->address(); }

  const std::string large_ = std::string(size_t{8} << 20, 'x');
  const std::shared_ptr<const std::string> shared_ = std::make_shared<const std::string>(large_);
  std::unique_ptr<HttpServer> server_;
  std::atomic<int> calls_{0};
  Mutex mutex_;
  std::vector<HttpRespond> later_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(HttpServerTest, AnswersAndCloses) {
  const std::string answer = Get(address(), "/a?b");
  EXPECT_THAT(answer, testing::StartsWith("HTTP/1.1 200 OK\r\n"));
  for (const char* field :
       {"\r\nContent-Length: 2\r\n", "\r\nConnection: close\r\n", "\r\nCache-Control: no-store\r\n",
        "\r\nX-Content-Type-Options: nosniff\r\n", "\r\nReferrer-Policy: no-referrer\r\n"})
    EXPECT_THAT(answer, HasSubstr(field));
  EXPECT_EQ(BodyOf(answer), "/a");
  EXPECT_EQ(BodyOf(Get(address(), "/large")), large_);
  EXPECT_EQ(server_->refused(), 0u);
}

TEST_F(HttpServerTest, HeadIsAnAnswerWithoutItsBody) {
  const std::string answer = Ask(address(), "HEAD /large HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 8388608\r\n"));
  EXPECT_EQ(BodyOf(answer), "");
}

TEST_F(HttpServerTest, AHeadMayComeInPieces) {
  HttpPeer peer(address());
  for (const char* piece : {"G", "ET /pieces HT", "TP/1.0\r", "\n\r", "\n"}) {
    ASSERT_TRUE(peer.Send(piece));
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(BodyOf(peer.ReadAll()), "/pieces");
}

TEST_F(HttpServerTest, HalfClosedPeersGetTheirAnswer) {
  HttpPeer peer(address());
  ASSERT_TRUE(peer.Send("GET /half HTTP/1.0\r\n\r\n"));
  peer.EndSending();
  EXPECT_EQ(BodyOf(peer.ReadAll()), "/half");
}

TEST_F(HttpServerTest, RefusalsDoNotReachTheHandler) {
  EXPECT_EQ(StatusOf(Ask(address(), "POST /a HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello")), 405);
  EXPECT_EQ(StatusOf(Ask(address(), "nonsense\r\n\r\n")), 400);
  EXPECT_EQ(StatusOf(Ask(address(), "GET /" + std::string(2000, 'a') + " HTTP/1.0\r\n\r\n")), 414);
  // No end in sight: refused as soon as it is too long, although the peer would go on.
  EXPECT_EQ(StatusOf(Ask(address(), "GET / HTTP/1.0\r\nA: " + std::string(9000, 'a'))), 431);
  EXPECT_THAT(Ask(address(), "PUT / HTTP/1.0\r\n\r\n"), HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(BodyOf(Get(address(), "/after")), "/after");
  EXPECT_EQ(server_->refused(), 5u);
}

TEST_F(HttpServerTest, AnswersMayComeLaterAndInAnyOrder) {
  HttpPeer first(address()), second(address());
  ASSERT_TRUE(first.Send("GET /later HTTP/1.0\r\n\r\n"));
  AwaitLater(1);
  ASSERT_TRUE(second.Send("GET /later HTTP/1.0\r\n\r\n"));
  AwaitLater(2);
  std::vector<HttpRespond> later;
  {
    MutexLock lock(&mutex_);
    later = later_;
  }
  std::thread([&] { later[1](PlainResponse(200, "second")); }).join();
  EXPECT_EQ(BodyOf(second.ReadAll()), "second");
  std::thread([&] { later[0](PlainResponse(200, "first")); }).join();
  EXPECT_EQ(BodyOf(first.ReadAll()), "first");
  later[0](PlainResponse(200, "again"));  // to nobody
  EXPECT_EQ(BodyOf(Get(address(), "/after")), "/after");
}

TEST_F(HttpServerTest, APeerThatIsGoneTakesNothingWithIt) {
  const linger at_once{1, 0};  // the close is a reset
  {
    HttpPeer waiting(address()), reading(address());
    ASSERT_TRUE(waiting.Send("GET /later HTTP/1.0\r\n\r\n"));
    ASSERT_TRUE(reading.Send("GET /large HTTP/1.0\r\n\r\n"));
    AwaitLater(1);
    char letter = 0;
    EXPECT_EQ(::recv(reading.fd(), &letter, 1, 0), 1);
    for (const int fd : {waiting.fd(), reading.fd()})
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  }
  {
    MutexLock lock(&mutex_);
    later_[0](PlainResponse(200, "to nobody"));
  }
  EXPECT_EQ(BodyOf(Get(address(), "/after")), "/after");
}

// However many keep their head to themselves, whoever means it is served at once.
TEST_F(HttpServerTest, SlowHeadsMakeRoom) {
  std::vector<std::unique_ptr<HttpPeer>> slow;
  for (size_t i = 0; i < 2 * HttpServer::kMaxConnections; ++i) {
    slow.push_back(std::make_unique<HttpPeer>(address()));
    ASSERT_TRUE(slow.back()->connected());
    slow.back()->Send("GET / HT");
  }
  const absl::Time start = absl::Now();
  EXPECT_EQ(BodyOf(Get(address(), "/quick")), "/quick");
  EXPECT_LT(absl::Now() - start, absl::Nanoseconds(HttpConnection::kReadNs));
}

// However many ask and do not read, whoever means it is served soon.
TEST_F(HttpServerTest, SlowTakersMakeRoom) {
  std::vector<std::unique_ptr<HttpPeer>> slow;
  for (size_t i = 0; i < HttpServer::kMaxConnections; ++i) {
    slow.push_back(std::make_unique<HttpPeer>(address(), 4096));
    ASSERT_TRUE(slow.back()->Send("GET /shared HTTP/1.0\r\n\r\n"));
  }
  const absl::Time start = absl::Now();
  EXPECT_EQ(BodyOf(Get(address(), "/quick")), "/quick");
  EXPECT_LT(absl::Now() - start, absl::Nanoseconds(HttpConnection::kResponseNs) / 4);
  EXPECT_GE(server_->refused(), 1u);
}

// A letter now and then does not keep a connection: the time is for the whole head.
TEST_F(HttpServerTest, ASlowHeadIsRefusedInTheEnd) {
  HttpPeer peer(address());
  const absl::Time start = absl::Now();
  std::thread dripping([&] {
    for (int i = 0; i < 100; ++i) {
      if (!peer.Send("a") || absl::Now() - start > absl::Seconds(15)) return;
      absl::SleepFor(absl::Milliseconds(200));
    }
  });
  const std::string answer = peer.ReadAll();
  const absl::Duration took = absl::Now() - start;
  dripping.join();
  EXPECT_EQ(StatusOf(answer), 408);
  EXPECT_GE(took, absl::Nanoseconds(HttpConnection::kReadNs) - absl::Milliseconds(100));
  EXPECT_LT(took, absl::Seconds(15));
}

// What it still sends is read for a moment, and not for ever.
TEST_F(HttpServerTest, AnEndlessBodyIsCutOff) {
  HttpPeer peer(address());
  ASSERT_TRUE(peer.Send("POST / HTTP/1.0\r\nContent-Length: 999999999\r\n\r\n"));
  const std::string piece(4096, 'x');
  size_t sent = 0;
  while (sent < (size_t{64} << 20) && peer.Send(piece)) sent += piece.size();
  EXPECT_LT(sent, size_t{64} << 20);
}

TEST_F(HttpServerTest, StopsWithConnectionsOpen) {
  HttpPeer idle(address()), waiting(address());
  ASSERT_TRUE(waiting.Send("GET /later HTTP/1.0\r\n\r\n"));
  AwaitLater(1);
  const std::string was = address();
  server_->Stop();
  EXPECT_EQ(idle.ReadAll(), "");
  {
    MutexLock lock(&mutex_);
    later_[0](PlainResponse(200, "too late"));
  }
  server_.reset();
  EXPECT_FALSE(HttpPeer(was).connected());
}

TEST(HttpServerAddress, IsItsListeners) {
  const auto first = HttpServer::Listen("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  EXPECT_THAT((*first)->address(), Not(testing::EndsWith(":0")));
  const auto second = HttpServer::Listen((*first)->address());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr((*first)->address()));
  EXPECT_TRUE(HttpServer::Listen("localhost:0").ok());
  EXPECT_EQ(HttpServer::Listen("9754").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace perfd::daemon
