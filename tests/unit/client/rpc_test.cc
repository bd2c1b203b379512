#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/rpc/backoff.h"
#include "client/rpc/convert.h"
#include "client/rpc/rpc_status.h"
#include "core/base/clock.h"
#include "core/base/version.h"
#include "core/wire/own_words.h"

namespace perfd::client {
namespace {

using ::testing::HasSubstr;

TEST(RpcStatusTest, KeepsTheCodeAndExplains) {
  EXPECT_TRUE(FromRpc(grpc::Status::OK, "unix:/x").ok());
  const auto away = FromRpc({grpc::StatusCode::UNAVAILABLE, "socket closed"}, "unix:/x");
  EXPECT_TRUE(absl::IsUnavailable(away));
  EXPECT_THAT(std::string(away.message()), AllOf(HasSubstr("unix:/x"), HasSubstr("systemctl")));
  EXPECT_EQ(
      FromRpc({grpc::StatusCode::UNAVAILABLE, "no node is connected", wire::kOwnWords}, "unix:/x"),
      absl::UnavailableError("no node is connected"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(FromRpc({grpc::StatusCode::DEADLINE_EXCEEDED, ""}, "a")));
  EXPECT_EQ(FromRpc({grpc::StatusCode::NOT_FOUND, "no profile"}, "a"),
            absl::NotFoundError("no profile"));
  EXPECT_THAT(std::string(FromRpc({grpc::StatusCode::UNIMPLEMENTED, ""}, "a").message()),
              HasSubstr("another version"));
}

TEST(RpcStatusTest, ProtocolMustBeTheSame) {
  EXPECT_TRUE(CheckProtocol("9", kProtocolVersion).ok());
  const auto status = CheckProtocol("9.9", kProtocolVersion + 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("perfd 9.9"), HasSubstr(kVersion)));
}

TEST(ReconnectPolicyTest, GivesUpThirtySecondsAfterTheLastWord) {
  ReconnectPolicy policy;
  const int64_t lost = 100 * kNsPerSecond;
  EXPECT_TRUE(policy.NextWait(lost).has_value());
  EXPECT_TRUE(policy.NextWait(lost + 30 * kNsPerSecond - 1).has_value());
  EXPECT_FALSE(policy.NextWait(lost + 30 * kNsPerSecond).has_value());
  policy.Heard();
  EXPECT_TRUE(policy.NextWait(lost + 40 * kNsPerSecond).has_value());
}

TEST(ConvertTest, NodesAndDoctor) {
  v1::ListNodesResponse nodes;
  v1::NodeStatus* node = nodes.add_nodes();
  node->set_node("node1");
  node->set_connected(true);
  node->mutable_heartbeat()->set_sessions(3);
  node->mutable_heartbeat()->set_set_aside_windows(7);
  node->mutable_heartbeat()->set_ring_bytes(8);
  node->mutable_heartbeat()->set_ring_limit_bytes(9);
  const auto converted = NodesFromProto(nodes);
  ASSERT_EQ(converted.size(), 1u);
  EXPECT_EQ(converted[0].node, "node1");
  EXPECT_EQ(converted[0].health.sessions, 3);
  EXPECT_EQ(converted[0].health.set_aside_windows, 7u);
  EXPECT_EQ(converted[0].health.ring_bytes, 8u);
  EXPECT_EQ(converted[0].health.ring_limit_bytes, 9u);
  v1::DoctorResponse doctor;
  v1::DoctorReport* report = doctor.add_reports();
  report->set_place("perfd");
  report->add_checks()->set_name("store");
  const auto reports = DoctorFromProto(doctor);
  ASSERT_TRUE(reports.ok()) << reports.status();
  EXPECT_EQ((*reports)[0].place, "perfd");
  EXPECT_EQ((*reports)[0].checks[0].name, "store");
  EXPECT_EQ((*reports)[0].source, DoctorSource::kNodeAgent) << "not said: not the daemon's word";
  report->set_source(v1::DOCTOR_SOURCE_USER_AGENT);
  report->set_uid(7);
  EXPECT_EQ(DoctorFromProto(doctor)->front().source, DoctorSource::kUserAgent);
  EXPECT_EQ(DoctorFromProto(doctor)->front().uid, 7u);
  report->set_source(static_cast<v1::DoctorSource>(9));
  EXPECT_FALSE(DoctorFromProto(doctor).ok());
}

TEST(ConvertTest, AnEventWithoutAStateIsRefused) {
  EXPECT_FALSE(WatchEventFromProto(v1::WatchEvent()).ok());
}

}  // namespace
}  // namespace perfd::client
