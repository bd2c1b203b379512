// What the requests of one user may hold of the daemon, and whose are bound, said by real peers in HTTP/2.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "core/base/unique_fd.h"
#include "tests/unit/daemon/relay/frames.h"
#include "tests/unit/daemon/service/service_fixture.h"

namespace perfd::daemon {
namespace {

using namespace testing_frames;  // NOLINT(google-build-using-namespace): a test's own words
using std::chrono::milliseconds;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kAdmin = 5;   // games
constexpr uint32_t kAgents = 9;  // news
constexpr uint32_t kQuestion = 256 << 10;

std::string HeadersOf(uint32_t call, const std::string& method) {
  const auto field = [](const std::string& name, const std::string& value) {
    return Number(0, 1) + Number(name.size(), 1) + name + Number(value.size(), 1) + value;
  };
  return Frame(kHeaders, kWhole, 2 * call + 1,
               field(":method", "POST") + field(":scheme", "http") +
                   field(":path", "/perfd.v1.Profiler/" + method) + field(":authority", "perfd") +
                   field("te", "trailers") + field("content-type", "application/grpc"));
}

class LimitsOfRequestsTest : public ServiceFixture {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "needs root to be someone else";
    identity_.admin_group = "games";
    identity_.agent_uid = kAgents;
    ServiceFixture::SetUp();
  }
  // A connection on which a user has said all of this.
  UniqueFd Say(uint32_t uid, const std::string& bytes) {
    UniqueFd client(ConnectSocket(uid));
    EXPECT_EQ(::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return client;
  }
  // What it hears until perfd ends it, or for so long.
  static std::string ReadUntilEnd(const UniqueFd& client, milliseconds within) {
    std::string heard;
    const auto end = Clock::now() + within;
    while (Clock::now() < end) {
      pollfd ready{client.get(), POLLIN, 0};
      if (::poll(&ready, 1, 20) <= 0) continue;
      std::array<char, 65536> buffer{};
      const ssize_t size = ::recv(client.get(), buffer.data(), buffer.size(), 0);
      if (size <= 0) break;
      heard.append(buffer.data(), static_cast<size_t>(size));
    }
    return heard;
  }
  bool Served(uint32_t uid) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1::ListLimitsResponse response;
    return Person(uid)->ListLimits(&context, {}, &response).ok();
  }
  bool ServedInTheEnd(uint32_t uid) {
    for (int i = 0; i < 50; ++i) {
      std::this_thread::sleep_for(milliseconds(100));
      if (Served(uid)) return true;
    }
    return false;
  }
  // 240 answers that have no room on the way: a client that lets nothing in (RFC 9113, SETTINGS_INITIAL_WINDOW_SIZE).
  std::vector<UniqueFd> AskWithoutReading(uint32_t uid) {
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back(ConnectSocket(uid));
      std::string bytes = kPreface + Frame(kSettings, kNone, 0, Number(4, 2) + Number(0, 4));
      for (uint32_t call = 0; call < 80; ++call) {
        bytes += HeadersOf(call, "ListLimits") + Frame(kData, kEnd, 2 * call + 1, Prefix(0));
        if (call % 16 != 15) continue;  // fewer than questions_per_user at a time
        EXPECT_EQ(::send(clients.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
        bytes.clear();
        std::this_thread::sleep_for(milliseconds(30));
      }
    }
    return clients;
  }
  // `limit` is four of what each connection has said; the fifth one of a user hears why it is refused, and nobody else of it.
  void ExpectFourPlaces(Limit limit, const std::string& key, const std::string& said) {
    std::vector<UniqueFd> within;
    for (const uint32_t uid : {kAdmin, kNobody, 0u, kAgents})
      for (int i = 0; i < 4; ++i) within.push_back(Say(uid, said));
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_EQ(Hits(limit), 0u);
    const UniqueFd of_admin = Say(kAdmin, said);
    const UniqueFd of_nobody = Say(kNobody, said);
    const UniqueFd of_root = Say(0, said);
    const UniqueFd of_agents = Say(kAgents, said);
    EXPECT_THAT(ReadUntilEnd(of_admin, milliseconds(9000)), HasSubstr(key)) << "after five seconds";
    EXPECT_THAT(ReadUntilEnd(of_nobody, milliseconds(9000)), HasSubstr(key));
    EXPECT_EQ(Hits(limit), 2u);
    for (const UniqueFd* const other :
         std::initializer_list<const UniqueFd*>{&of_root, &of_agents, &within[0], &within[4]})
      EXPECT_THAT(ReadUntilEnd(*other, milliseconds(200)), testing::Not(HasSubstr(key)));
    for (const uint32_t uid : {0u, kAgents, 2u}) EXPECT_TRUE(Served(uid)) << uid;
    within.clear();
    for (const uint32_t uid : {kAdmin, kNobody}) EXPECT_TRUE(ServedInTheEnd(uid)) << uid;
  }
};

TEST_F(LimitsOfRequestsTest, CallsUnderWayAreBoundAlsoOfAdministrators) {
  SetLimit(Limit::kOpenCallsPerUser, 4);
  ExpectFourPlaces(Limit::kOpenCallsPerUser, "limits.open_calls_per_user",
                   kPreface + Frame(kSettings, kNone, 0) + HeadersOf(0, "Submit"));
}

TEST_F(LimitsOfRequestsTest, MessagesOnTheirWayAreBoundAlsoOfAdministrators) {
  SetLimit(Limit::kDoorMemory, 1);
  ExpectFourPlaces(Limit::kDoorMemory, "limits.request_mib_per_user",
                   kPreface + Frame(kSettings, kNone, 0) + HeadersOf(0, "Submit") +
                       Frame(kData, kNone, 1, Prefix(kQuestion) + "x"));
}

TEST_F(LimitsOfRequestsTest, CallsBeginAtAPaceAlsoOfAdministrators) {
  SetLimit(Limit::kCallsPerUser, 600);  // ten a second, and those of one second at once
  const auto time_of_calls = [this](uint32_t uid) {
    const auto person = Person(uid);
    const auto begin = Clock::now();
    for (int i = 0; i < 25; ++i) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
      v1::GetVersionResponse response;
      EXPECT_TRUE(person->GetVersion(&context, {}, &response).ok()) << i;
    }
    return Clock::now() - begin;
  };
  for (const uint32_t uid : {kAdmin, kNobody})
    EXPECT_GE(time_of_calls(uid), milliseconds(1400)) << uid;
  for (const uint32_t uid : {0u, kAgents}) EXPECT_LT(time_of_calls(uid), milliseconds(1400)) << uid;
}

TEST_F(LimitsOfRequestsTest, AnswersThatNobodyReadHaveAnEndButForAdministrators) {
  SetLimit(Limit::kAnswerBytesPerUser, 1);
  std::vector<UniqueFd> clients;
  for (const uint32_t uid : {0u, kAdmin}) {
    for (UniqueFd& client : AskWithoutReading(uid)) clients.push_back(std::move(client));
    EXPECT_EQ(Hits(Limit::kAnswerBytesPerUser), 0u) << uid;
  }
  for (UniqueFd& client : AskWithoutReading(kNobody)) clients.push_back(std::move(client));
  EXPECT_GT(Hits(Limit::kAnswerBytesPerUser), 0u);
  EXPECT_TRUE(Served(0)) << "another user";
  clients.clear();
  EXPECT_TRUE(ServedInTheEnd(kNobody)) << "who has gone holds nothing";
}

}  // namespace
}  // namespace perfd::daemon
