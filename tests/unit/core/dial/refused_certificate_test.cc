#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "core/dial/dial.h"

namespace perfd {
namespace {

TEST(RefusedCertificateTest, TheClockIsAmongTheReasons) {
  // As gRPC 1.51 puts it.
  const absl::Status status =
      ToAbsl({grpc::StatusCode::UNAVAILABLE,
              "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:9753: Ssl "
              "handshake failed: "
              "SSL_ERROR_SSL: error:0A000086:SSL routines::certificate verify failed"});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::EndsWith(status.message(), "or not valid now by the clock of this host"))
      << status;
}

TEST(RefusedCertificateTest, OtherErrorsStayAsTheyAre) {
  EXPECT_EQ(ToAbsl({grpc::StatusCode::NOT_FOUND, "p-000001"}), absl::NotFoundError("p-000001"));
  EXPECT_TRUE(ToAbsl(grpc::Status::OK).ok());
}

}  // namespace
}  // namespace perfd
