#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/unique_fd.h"
#include "tests/unit/daemon/service/tls_fixture.h"

namespace perfd::daemon {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

// From an address of this host; nothing is said on them.
std::vector<UniqueFd> TcpConnections(const std::string& address, const char* from, int count) {
  uint32_t port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  std::vector<UniqueFd> connections;
  for (int i = 0; i < count; ++i) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own{};
    own.sin_family = AF_INET;
    EXPECT_EQ(::inet_pton(AF_INET, from, &own.sin_addr), 1);
    sockaddr_in peer = own;
    peer.sin_port = htons(static_cast<uint16_t>(port));
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const void* raw_own = &own;
    const void* raw_peer = &peer;
    EXPECT_EQ(::bind(socket.get(), static_cast<const sockaddr*>(raw_own), sizeof(own)), 0);
    EXPECT_EQ(::connect(socket.get(), static_cast<const sockaddr*>(raw_peer), sizeof(peer)), 0);
    connections.push_back(std::move(socket));
  }
  return connections;
}

TEST_F(TlsTest, IdentitiesComeFromCertificates) {
  const auto address = host_->ListenTls(Options());
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_TRUE(List(Dial(*address, "user-root")).ok());
  EXPECT_EQ(List(Dial(*address, "")).error_code(),
            StatusCode::UNAVAILABLE);  // no certificate: no connection
  EXPECT_EQ(List(Dial(*address, "agent-node1")).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(List(Dial(*address, "user-nosuchuser")).error_code(), StatusCode::PERMISSION_DENIED);

  FakeAgent wrong(Dial(*address, "agent-node1"), "node2");
  EXPECT_FALSE(wrong.Join().has_value());
  EXPECT_EQ(wrong.End().error_code(), StatusCode::PERMISSION_DENIED);
  FakeAgent agent(Dial(*address, "agent-node1"), "node1");
  ASSERT_TRUE(agent.Join().has_value());
  std::string id;
  const auto root = v1::Profiler::NewStub(Dial(*address, "user-root"));
  ASSERT_TRUE(Submit(*root, &id).ok());
  const auto start = agent.Read();
  ASSERT_TRUE(start.has_value() && start->has_start());
  EXPECT_TRUE(start->start().requester().privileged());  // named by --tls-admin
}

// Over the Unix socket these would pass as windows of a renamed node (WindowsOfARenamedNodeAreStored).
TEST_F(TlsTest, ACertifiedAgentSpeaksForItsNodeOnly) {
  const auto address = host_->ListenTls(Options());
  ASSERT_TRUE(address.ok()) << address.status();
  FakeAgent agent(Dial(*address, "agent-node1"), "node1");
  ASSERT_TRUE(agent.Join().has_value());
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  v1::Window window = agent.MakeWindow(id, 1);
  window.set_node("unused-name");
  agent.SendWindow(window);
  EXPECT_THAT(agent.ReadAcknowledged(), testing::ElementsAre(1));  // or it would come for ever
  EXPECT_EQ(pipeline_->Figures().windows_stored, 0u);
  EXPECT_THAT(pipeline_->Figures().windows_dropped, testing::Contains(LabelledCount("foreign", 1)));
  agent.SendWindow(agent.MakeWindow(id, 2));
  EXPECT_THAT(agent.ReadAcknowledged(), testing::ElementsAre(2));
  EXPECT_EQ(pipeline_->Figures().windows_stored, 1u);
  EXPECT_THAT(Get(id).ShortDebugString(), HasSubstr("certificate is for"));
}

TEST_F(TlsTest, ACertificateOfAnotherSiteIsRefused) {
  const auto address = host_->ListenTls(Options());
  ASSERT_TRUE(address.ok());
  const std::string other = folder_ + "/other";
  ASSERT_EQ(
      std::system(absl::StrCat("deploy/make-certs.sh ", other, " user root >/dev/null").c_str()),
      0);
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = Read("ca.crt");
  options.pem_private_key = Read("../other/user-root.key");
  options.pem_cert_chain = Read("../other/user-root.crt");
  EXPECT_EQ(List(grpc::CreateChannel(*address, grpc::SslCredentials(options))).error_code(),
            StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, WithoutCertificatesTheDoorStaysShut) {
  TlsOptions options = Options();
  options.cert.clear();
  const absl::Status status = host_->ListenTls(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("deploy/make-certs.sh"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--tls-cert"));
}

TEST_F(TlsTest, AKeyThatOthersCanReadIsRefused) {
  ASSERT_EQ(::chmod((certs_ + "/server.key").c_str(), 0640), 0);
  const absl::Status status = host_->ListenTls(Options()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 600"));
}

TEST_F(TlsTest, RenewedCertificatesAreUsedWithoutARestart) {
  const auto address = host_->ListenTls(Options());
  ASSERT_TRUE(address.ok());
  const auto before = Dial(*address, "user-root");
  ASSERT_TRUE(List(before).ok());
  // Another CA altogether: who trusts only the old one is not let in any more, and the other way round.
  MakeCertificates("other", "server localhost 127.0.0.1 user root");
  const std::string other = folder_ + "/other";
  const TlsOptions renewed{*address, other + "/ca.crt", other + "/server.crt",
                           other + "/server.key"};
  ASSERT_TRUE(host_->RenewTls(renewed).ok());
  const grpc::Status standing = List(before);
  EXPECT_EQ(standing.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(standing.error_message(), HasSubstr("is of no CA that perfd accepts now"));
  EXPECT_TRUE(List(Dial(*address, "../other/user-root", "../other/ca.crt")).ok());
  EXPECT_FALSE(List(Dial(*address, "user-root")).ok());
}

TEST_F(TlsTest, BrokenFilesLeaveTheOldCertificates) {
  const auto address = host_->ListenTls(Options());
  ASSERT_TRUE(address.ok());
  TlsOptions mixed = Options();
  mixed.key = certs_ + "/user-root.key";
  const absl::Status status = host_->RenewTls(mixed);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not the key of"));
  mixed.key = certs_ + "/missing.key";
  EXPECT_FALSE(host_->RenewTls(mixed).ok());
  EXPECT_TRUE(List(Dial(*address, "user-root")).ok());
  mixed = Options();
  mixed.cert = certs_ + "/user-root.crt";
  EXPECT_FALSE(host_->ListenTls(mixed).ok()) << "found at the start, not by the first client";
}

// gRPC would go on with the old CA without a word; so would whoever removed one from the file.
TEST_F(TlsTest, AMangledCaIsSaidAndLeavesTheOldOne) {
  const auto address = host_->ListenTls(Options());
  ASSERT_TRUE(address.ok());
  const std::string ca = Read("ca.crt");
  std::string flipped = ca;
  flipped[ca.find('\n') + 20] = '!';  // no letter of base64
  std::string other = ca;
  other.replace(ca.find('\n') + 1, 8, "AAAAAAAA");  // base64 of something else
  const std::string cut = ca.substr(0, ca.size() / 2);
  std::string key_only = Read("server.key");
  TlsOptions options = Options();
  options.ca = certs_ + "/mangled.crt";
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {flipped, "certificate 1 is damaged"},
           {other, "certificate 1 is damaged"},
           {cut, "certificate 1 is damaged"},
           {ca + flipped, "certificate 2 is damaged"},
           {ca + cut, "certificate 2 is damaged"},
           {key_only, "holds no certificate"},
           {std::string(1, '\0') + ca, "is not a PEM file"},
           {"", "is not a PEM file"}}) {
    std::ofstream(options.ca) << text;
    const absl::Status status = host_->RenewTls(options);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_THAT(std::string(status.message()), HasSubstr(options.ca));
  }
  EXPECT_TRUE(List(Dial(*address, "user-root")).ok());
  std::ofstream(options.ca) << "text before\n" << ca << "\n" << ca << "text after\n";
  EXPECT_TRUE(host_->RenewTls(options).ok());
}

TEST_F(TlsTest, ACertificateThatTlsDoesNotAcceptIsSaid) {
  const std::string weak = certs_ + "/weak";
  const std::string command =
      absl::StrCat("openssl req -x509 -newkey rsa:512 -nodes -days 9 -subj /CN=weak -keyout ", weak,
                   ".key -out ", weak, ".crt 2>/dev/null && chmod 600 ", weak, ".key");
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "this openssl makes no weak keys";
  const auto address = host_->ListenTls(Options());
  ASSERT_TRUE(address.ok());
  TlsOptions options = Options();
  options.cert = weak + ".crt";
  options.key = weak + ".key";
  const absl::Status status = host_->RenewTls(options);
  EXPECT_THAT(std::string(status.message()), HasSubstr("TLS does not accept --tls-cert"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("too small"));
  EXPECT_TRUE(List(Dial(*address, "user-root")).ok());
}

TEST_F(TlsTest, ATakenPortIsAnError) {
  const auto address = host_->ListenTls(Options());
  ASSERT_TRUE(address.ok());
  TlsOptions again = Options();
  again.listen = *address;
  EXPECT_EQ(host_->ListenTls(again).status().code(), absl::StatusCode::kUnavailable);
}

// Silent ones, which prove nothing: they hold places only as long as a handshake may take.
TEST_F(TlsTest, OneAddressCannotTakeThePlacesOfOthers) {
  SetLimit(Limit::kConnectionsPerAddress, 4);
  const auto address = host_->ListenTls(Options());
  ASSERT_TRUE(address.ok()) << address.status();
  const std::vector<UniqueFd> silent = TcpConnections(*address, "127.0.0.7", 9);
  int open = 0;
  for (const UniqueFd& socket : silent) {
    pollfd ended{socket.get(), POLLIN | POLLRDHUP, 0};
    open += ::poll(&ended, 1, 1000) == 0 ? 1 : 0;
  }
  EXPECT_EQ(open, 4) << "who is refused is not left waiting";
  EXPECT_EQ(Hits(Limit::kConnectionsPerAddress), 5u);
  EXPECT_TRUE(List(Dial(*address, "user-root")).ok()) << "from another address";
}

TEST_F(TlsTest, ConnectionsOverTcpAreBoundedInAllAndGivenBack) {
  SetLimit(Limit::kTcpConnections, 4);
  const auto address = host_->ListenTls(Options());
  ASSERT_TRUE(address.ok()) << address.status();
  {
    std::vector<UniqueFd> silent = TcpConnections(*address, "127.0.0.7", 2);
    for (UniqueFd& more : TcpConnections(*address, "127.0.0.8", 2))
      silent.push_back(std::move(more));
    EXPECT_FALSE(List(Dial(*address, "user-root")).ok());
    EXPECT_GE(Hits(Limit::kTcpConnections), 1u);
    EXPECT_TRUE(List(Connect()).ok()) << "the Unix socket has places of its own";
  }
  bool again = false;
  for (int i = 0; i < 50 && !again; ++i) {
    again = List(Dial(*address, "user-root")).ok();
    if (!again) absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_TRUE(again);
}

TEST(Certificates, NameExactlyOneIdentity) {
  Accounts accounts;
  const Identities identities({"", {}, 0}, accounts);
  EXPECT_FALSE(identities.FromCertificate({}).ok());
  EXPECT_FALSE(identities.FromCertificate({"DNS:perfd"}).ok());
  EXPECT_FALSE(identities.FromCertificate({"perfd://user/root", "perfd://agent/a"}).ok());
  EXPECT_FALSE(identities.FromCertificate({"perfd://user/"}).ok());
  EXPECT_FALSE(identities.FromCertificate({"perfd://admin/root"}).ok());
  const auto user = identities.FromCertificate({"host.site", "perfd://user/nobody"});
  ASSERT_TRUE(user.ok()) << user.status();
  EXPECT_EQ(user->requester.name, "nobody");
  EXPECT_FALSE(user->requester.privileged);
  EXPECT_EQ(identities.FromCertificate({"perfd://agent/a"})->agent_node, "a");
}

}  // namespace
}  // namespace perfd::daemon
