#include "daemon/relay/relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/unit/daemon/relay/frames.h"

namespace perfd::daemon {
namespace {

using namespace testing_frames;  // NOLINT(google-build-using-namespace): a test's own words
using testing::HasSubstr;

constexpr uint32_t kUser = 1001;
constexpr uint32_t kTrusted = 1002;
constexpr uint32_t kMost = 40 << 20;
constexpr int64_t kMib = 1 << 20;

// Until the other side has ended, `wanted` bytes have come, or the time is over.
std::string Receive(const UniqueFd& fd, size_t wanted, absl::Duration within = absl::Seconds(5)) {
  std::string heard;
  const absl::Time end = absl::Now() + within;
  while (heard.size() < wanted && absl::Now() < end) {
    pollfd ready{.fd = fd.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 20) <= 0) continue;
    std::array<char, 65536> buffer;
    const ssize_t size =
        ::recv(fd.get(), buffer.data(), std::min(buffer.size(), wanted - heard.size()), 0);
    if (size <= 0) break;
    heard.append(buffer.data(), static_cast<size_t>(size));
  }
  return heard;
}

// The other side has ended it.
bool HasEnded(const UniqueFd& fd, absl::Duration within = absl::Seconds(5)) {
  const absl::Time end = absl::Now() + within;
  std::array<char, 65536> buffer;
  while (absl::Now() < end) {
    pollfd ready{.fd = fd.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 20) > 0 && ::recv(fd.get(), buffer.data(), buffer.size(), 0) <= 0)
      return true;
  }
  return false;
}

bool Say(const UniqueFd& fd, const std::string& bytes) {
  size_t said = 0;
  while (said < bytes.size()) {
    const ssize_t size = ::send(fd.get(), bytes.data() + said, bytes.size() - said, MSG_NOSIGNAL);
    if (size < 0 && errno == EAGAIN) absl::SleepFor(absl::Milliseconds(1));
    if (size < 0 && errno == EAGAIN) continue;
    if (size <= 0) return false;
    said += static_cast<size_t>(size);
  }
  return true;
}

class RelayTest : public testing::Test {
 protected:
  struct Pair {
    UniqueFd client;
    UniqueFd server;  // what gRPC has
  };

  Pair Connect(uint32_t uid = kUser) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    Pair pair{.client = UniqueFd(ends[0]), .server = UniqueFd()};
    absl::StatusOr<UniqueFd> server = relay_.Carry(UniqueFd(ends[1]), uid);
    EXPECT_TRUE(server.ok()) << server.status();
    if (server.ok()) pair.server = *std::move(server);
    return pair;
  }
  void SetLimit(Limit limit, int64_t value) {
    LimitValues values = StandardLimits();
    values[static_cast<size_t>(limit)] = value;
    limits_.Set(values);
  }
  void SetMib(int64_t mib) { SetLimit(Limit::kDoorMemory, mib); }
  uint64_t Hits(Limit limit = Limit::kDoorMemory) {
    return limits_.Hits()[static_cast<size_t>(limit)];
  }
  // The user may have four calls under way, and has them all on this one.
  Pair ConnectWithAllCalls() {
    SetLimit(Limit::kOpenCallsPerUser, 4);
    Pair pair = Connect();
    EXPECT_TRUE(Say(pair.client, Calls(4)));
    EXPECT_EQ(Receive(pair.server, Calls(4).size()), Calls(4));
    return pair;
  }

  Limits limits_;
  Relay relay_{limits_,
               {.sizes = {.most = kMost, .most_question = kMost},
                .room_within_ns = kNsPerSecond,
                .is_trusted = [](uint32_t uid) { return uid == kTrusted; }}};
};

TEST_F(RelayTest, CarriesBothWaysWhateverItIs) {
  const Pair pair = Connect();
  std::string message(10 << 20, 'm');
  for (size_t i = 0; i < message.size(); i += 4096) message[i] = static_cast<char>(i >> 12);
  std::string request =
      Calls() + Frame(kData, kNone, 1, Prefix(static_cast<uint32_t>(message.size())));
  for (size_t at = 0; at < message.size(); at += 16384)
    request += Frame(kData, kNone, 1, message.substr(at, 16384));
  std::thread client([&] { EXPECT_TRUE(Say(pair.client, request)); });
  EXPECT_TRUE(Receive(pair.server, request.size(), absl::Seconds(20)) == request);
  client.join();
  std::string answer;
  for (size_t at = 0; at < message.size(); at += 16384)
    answer += Frame(kData, kNone, 1, message.substr(at, 16384));
  std::thread server([&] { EXPECT_TRUE(Say(pair.server, answer)); });
  EXPECT_TRUE(Receive(pair.client, answer.size(), absl::Seconds(20)) == answer);
  server.join();
}

TEST_F(RelayTest, TheEndOfEitherSideIsTheEnd) {
  Pair first = Connect();
  ASSERT_TRUE(Say(first.client, Calls()));
  first.client.Reset();
  EXPECT_EQ(Receive(first.server, Calls().size()), Calls()) << "what was said before";
  EXPECT_TRUE(HasEnded(first.server));
  Pair second = Connect();
  const std::string last = Frame(kGoAway, kNone, 0, "12345678");
  ASSERT_TRUE(Say(second.server, last));
  second.server.Reset();
  EXPECT_EQ(Receive(second.client, last.size()), last);
  EXPECT_TRUE(HasEnded(second.client));
}

TEST_F(RelayTest, OneUsersMessagesHaveSoMuchRoomOverAllConnections) {
  SetMib(32);
  const std::string large = Calls() + Frame(kData, kNone, 1, Prefix(20 * kMib) + "begun");
  const Pair first = Connect();
  ASSERT_TRUE(Say(first.client, large));
  ASSERT_EQ(Receive(first.server, large.size()), large);
  Pair second = Connect();
  ASSERT_TRUE(Say(second.client, large));
  EXPECT_EQ(Receive(second.server, large.size(), absl::Milliseconds(300)),
            large.substr(0, large.size() - 5))
      << "it waits";
  const Pair other = Connect(kUser + 10);
  ASSERT_TRUE(Say(other.client, large));
  EXPECT_EQ(Receive(other.server, large.size()), large) << "another user does not";
  const Pair trusted = Connect(kTrusted);
  const std::string larger = Calls() + Frame(kData, kNone, 1, Prefix(40 * kMib) + "begun");
  ASSERT_TRUE(Say(trusted.client, larger));
  EXPECT_EQ(Receive(trusted.server, larger.size()), larger) << "nor do the agents of nodes";
  const std::string question = Calls() + Frame(kData, kEnd, 1, Prefix(4) + "what");
  const Pair third = Connect();
  ASSERT_TRUE(Say(third.client, question));
  EXPECT_EQ(Receive(third.server, question.size()), question) << "nor questions";
  ASSERT_TRUE(Say(first.client, Frame(kReset, kNone, 1, "1234")));
  EXPECT_EQ(Receive(second.server, 5), "begun") << "the first has made room";
  EXPECT_EQ(Hits(), 0u);
}

TEST_F(RelayTest, OneUsersCallsBeginAtAPaceOverAllConnections) {
  SetLimit(Limit::kCallsPerUser, 600);
  const std::string calls = Calls(10);
  const Pair first = Connect();
  ASSERT_TRUE(Say(first.client, calls));
  ASSERT_EQ(Receive(first.server, calls.size()), calls) << "a second's at once";
  const Pair second = Connect();
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(Say(second.client, Calls(5)));
  EXPECT_EQ(Receive(second.server, Calls(5).size()), Calls(5));
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(400));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(4));
  for (const uint32_t uid : {kUser + 10, kTrusted}) {
    const Pair other = Connect(uid);
    const absl::Time from = absl::Now();
    const std::string said = uid == kTrusted ? Calls(40) : calls;
    ASSERT_TRUE(Say(other.client, said));
    EXPECT_EQ(Receive(other.server, said.size()), said);
    EXPECT_LT(absl::Now() - from, absl::Milliseconds(400));
  }
}

TEST_F(RelayTest, OneUserHasSoManyCallsUnderWay) {
  const Pair first = ConnectWithAllCalls();
  const Pair second = Connect();
  ASSERT_TRUE(Say(second.client, Calls(1)));
  const size_t fields = 6;
  EXPECT_EQ(Receive(second.server, Calls(1).size(), absl::Milliseconds(200)).size(),
            Calls(1).size() - fields);
  ASSERT_TRUE(Say(first.server,
                  Frame(kSettings, kNone, 0) + Frame(kHeaders, kEnd | kWhole, 1, "trailers")));
  EXPECT_EQ(Receive(second.server, fields), "fields") << "one has ended";
}

TEST_F(RelayTest, ACallThatFindsNoPlaceInTimeIsRefusedInWords) {
  const Pair first = ConnectWithAllCalls();
  const Pair second = Connect();
  ASSERT_TRUE(Say(second.server, Frame(kSettings, kNone, 0)));
  ASSERT_TRUE(Say(second.client, Calls(1)));
  const std::string words = Receive(second.client, SIZE_MAX, absl::Seconds(5));
  EXPECT_THAT(words, HasSubstr("limits.open_calls_per_user"))
      << "of a connection: no call has begun";
  EXPECT_TRUE(HasEnded(second.server));
  EXPECT_EQ(Hits(Limit::kOpenCallsPerUser), 1u);
  for (const uint32_t uid : {kUser + 10, kTrusted}) {
    const Pair other = Connect(uid);
    ASSERT_TRUE(Say(other.client, Calls(4)));
    EXPECT_EQ(Receive(other.server, Calls(4).size()), Calls(4)) << uid;
  }
}

TEST_F(RelayTest, WhoFindsNoRoomInTimeIsRefusedInWords) {
  SetMib(32);
  const std::string large = Calls() + Frame(kData, kNone, 1, Prefix(20 * kMib));
  const Pair first = Connect();
  ASSERT_TRUE(Say(first.client, large));
  ASSERT_EQ(Receive(first.server, large.size()), large);
  const Pair second = Connect();
  ASSERT_TRUE(Say(second.server, Frame(kSettings, kNone, 0)));
  ASSERT_TRUE(Say(second.client, large + "x"));
  const std::string words = Receive(second.client, SIZE_MAX, absl::Seconds(5));
  EXPECT_THAT(words, HasSubstr("limits.request_mib_per_user"));
  EXPECT_THAT(words, HasSubstr(std::string("grpc-status\x01"
                                           "8")));
  EXPECT_TRUE(HasEnded(second.server));
  EXPECT_EQ(Hits(), 1u);
}

TEST_F(RelayTest, WhatGrpcWouldTakeInWholeIsRefusedWhenItBegins) {
  const Pair pair = Connect();
  ASSERT_TRUE(Say(pair.server, Frame(kSettings, kNone, 0)));
  ASSERT_TRUE(Say(pair.client, Calls() + Frame(kData, kNone, 1, Prefix(kMost + 1))));
  // The end of the call, then GOAWAY.
  const std::string words = Receive(pair.client, SIZE_MAX, absl::Seconds(4));
  EXPECT_THAT(words, HasSubstr("over the limit of 41943040"));
  EXPECT_THAT(words, HasSubstr(":status"));
  EXPECT_TRUE(HasEnded(pair.server));
}

TEST_F(RelayTest, ARefusalWaitsForTheEndOfWhatGrpcIsSaying) {
  const Pair pair = Connect();
  const std::string answer = Frame(kHeaders, kWhole, 1, "fields of an answer");
  ASSERT_TRUE(Say(pair.server, Frame(kSettings, kNone, 0)));
  ASSERT_EQ(Receive(pair.client, 9), Frame(kSettings, kNone, 0));
  ASSERT_TRUE(Say(pair.client, Calls()));
  ASSERT_EQ(Receive(pair.server, Calls().size()), Calls());
  ASSERT_TRUE(Say(pair.server, answer.substr(0, 15)));
  ASSERT_EQ(Receive(pair.client, 15), answer.substr(0, 15));
  ASSERT_TRUE(Say(pair.client, Frame(kData, kNone, 1, Prefix(1, 1))));
  EXPECT_EQ(Receive(pair.client, 1, absl::Milliseconds(200)), "");
  ASSERT_TRUE(Say(pair.server, answer.substr(15)));
  const std::string words = Receive(pair.client, SIZE_MAX, absl::Seconds(4));
  EXPECT_EQ(words.substr(0, answer.size() - 15), answer.substr(15));
  EXPECT_THAT(words, HasSubstr("compressed messages are not taken"));
  EXPECT_THAT(words, testing::Not(HasSubstr(":status"))) << "it had one";
}

TEST_F(RelayTest, AClientThatReadsNothingHoldsLittle) {
  const Pair pair = Connect();
  const std::string frame = Frame(kData, kNone, 1, std::string(16384, 'a'));
  size_t taken = 0;
  const absl::Time end = absl::Now() + absl::Milliseconds(500);
  while (absl::Now() < end) {
    const ssize_t size =
        ::send(pair.server.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size > 0) taken += static_cast<size_t>(size);
    if (size <= 0) absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_LT(taken, 2u << 20) << "two buffers of the kernel's, and a turn";
}

TEST_F(RelayTest, CloseGivesOnWhatWasSaidAndEndsTheRest) {
  Pair ends = Connect();
  const Pair stays = Connect();
  const std::string last = Frame(kGoAway, kNone, 0, std::string(100'000, 'x'));
  std::thread say([&] {
    EXPECT_TRUE(Say(ends.server, last));
    ends.server.Reset();
  });
  std::string heard;
  std::thread hear([&] { heard = Receive(ends.client, last.size()); });
  say.join();
  const absl::Time begin = absl::Now();
  relay_.Close(absl::Milliseconds(500));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(2));
  hear.join();
  EXPECT_EQ(heard, last);
  EXPECT_TRUE(HasEnded(stays.client));
  EXPECT_TRUE(HasEnded(stays.server));
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  const UniqueFd other(pair[0]);
  EXPECT_EQ(relay_.Carry(UniqueFd(pair[1]), kUser).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(RelayTest, ManyConnectionsThatComeAndGo) {
  std::vector<std::thread> users;
  for (uint32_t user = 0; user < 4; ++user) {
    users.emplace_back([this, user] {
      for (int i = 0; i < 200; ++i) {
        Pair pair = Connect(kUser + user);
        ASSERT_TRUE(Say(pair.client, Calls()));
        if (i % 3 == 0) pair.client.Reset();
        if (i % 3 == 1) pair.server.Reset();
        if (i % 3 == 2) {
          ASSERT_EQ(Receive(pair.server, Calls().size()), Calls());
        }
      }
    });
  }
  for (std::thread& user : users) user.join();
}

}  // namespace
}  // namespace perfd::daemon
