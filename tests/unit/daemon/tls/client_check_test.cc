#include "daemon/tls/client_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/certificate/made_certificate.h"

namespace perfd::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'710'000'000);

CertificateSpec Authority(const std::string& serial, absl::Time ends = CertificateSpec().ends) {
  return {.serial = serial, .names = "", .ends = ends, .authority = true};
}

class ClientCheckTest : public testing::Test {
 protected:
  ClientCheckTest() { EXPECT_TRUE(check_.SetAuthorities(ca_.Pem()).ok()); }

  static std::shared_ptr<PeerCertificate> Peer(const MadeCertificate& made,
                                               const std::string& chain = "") {
    return *PeerCertificate::Read(made.Pem(), chain);
  }
  void Revoke(const std::string& text) { check_.SetRevoked(*RevokedList::Parse(text)); }
  std::string Refused(PeerCertificate& peer, absl::Time now = kNow) {
    const absl::Status status = check_.Check(peer, now);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    return std::string(status.message());
  }

  const MadeCertificate ca_{Authority("CA")};
  const MadeCertificate other_ca_{Authority("CB")};
  ClientCheck check_;
};

TEST_F(ClientCheckTest, ARevokedOneIsRefusedFromThenOn) {
  const auto node1 = Peer(MadeCertificate({.serial = "3A"}, &ca_));
  const auto node2 =
      Peer(MadeCertificate({.serial = "3B", .names = "URI:perfd://agent/node2"}, &ca_));
  EXPECT_TRUE(check_.Check(*node1, kNow).ok());
  EXPECT_TRUE(check_.Check(*node2, kNow).ok());
  Revoke("serial 3A");
  EXPECT_THAT(Refused(*node1),
              HasSubstr("perfd://agent/node1 (serial 3A) is revoked by its serial"));
  EXPECT_TRUE(check_.Check(*node2, kNow).ok());
  Revoke("name node2");
  EXPECT_THAT(Refused(*node2), HasSubstr("is revoked by its name"));
  EXPECT_TRUE(check_.Check(*node1, kNow).ok());  // not on the list any more
  EXPECT_THAT(check_.refused(), ElementsAre(2, 0, 0));
}

TEST_F(ClientCheckTest, AnotherCaRefusesThoseOfTheOldOneOnly) {
  const auto old_one = Peer(MadeCertificate({.serial = "1"}, &ca_));
  const auto new_one = Peer(MadeCertificate({.serial = "2"}, &other_ca_));
  EXPECT_TRUE(check_.Check(*old_one, kNow).ok());
  EXPECT_THAT(Refused(*new_one), HasSubstr("is of no CA that perfd accepts now"));
  ASSERT_TRUE(check_.SetAuthorities(ca_.Pem() + other_ca_.Pem()).ok());
  EXPECT_TRUE(check_.Check(*old_one, kNow).ok());
  EXPECT_TRUE(check_.Check(*new_one, kNow).ok());
  ASSERT_TRUE(check_.SetAuthorities(other_ca_.Pem()).ok());
  EXPECT_THAT(Refused(*old_one), HasSubstr("is of no CA that perfd accepts now"));
  EXPECT_TRUE(check_.Check(*new_one, kNow).ok());
  EXPECT_THAT(check_.refused(), ElementsAre(0, 0, 2));
}

TEST_F(ClientCheckTest, ACaThatCannotBeReadChangesNothing) {
  const auto peer = Peer(MadeCertificate({}, &ca_));
  EXPECT_EQ(check_.SetAuthorities("").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(check_.Check(*peer, kNow).ok());
  ClientCheck closed;  // no CA yet: nobody
  EXPECT_FALSE(closed.Check(*peer, kNow).ok());
}

TEST_F(ClientCheckTest, OneThatEndsIsRefusedAlsoWhenItWasAccepted) {
  const CertificateSpec spec;
  const auto peer = Peer(MadeCertificate(spec, &ca_));
  EXPECT_TRUE(check_.Check(*peer, spec.ends - absl::Seconds(1)).ok());
  EXPECT_THAT(Refused(*peer, spec.ends),
              HasSubstr("is not valid now: it ended on 2024-12-12 10:40 UTC; renew it"));
  EXPECT_THAT(Refused(*Peer(MadeCertificate(spec, &ca_)), spec.begins - absl::Seconds(1)),
              HasSubstr("it is valid only from"));
  EXPECT_THAT(check_.refused(), ElementsAre(0, 2, 0));
}

// What was accepted is looked at again when something of its chain ends, not only the certificate itself.
TEST_F(ClientCheckTest, OneWhoseCaEndsIsRefused) {
  const MadeCertificate ca(Authority("CC", kNow + absl::Hours(1)));
  ASSERT_TRUE(check_.SetAuthorities(ca.Pem()).ok());
  const auto peer = Peer(MadeCertificate({}, &ca));
  EXPECT_TRUE(check_.Check(*peer, kNow + absl::Minutes(59)).ok());
  EXPECT_THAT(Refused(*peer, kNow + absl::Hours(1)), HasSubstr("has expired"));
}

TEST_F(ClientCheckTest, AChainThatTheClientSendsIsFollowed) {
  const MadeCertificate between(Authority("CD"), &ca_);
  const MadeCertificate leaf({}, &between);
  EXPECT_TRUE(check_.Check(*Peer(leaf, between.Pem()), kNow).ok());
  EXPECT_FALSE(check_.Check(*Peer(leaf), kNow).ok());
}

TEST_F(ClientCheckTest, ACertificateThatIsNotForClientsIsRefused) {
  EXPECT_FALSE(check_.Check(*Peer(MadeCertificate(Authority("CE"))), kNow).ok());
  EXPECT_FALSE(PeerCertificate::Read("", "").ok());
}

}  // namespace
}  // namespace perfd::daemon
