#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "core/base/unique_fd.h"
#include "daemon/sockets/acceptor.h"
#include "daemon/sockets/tcp_listener.h"

namespace perfd::daemon {
namespace {

using testing::HasSubstr;

constexpr TcpPurpose kPurpose{"tests", "--listen-test"};

uint16_t PortOf(const std::string& address) {
  uint32_t port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  return static_cast<uint16_t>(port);
}

// Comes from `from`, an address of this host.
UniqueFd ConnectTo(uint16_t port, const char* from, const char* to) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto at = [](const char* host, uint16_t number) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(number);
    EXPECT_EQ(::inet_pton(AF_INET, host, &address.sin_addr), 1);
    return address;
  };
  const sockaddr_in own = at(from, 0);
  const sockaddr_in peer = at(to, port);
  const auto generic = [](const sockaddr_in& a) {
    return static_cast<const sockaddr*>(static_cast<const void*>(&a));
  };
  EXPECT_EQ(::bind(socket.get(), generic(own), sizeof(own)), 0);
  EXPECT_EQ(::connect(socket.get(), generic(peer), sizeof(peer)), 0);
  return socket;
}

TEST(TcpListenerTest, ErrorsNameTheOption) {
  for (const char* address : {"9754", ":9754", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536"}) {
    const absl::Status status = ListenTcp(address, kPurpose).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--listen-test"));
  }
  const absl::Status not_ours = ListenTcp("192.0.2.1:0", kPurpose).status();
  EXPECT_EQ(not_ours.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(not_ours.message()), HasSubstr("choose another --listen-test"));
}

TEST(TcpListenerTest, AllAddressesOfANameHaveOnePort) {
  const auto both = ListenTcp("localhost:0", kPurpose);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_GE(both->sockets.size(), 1u);
  EXPECT_NE(PortOf(both->address), 0);
  EXPECT_EQ(ListenTcp(both->address, kPurpose).status().code(), absl::StatusCode::kUnavailable)
      << "a daemon that had half of the name would be taken for the other one";
}

TEST(AcceptorTest, ConnectionsComeWithTheirNetwork) {
  // Of both families: who comes by IPv4 is of that address, however the listener sees it.
  for (const char* listen : {"127.0.0.1:0", "[::]:0"}) {
    const auto listener = ListenTcp(listen, kPurpose);
    if (!listener.ok()) continue;  // a host without IPv6
    std::atomic<int> right = 0;
    Acceptor acceptor;
    ASSERT_TRUE(acceptor
                    .Start({listener->sockets[0].get()},
                           [&](UniqueFd connection) {
                             if (NetworkOfPeer(connection.get()) == "127.0.0.2") ++right;
                           })
                    .ok());
    const UniqueFd first = ConnectTo(PortOf(listener->address), "127.0.0.2", "127.0.0.1");
    const UniqueFd second = ConnectTo(PortOf(listener->address), "127.0.0.2", "127.0.0.1");
    for (int i = 0; i < 100 && right < 2; ++i) absl::SleepFor(absl::Milliseconds(20));
    EXPECT_EQ(right, 2) << listen;
    acceptor.Stop();
  }
  EXPECT_EQ(NetworkOfPeer(-1), "");
}

TEST(AcceptorTest, HostsOfIpv6AreTheirNetwork) {
  const auto listener = ListenTcp("[::1]:0", kPurpose);
  if (!listener.ok()) GTEST_SKIP() << "this host has no IPv6";
  std::atomic<bool> right = false;
  Acceptor acceptor;
  ASSERT_TRUE(
      acceptor
          .Start({listener->sockets[0].get()},
                 [&](UniqueFd connection) { right = NetworkOfPeer(connection.get()) == "::/64"; })
          .ok());
  const UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 peer{};
  peer.sin6_family = AF_INET6;
  peer.sin6_addr = in6addr_loopback;
  peer.sin6_port = htons(PortOf(listener->address));
  const void* raw = &peer;
  ASSERT_EQ(::connect(socket.get(), static_cast<const sockaddr*>(raw), sizeof(peer)), 0);
  for (int i = 0; i < 100 && !right; ++i) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_TRUE(right);
  acceptor.Stop();
}

}  // namespace
}  // namespace perfd::daemon
