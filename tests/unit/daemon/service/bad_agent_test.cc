// Agents that speak another protocol, say what makes no sense, or send bytes that are no message.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/notification.h"
#include "core/base/version.h"
#include "tests/unit/daemon/service/service_fixture.h"

namespace perfd::daemon {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;

class BadAgentTest : public ServiceFixture {};

TEST_F(BadAgentTest, AnotherProtocolIsRefusedWithBothVersions) {
  FakeAgent agent(Connect(), "a");
  v1::Register hello = agent.Hello();
  hello.set_version("9.9");
  hello.set_protocol_version(kProtocolVersion + 1);
  agent.SendRegister(hello);
  const grpc::Status end = agent.End();
  EXPECT_EQ(end.error_code(), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(end.error_message(), HasSubstr("9.9"));
  EXPECT_THAT(end.error_message(), HasSubstr(kVersion));
}

TEST_F(BadAgentTest, SenselessMessagesEndTheStream) {
  using Spoil = std::function<void(FakeAgent&)>;
  const std::vector<std::pair<const char*, Spoil>> cases = {
      {"empty", [](FakeAgent& agent) { agent.Send({}); }},
      {"second register", [](FakeAgent& agent) { agent.SendRegister(agent.Hello()); }},
      {"window without a sequence",
       [](FakeAgent& agent) { agent.SendWindow(agent.MakeWindow("p-000001", 0)); }},
      {"unspecified phase",
       [](FakeAgent& agent) { agent.SendUpdate("p-000001", v1::NODE_PHASE_UNSPECIFIED, 1); }},
  };
  for (const auto& [name, spoil] : cases) {
    SCOPED_TRACE(name);
    FakeAgent agent(Connect(), "a");
    ASSERT_TRUE(agent.Join().has_value());
    spoil(agent);
    EXPECT_EQ(agent.End().error_code(), StatusCode::INVALID_ARGUMENT);
  }
  FakeAgent window_first(Connect(), "b");
  window_first.SendWindow(window_first.MakeWindow("p-000001", 1));
  EXPECT_EQ(window_first.End().error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_GE(pipeline_->Figures().streams_malformed, 4u);
}

// Sends messages of raw bytes, without closing its side, and keeps the final status.
class RawCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit RawCall(const std::vector<std::string>& messages) {
    for (const std::string& bytes : messages) {
      const grpc::Slice slice(bytes);
      messages_.emplace_back(&slice, 1);
    }
  }
  void Begin() {
    StartWrite(&messages_[0]);
    StartRead(&answer_);
    StartCall();
  }
  void OnWriteDone(bool ok) override {
    if (ok && ++sent_ < messages_.size()) StartWrite(&messages_[sent_]);
  }
  void OnReadDone(bool ok) override {
    if (ok) StartRead(&answer_);
  }
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    done_.Notify();
  }
  grpc::Status Wait() {
    done_.WaitForNotificationWithTimeout(absl::Seconds(10));
    return status_;
  }

 private:
  std::vector<grpc::ByteBuffer> messages_;
  size_t sent_ = 0;
  grpc::ByteBuffer answer_;
  grpc::Status status_;
  Notification done_;
};

grpc::Status SendRaw(const std::shared_ptr<grpc::Channel>& channel,
                     const std::vector<std::string>& messages) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  RawCall call(messages);
  stub.PrepareBidiStreamingCall(&context, "/perfd.v1.AgentService/Connect", {}, &call);
  call.Begin();
  return call.Wait();
}

std::string HelloBytes(bool user_mode = false) {
  v1::AgentMessage hello;
  hello.mutable_register_()->set_node("a");
  hello.mutable_register_()->set_protocol_version(kProtocolVersion);
  hello.mutable_register_()->set_stream_id("stream-a");
  hello.mutable_register_()->set_user_mode(user_mode);
  return hello.SerializeAsString();
}

// A heartbeat of so many bytes: its unknown field 15 is filled.
std::string Padded(size_t bytes) {
  const auto varint = [](size_t value) {
    std::string text;
    for (; value >= 128; value >>= 7) text += static_cast<char>(value | 128);
    return text + static_cast<char>(value);
  };
  constexpr size_t kHeads = 1 + 4 + 1 + 4;  // two tags, two lengths of four bytes: 2 MiB to 256 MiB
  const size_t inner = bytes - kHeads;
  return "\x12" + varint(inner + 5) + "\x7a" + varint(inner) + std::string(inner, 'x');
}

TEST_F(BadAgentTest, BytesThatAreNoMessageAreMalformed) {
  const std::string garbage = "\x0a\xff\xff\xff\xff\x0fgarbage";
  for (const auto& messages :
       {std::vector<std::string>{garbage}, std::vector<std::string>{HelloBytes(), garbage}}) {
    const grpc::Status status = SendRaw(Connect(), messages);
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("cannot be parsed"));
  }
  EXPECT_EQ(pipeline_->Figures().streams_malformed, 2u);
  EXPECT_EQ(Dropped(*pipeline_, "malformed"), 2u);
}

TEST_F(BadAgentTest, OversizedMessagesAreRefusedWithTheLimitAndCounted) {
  constexpr size_t kLimit = AgentStream::kMaxMessageBytes;
  for (const auto& messages :
       {std::vector<std::string>{Padded(kLimit + 1)},
        std::vector<std::string>{HelloBytes(), Padded(kLimit + 1)},
        std::vector<std::string>{HelloBytes(), Padded(Door::kMaxMessageBytes)}}) {
    ASSERT_GT(messages.back().size(), kLimit);
    const grpc::Status status = SendRaw(Connect(), messages);
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("over the limit of 16777216"));
  }
  EXPECT_EQ(pipeline_->Figures().streams_malformed, 3u);
  // What gRPC does not even hand over.
  for (const size_t bytes : {size_t{Door::kMaxMessageBytes} + 1, 2 * kLimit + 1}) {
    const grpc::Status status = SendRaw(Connect(), {HelloBytes(), Padded(bytes)});
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  }
}

TEST_F(BadAgentTest, OfAUsersMessagesTheRelayTakesNoneThatIsTooLarge) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root to be another user";
  for (const size_t bytes : {size_t{400'000}, size_t{Door::kMaxMessageBytes} + 1}) {
    const grpc::Status status = SendRaw(Connect(30001), {Padded(bytes)});
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("over the limit of 327680"));
  }
  for (const auto& [bytes, words] :
       {std::pair{AgentStream::kMaxMessageBytes, "must be Register"},
        std::pair{size_t{Door::kMaxMessageBytes} + 1, "over the limit of 20971520"}}) {
    FakeAgent agent(Connect(30001), "a");
    v1::Register hello = agent.Hello();
    hello.set_user_mode(true);
    agent.SendRegister(hello);
    ASSERT_TRUE(agent.Read().has_value()) << "welcome";
    v1::AgentMessage message;
    ASSERT_TRUE(message.ParseFromString(Padded(bytes)));
    EXPECT_TRUE(agent.Send(message));
    agent.SendRegister(hello);
    EXPECT_THAT(agent.End().error_message(), HasSubstr(words));
  }
}

// Requests are kept until they are answered.
TEST_F(BadAgentTest, LargeQuestionsAreRefused) {
  const auto person = Person();
  for (const size_t bytes : {size_t{60'000}, size_t{70'000}}) {
    grpc::ClientContext context;
    v1::GetProfileRequest request;
    request.set_id(std::string(bytes, 'x'));
    v1::ProfileStatus profile;
    const grpc::Status status = person->GetProfile(&context, request, &profile);
    EXPECT_EQ(status.error_code() == StatusCode::RESOURCE_EXHAUSTED, bytes > 65536)
        << status.error_message();
  }
}

// A few KB of them may become gigabytes.
TEST_F(BadAgentTest, CompressedMessagesAreTakenFromNobody) {
  std::vector<std::optional<uint32_t>> peers = {std::nullopt};
  if (::getuid() == 0) peers.push_back(30001);
  for (const auto& peer : peers) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    v1::GetProfileRequest request;
    request.set_id(std::string(4000, 'x'));
    v1::ProfileStatus profile;
    const auto person = v1::Profiler::NewStub(Connect(peer));
    const grpc::Status status = person->GetProfile(&context, request, &profile);
    EXPECT_TRUE(status.error_code() == StatusCode::UNIMPLEMENTED ||
                status.error_code() == StatusCode::INVALID_ARGUMENT)
        << status.error_code() << " " << status.error_message();
    EXPECT_THAT(status.error_message(), testing::ContainsRegex("ompress"));
  }
}

TEST_F(BadAgentTest, AMessageAtTheLimitIsRead) {
  const std::string largest = Padded(AgentStream::kMaxMessageBytes);
  ASSERT_EQ(largest.size(), AgentStream::kMaxMessageBytes);
  const grpc::Status status = SendRaw(Connect(), {HelloBytes(), largest, HelloBytes()});
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("only the first, must be Register"));
}

}  // namespace
}  // namespace perfd::daemon
