// The scheduler hook over real sockets: who may call it.
#include "daemon/service/hook_calls.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "core/wire/hook_wire.h"
#include "tests/unit/daemon/service/service_fixture.h"

namespace perfd::daemon {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

Peer PersonOf(uint32_t uid, bool privileged) {
  Peer peer;
  peer.requester = {uid, "someone", privileged};
  return peer;
}

TEST(HookCallerTest, RootAdministratorsAndNodesMayCall) {
  EXPECT_EQ(HookCallerOf(PersonOf(0, true))->node, "");
  EXPECT_EQ(HookCallerOf(PersonOf(0, true))->person, "someone");  // for the log
  EXPECT_EQ(HookCallerOf(PersonOf(1000, true))->node, "");
  EXPECT_EQ(HookCallerOf(PersonOf(1000, false)).status().code(),
            absl::StatusCode::kPermissionDenied);
  Peer node;
  node.requester = {0, "agent:n1", false};
  node.person = false;
  node.full_agent = true;
  node.agent_node = "n1";
  EXPECT_EQ(HookCallerOf(node)->node, "n1");
  EXPECT_EQ(HookCallerOf(node)->person, "");
}

class HookCallsTest : public ServiceFixture {
 protected:
  grpc::Status Notify(bool begins, std::optional<uint32_t> uid, const HookJob& job,
                      HookAnswer* answer = nullptr) {
    const auto stub = v1::Hook::NewStub(Connect(uid));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::HookRequest request;
    *request.mutable_job() = wire::ToProto(job);
    v1::HookResponse response;
    const grpc::Status status = begins ? stub->Begin(&context, request, &response)
                                       : stub->End(&context, request, &response);
    if (status.ok() && answer != nullptr) *answer = *wire::FromProto(response);
    return status;
  }
  static HookJob Job() {
    HookJob job;
    job.job = "4711";
    job.uid = 1000;
    return job;
  }
};

TEST_F(HookCallsTest, WithoutAPolicyThePrologIsToldSo) {
  HookAnswer answer;
  ASSERT_TRUE(Notify(true, std::nullopt, Job(), &answer).ok());
  EXPECT_EQ(answer.decision, HookDecision::kNone);
  EXPECT_THAT(answer.reason, HasSubstr("no policy"));
  ASSERT_TRUE(Notify(false, std::nullopt, Job(), &answer).ok());
  EXPECT_EQ(answer.decision, HookDecision::kNone);
}

TEST_F(HookCallsTest, AnOrdinaryUserIsRefused) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to be someone else";
  const grpc::Status status = Notify(true, kNobody, Job());
  EXPECT_EQ(status.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(status.error_message(), HasSubstr("may not speak for the scheduler"));
  // But may look.
  grpc::ClientContext context;
  v1::HookListResponse list;
  EXPECT_TRUE(v1::Hook::NewStub(Connect(kNobody))->List(&context, {}, &list).ok());
}

TEST_F(HookCallsTest, NonsenseIsRefused) {
  HookJob job = Job();
  job.job.clear();
  EXPECT_EQ(Notify(true, std::nullopt, job).error_code(), StatusCode::INVALID_ARGUMENT);
  job.job = std::string(256, '1');
  EXPECT_EQ(Notify(true, std::nullopt, job).error_code(), StatusCode::INVALID_ARGUMENT);
  job.job = std::string(255, '1');
  EXPECT_TRUE(Notify(true, std::nullopt, job).ok());
  // The user's own word is no reason to refuse a job.
  job.preference = HookPreference::kOptIn;
  job.preset = std::string(100'000, 'x');
  EXPECT_TRUE(Notify(true, std::nullopt, job).ok());
}

}  // namespace
}  // namespace perfd::daemon
