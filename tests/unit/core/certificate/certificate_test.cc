#include "core/certificate/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/certificate/expiry.h"
#include "tests/unit/core/certificate/made_certificate.h"

namespace perfd {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kDay = absl::Hours(24);
const absl::Time kBegins = absl::FromUnixSeconds(1'700'000'000);

Certificate Lasting(absl::Duration life) {
  return {.serial = "1", .uris = {}, .begins = kBegins, .ends = kBegins + life};
}

TEST(CertificateTest, SaysWhatItHolds) {
  const std::string pem =
      MadeCertificate({.serial = "00ab0C",
                       .names = "DNS:node1.site,URI:perfd://agent/node1,URI:perfd://user/root"})
          .Pem();
  const auto read = ReadCertificates("text before\n" + pem + "\ntext after\n");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->front().serial, "AB0C");  // `openssl x509 -serial` prints the same
  EXPECT_THAT(read->front().uris, testing::ElementsAre("perfd://agent/node1", "perfd://user/root"));
  EXPECT_EQ(read->front().begins, CertificateSpec().begins);
  EXPECT_EQ(read->front().ends, CertificateSpec().ends);
}

TEST(CertificateTest, AllOfATextIsReadOrItIsSaidWhichOneIsDamaged) {
  const std::string one = MadeCertificate({.serial = "1", .names = ""}).Pem();
  const std::string two = MadeCertificate({.serial = "2"}).Pem();
  const auto both = ReadCertificates(one + two);
  ASSERT_TRUE(both.ok());
  EXPECT_TRUE(both->front().uris.empty());
  EXPECT_EQ(both->back().serial, "2");
  EXPECT_EQ(ReadCertificates(one + two.substr(0, two.size() / 2)).status().message(),
            "certificate 2 is damaged");
  EXPECT_EQ(ReadCertificates("").status().message(), "it holds no certificate");
  EXPECT_THAT(std::string(LoadCertificates("/missing.crt").status().message()),
              HasSubstr("No such file"));
}

TEST(ExpiryTest, TheLast30DaysAreSoon) {
  const Certificate year = Lasting(397 * kDay);
  EXPECT_FALSE(EndsSoon(year, year.ends - kWarnBeforeEnd));
  EXPECT_TRUE(EndsSoon(year, year.ends - kWarnBeforeEnd + absl::Seconds(1)));
}

TEST(ExpiryTest, OfAShortLifeTheLastThirdIsSoon) {
  const Certificate week = Lasting(9 * kDay);
  EXPECT_FALSE(EndsSoon(week, week.ends - 3 * kDay));
  EXPECT_TRUE(EndsSoon(week, week.ends - 3 * kDay + absl::Seconds(1)));
}

TEST(ExpiryTest, OneThatIsNotValidNowIsRefusedInWords) {
  const Certificate day = Lasting(kDay);
  EXPECT_TRUE(CheckValidNow(day, day.begins).ok());
  EXPECT_TRUE(CheckValidNow(day, day.ends - absl::Seconds(1)).ok());
  EXPECT_EQ(CheckValidNow(day, day.ends).message(), "it ended on 2023-11-15 22:13 UTC");
  EXPECT_THAT(std::string(CheckValidNow(day, day.begins - absl::Seconds(1)).message()),
              HasSubstr("only from 2023-11-14 22:13 UTC on"));
}

TEST(ExpiryTest, TheCheckIsOfTheFirstToEnd) {
  const Certificate year = Lasting(397 * kDay);
  const Certificate two_months = Lasting(60 * kDay);
  const ExpiryCheck fine = CheckExpiry({{year}}, kBegins + 50 * kDay);
  EXPECT_TRUE(fine.ok && fine.usable);
  const ExpiryCheck soon = CheckExpiry({{year, two_months, year}}, kBegins + 50 * kDay);
  EXPECT_FALSE(soon.ok);
  EXPECT_TRUE(soon.usable);
  EXPECT_THAT(soon.found, HasSubstr(", in 10 days"));
  const ExpiryCheck over = CheckExpiry({{year, two_months}}, kBegins + 61 * kDay);
  EXPECT_FALSE(over.ok || over.usable);
  EXPECT_THAT(over.found, HasSubstr("it ended on"));
  EXPECT_FALSE(CheckExpiry(absl::InvalidArgumentError("gone"), kBegins).usable);
}

TEST(ExpiryTest, OnceADay) {
  Daily daily;
  EXPECT_TRUE(daily.Due(kBegins));
  EXPECT_FALSE(daily.Due(kBegins + kDay - absl::Seconds(1)));
  EXPECT_TRUE(daily.Due(kBegins + kDay));
  EXPECT_FALSE(daily.Due(kBegins + kDay));
}

}  // namespace
}  // namespace perfd
