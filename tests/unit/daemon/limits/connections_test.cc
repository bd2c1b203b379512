#include "daemon/limits/connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "absl/status/status.h"

namespace perfd::daemon {
namespace {

constexpr uint32_t kUser = 1001;

// A process with 480 descriptors.
class ConnectionsTest : public testing::Test {
 protected:
  ConnectionsTest() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit few{.rlim_cur = 480, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    one_ = UniqueFd(ends[0]);
    other_ = UniqueFd(ends[1]);
    LimitValues values = StandardLimits();
    for (int64_t& value : values) value = 1'000'000;
    limits_.Set(values);
  }
  ~ConnectionsTest() override { ::setrlimit(RLIMIT_NOFILE, &before_); }

  // How many of `tries` connections get a place.
  template <typename AddOne>
  int Added(int tries, AddOne add) {
    int added = 0;
    for (int i = 0; i < tries; ++i) {
      const absl::Status status = add();
      if (!status.ok()) {
        EXPECT_TRUE(absl::IsUnavailable(status)) << status;
        EXPECT_THAT(status.message(), testing::HasSubstr("raise LimitNOFILE of perfd"));
        break;
      }
      ++added;
    }
    return added;
  }

  rlimit before_{};
  UniqueFd one_;
  UniqueFd other_;
  Limits limits_;
  Connections connections_{limits_};
};

// A connection over TCP takes two descriptors, one to the Unix socket four.
TEST_F(ConnectionsTest, OfTheDescriptorsAHalfIsNotForTcpAndAQuarterForNobodyElse) {
  const auto tcp = [&] { return connections_.Add(one_.get(), "10.0.0.1"); };
  const auto user = [&] { return connections_.Add(one_.get(), kUser, false); };
  const auto root = [&] { return connections_.Add(one_.get(), 0, true); };
  EXPECT_EQ(Added(1000, tcp), 120);
  EXPECT_EQ(Added(1000, user), 30);
  EXPECT_EQ(Added(1, tcp), 0) << "another one has come meanwhile";
  EXPECT_EQ(Added(30, root), 30);
  EXPECT_EQ(connections_.Of(kUser), 30u);
  other_.Reset();
  for (int i = 0; i < 500 && connections_.Of(kUser) > 0; ++i) ::usleep(10'000);
  EXPECT_EQ(connections_.Of(kUser), 0u) << "an end gives all places back";
}

TEST_F(ConnectionsTest, UsersMayHaveWhatTcpDoesNotTake) {
  EXPECT_EQ(Added(1000, [&] { return connections_.Add(one_.get(), kUser, false); }), 90);
  EXPECT_EQ(Added(1, [&] { return connections_.Add(one_.get(), "10.0.0.1"); }), 0);
}

}  // namespace
}  // namespace perfd::daemon
