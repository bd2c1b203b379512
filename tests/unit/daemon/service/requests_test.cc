#include <gmock/gmock.h>
#include <unistd.h>

#include "core/base/version.h"
#include "core/wire/own_words.h"
#include "tests/unit/daemon/service/health_check.h"
#include "tests/unit/daemon/service/service_fixture.h"

namespace perfd::daemon {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

class RequestsTest : public ServiceFixture {
 protected:
  grpc::Status Cancel(v1::Profiler::Stub& stub, const std::string& id) {
    grpc::ClientContext context;
    v1::CancelRequest request;
    request.set_id(id);
    v1::ProfileStatus status;
    return stub.Cancel(&context, request, &status);
  }
  grpc::Status GetAs(v1::Profiler::Stub& stub, const std::string& id) {
    grpc::ClientContext context;
    v1::GetProfileRequest request;
    request.set_id(id);
    v1::ProfileStatus status;
    return stub.GetProfile(&context, request, &status);
  }
};

TEST_F(RequestsTest, WithoutAnAgentASubmitIsUnavailable) {
  std::string id;
  const grpc::Status status = Submit(*Person(), &id);
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("no node is connected"));
  EXPECT_EQ(status.error_details(), wire::kOwnWords);
}

TEST_F(RequestsTest, AnotherProtocolIsRefused) {
  v1::SubmitRequest request;
  request.set_protocol_version(kProtocolVersion + 1);
  grpc::ClientContext context;
  v1::SubmitResponse response;
  EXPECT_EQ(Person()->Submit(&context, request, &response).error_code(),
            StatusCode::FAILED_PRECONDITION);
}

TEST_F(RequestsTest, TheKernelSaysWhoAsks) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to be someone else";
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  const auto root = Person();
  const auto nobody = Person(kNobody);
  std::string of_root;
  std::string of_nobody;
  ASSERT_TRUE(Submit(*root, &of_root).ok());
  ASSERT_TRUE(Submit(*nobody, &of_nobody).ok());
  EXPECT_EQ(Get(of_nobody).requester().uid(), kNobody);
  EXPECT_FALSE(Get(of_nobody).requester().privileged());
  EXPECT_TRUE(Get(of_root).requester().privileged());
  EXPECT_EQ(GetAs(*nobody, of_root).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Cancel(*nobody, of_root).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(GetAs(*nobody, "last").ok());
  EXPECT_TRUE(Cancel(*root, of_nobody).ok());
  grpc::ClientContext context;
  v1::ListProfilesResponse list;
  ASSERT_TRUE(nobody->ListProfiles(&context, {}, &list).ok());
  ASSERT_EQ(list.profiles_size(), 1);
  EXPECT_EQ(list.profiles(0).id(), of_nobody);
  EXPECT_EQ(host_->servers(), 2u);
}

TEST_F(RequestsTest, IdsMayBeShortened) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  const auto person = Person();
  EXPECT_EQ(GetAs(*person, "last").error_code(), StatusCode::NOT_FOUND);
  std::string first;
  std::string second;
  ASSERT_TRUE(Submit(*person, &first).ok());
  EXPECT_TRUE(GetAs(*person, "p-0").ok());
  ASSERT_TRUE(Submit(*person, &second).ok());
  EXPECT_EQ(GetAs(*person, "p-0").error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(GetAs(*person, "p-000009").error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(GetAs(*person, "nonsense").error_code(), StatusCode::INVALID_ARGUMENT);
}

TEST_F(RequestsTest, WatchFollowsToTheEnd) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  const auto person = Person();
  std::string id;
  ASSERT_TRUE(Submit(*person, &id).ok());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::WatchRequest request;
  request.set_id("last");
  request.set_top_loops(3);
  auto stream = person->Watch(&context, request);
  v1::WatchEvent event;
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.status().state(), v1::PROFILE_STATE_DISCOVERING);
  ASSERT_TRUE(stream->Read(&event));  // within a second, though nothing happened
  agent.SendWindow(agent.MakeWindow(id, 1));
  agent.SendUpdate(id, v1::NODE_PHASE_FINISHED, 1, 1);
  while (stream->Read(&event)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(event.status().state(), v1::PROFILE_STATE_DONE);
  ASSERT_EQ(event.top_loops_size(), 1);
  EXPECT_EQ(event.top_loops(0).location().function(), "kernel");
}

TEST_F(RequestsTest, WatchOfNothingEndsWithTheReason) {
  grpc::ClientContext context;
  v1::WatchRequest request;
  request.set_id("p-000001");
  const auto person = Person();
  auto stream = person->Watch(&context, request);
  v1::WatchEvent event;
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::NOT_FOUND);
}

TEST_F(RequestsTest, DoctorAsksEveryNode) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::thread answer([&] {
    const auto command = agent.Read();
    ASSERT_TRUE(command.has_value() && command->has_doctor());
    v1::AgentMessage message;
    message.mutable_doctor()->set_request_id(command->doctor().request_id());
    message.mutable_doctor()->add_checks()->set_name("perf_event_paranoid");
    agent.Send(message);
  });
  grpc::ClientContext context;
  v1::DoctorResponse response;
  EXPECT_TRUE(Person()->Doctor(&context, {}, &response).ok());
  answer.join();
  ASSERT_EQ(response.reports_size(), 2);
  EXPECT_EQ(response.reports(0).place(), "perfd");
  EXPECT_EQ(response.reports(1).place(), "a");
  EXPECT_EQ(response.reports(1).checks(0).name(), "perf_event_paranoid");
  for (const auto& check : response.reports(0).checks()) {
    const bool certain = check.name() == "socket" || check.name() == "store";
    EXPECT_TRUE(check.ok() || !certain) << check.found();
  }
}

TEST_F(RequestsTest, ASilentNodeDoesNotHoldTheDoctorUp) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  v1::DoctorResponse response;
  ASSERT_TRUE(Person()->Doctor(&context, {}, &response).ok());
  ASSERT_EQ(response.reports_size(), 2);
  EXPECT_THAT(response.reports(1).checks(0).found(), HasSubstr("no answer"));
}

TEST_F(RequestsTest, HealthFollowsTheStore) {
  EXPECT_EQ(Health(Connect()), kServing);
  ASSERT_TRUE(store_->SetHardLimit(1).ok());
  ASSERT_FALSE(store_->Probe().ok());
  const auto channel = Connect();
  for (int i = 0; i < 100 && Health(channel) != kNotServing; ++i)
    absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(Health(channel), kNotServing);
  ASSERT_TRUE(store_->SetHardLimit(0).ok());
  for (int i = 0; i < 100 && Health(channel) != kServing; ++i)
    absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(Health(channel), kServing);
}

TEST_F(RequestsTest, NodesAreListed) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  v1::AgentMessage beat;
  beat.mutable_heartbeat()->set_resident_bytes(12345);
  agent.Send(beat);
  v1::ListNodesResponse nodes;
  for (int i = 0; i < 100; ++i) {
    grpc::ClientContext context;
    ASSERT_TRUE(Person()->ListNodes(&context, {}, &nodes).ok());
    if (nodes.nodes(0).heartbeat().resident_bytes() != 0) break;
    absl::SleepFor(absl::Milliseconds(20));
  }
  ASSERT_EQ(nodes.nodes_size(), 1);
  EXPECT_TRUE(nodes.nodes(0).connected());
  EXPECT_EQ(nodes.nodes(0).heartbeat().resident_bytes(), 12345u);
}

}  // namespace
}  // namespace perfd::daemon
