#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/version.h"
#include "tests/unit/daemon/service/service_fixture.h"

namespace perfd {
namespace {

using grpc::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;

class AgentStreamTest : public ServiceFixture {};

TEST_F(AgentStreamTest, AProfileFromSubmitToReport) {
  FakeAgent agent(Connect(), "a");
  const auto welcome = agent.Join();
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->stored_sequence(), 0u);
  EXPECT_EQ(welcome->version(), kVersion);
  const auto person = Person();
  std::string id;
  ASSERT_TRUE(Submit(*person, &id).ok());
  const auto start = agent.Read();
  ASSERT_TRUE(start.has_value() && start->has_start());
  EXPECT_EQ(start->start().profile_id(), id);
  EXPECT_EQ(start->start().requester().uid(), ::getuid());
  EXPECT_EQ(start->start().remaining_ns(), 60'000'000'000);
  agent.SendNews(id, v1::NODE_PHASE_SAMPLING, 1);
  for (uint64_t i = 1; i <= 3; ++i) {
    agent.SendWindow(agent.MakeWindow(id, i));
    EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(i));
    EXPECT_EQ(store_->Stream("stream-a")->last, i);  // acknowledged means stored
  }
  agent.SendNews(id, v1::NODE_PHASE_FINISHED, 1, 3);
  ASSERT_TRUE(Await(id, v1::PROFILE_STATE_DONE));
  grpc::ClientContext context;
  v1::GetReportRequest request;
  request.set_id("last");
  v1::Report report;
  ASSERT_TRUE(person->GetReport(&context, request, &report).ok());
  EXPECT_EQ(report.status().samples(), 30u);
  ASSERT_EQ(report.loops_size(), 1);
  EXPECT_EQ(report.loops(0).samples(), 30u);
  EXPECT_EQ(report.loops(0).location().function(), "kernel");
}

TEST_F(AgentStreamTest, DuplicatesAreAcknowledgedAndCountedOnce) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  for (int i = 0; i < 3; ++i) {
    agent.SendWindow(agent.MakeWindow(id, 1));
    EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(1));
  }
  agent.SendNews(id, v1::NODE_PHASE_FINISHED, 1, 1);
  ASSERT_TRUE(Await(id, v1::PROFILE_STATE_DONE));
  EXPECT_EQ(Get(id).samples(), 10u);
  EXPECT_EQ(pipeline_->Figures().windows_duplicate, 2u);
}

TEST_F(AgentStreamTest, AFullStoreAcknowledgesNothing) {
  std::string id;
  {
    FakeAgent agent(Connect(), "a");
    ASSERT_TRUE(agent.Join().has_value());
    ASSERT_TRUE(Submit(*Person(), &id).ok());
    agent.SendWindow(agent.MakeWindow(id, 1));
    EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(1));
    ASSERT_TRUE(store_->SetHardLimit(1).ok());
    v1::Window big = agent.MakeWindow(id, 2);
    for (int i = 0; i < 20'000; ++i) big.add_frame_names(std::string(50, 'f'));
    agent.SendWindow(big);
    EXPECT_TRUE(agent.ReadAcknowledged().empty());
    EXPECT_EQ(agent.End().error_code(), StatusCode::UNAVAILABLE);  // not the window's fault
  }
  FakeAgent refused(Connect(), "a");
  EXPECT_FALSE(refused.Join().has_value());
  EXPECT_EQ(refused.End().error_code(), StatusCode::UNAVAILABLE);
  ASSERT_TRUE(store_->SetHardLimit(0).ok());
  ASSERT_TRUE(store_->Probe().ok());
  FakeAgent again(Connect(), "a");
  const auto welcome = again.Join();
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->stored_sequence(), 1u);
  again.SendWindow(again.MakeWindow(id, 2));
  EXPECT_THAT(again.ReadAcknowledged(), ElementsAre(2));
}

TEST_F(AgentStreamTest, ARestartInTheMiddleLosesNothing) {
  std::string id;
  {
    FakeAgent agent(Connect(), "a");
    ASSERT_TRUE(agent.Join().has_value());
    ASSERT_TRUE(Submit(*Person(), &id).ok());
    agent.SendWindow(agent.MakeWindow(id, 1));
    EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(1));
    StopDaemon();
  }
  StartDaemon();
  EXPECT_EQ(Get(id).samples(), 10u);
  FakeAgent agent(Connect(), "a");
  EXPECT_EQ(agent.Join()->stored_sequence(), 1u);
  const auto start = agent.Read();
  ASSERT_TRUE(start.has_value() && start->has_start());
  EXPECT_EQ(start->start().remaining_ns(), 55'000'000'000);
  agent.SendWindow(agent.MakeWindow(id, 1));  // its acknowledgement might have been lost
  agent.SendWindow(agent.MakeWindow(id, 2));
  agent.SendNews(id, v1::NODE_PHASE_FINISHED, 1, 2);
  ASSERT_TRUE(Await(id, v1::PROFILE_STATE_DONE));
  EXPECT_EQ(Get(id).samples(), 20u);
}

TEST_F(AgentStreamTest, LateWindowsOfAPartialProfileEnterItsReport) {
  FakeAgent a(Connect(), "a");
  ASSERT_TRUE(a.Join().has_value());
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  a.SendWindow(a.MakeWindow(id, 1));
  a.SendWindow(a.MakeWindow(id, 3));  // 2 is missing
  a.SendNews(id, v1::NODE_PHASE_FINISHED, 1, 3);
  ASSERT_TRUE(Await(id, v1::PROFILE_STATE_PARTIAL));
  EXPECT_EQ(Get(id).samples(), 20u);
  a.SendWindow(a.MakeWindow(id, 2));
  for (int i = 0; i < 500 && Get(id).samples() != 30; ++i) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(Get(id).samples(), 30u);
}

v1::Window Spoilt(v1::Window window) {
  window.mutable_rows()->set_location(0, 7);  // outside its dictionary
  return window;
}

uint64_t Dropped(Pipeline& pipeline, const std::string& reason) {
  for (const auto& [name, count] : pipeline.Figures().windows_dropped) {
    if (name == reason) return count;
  }
  return 0;
}

TEST_F(AgentStreamTest, AWindowThatIsRefusedDoesNotBlockTheNode) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  v1::Window stranger = agent.MakeWindow(id, 3);
  stranger.set_stream_id("stream-of-another");
  const std::vector<v1::Window> windows = {agent.MakeWindow(id, 1),
                                           Spoilt(agent.MakeWindow(id, 2)),
                                           stranger,
                                           agent.MakeWindow("p-000099", 4),
                                           agent.MakeWindow(id, (uint64_t{1} << 62) + 1),
                                           agent.MakeWindow(id, 5)};
  for (const v1::Window& window : windows) {
    agent.SendWindow(window);
    EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(window.sequence()));
  }
  EXPECT_EQ(store_->Stream("stream-a")->last, 5u);
  EXPECT_EQ(store_->Stream("stream-a")->missing, 0u);
  EXPECT_EQ(store_->Stream("stream-of-another")->last, 0u);
  EXPECT_EQ(Dropped(*pipeline_, "invalid"), 2u);
  EXPECT_EQ(Dropped(*pipeline_, "foreign"), 1u);
  EXPECT_EQ(Dropped(*pipeline_, "unknown_profile"), 1u);
  agent.SendNews(id, v1::NODE_PHASE_FINISHED, 1, 5);
  ASSERT_TRUE(Await(id, v1::PROFILE_STATE_PARTIAL));
  const v1::ProfileStatus status = Get(id);
  EXPECT_EQ(status.samples(), 20u);
  EXPECT_THAT(status.ShortDebugString(), HasSubstr("perfd refused windows of node a"));
  EXPECT_THAT(status.ShortDebugString(), testing::Not(HasSubstr("never arrived")));
}

TEST_F(AgentStreamTest, ARefusedLastWindowEndsTheProfile) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  agent.SendWindow(agent.MakeWindow(id, 1));
  agent.SendNews(id, v1::NODE_PHASE_FINISHED, 1, 2);
  agent.SendWindow(Spoilt(agent.MakeWindow(id, 2)));
  EXPECT_TRUE(Await(id, v1::PROFILE_STATE_PARTIAL));
}

TEST_F(AgentStreamTest, WindowsOfARenamedNodeAreStored) {
  FakeAgent other(Connect(), "b");
  ASSERT_TRUE(other.Join().has_value());
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  FakeAgent agent(Connect(), "new");
  v1::Register hello = agent.Hello();
  hello.set_stream_id("stream-old");
  agent.SendRegister(hello);
  const FakeAgent old(Connect(), "old");  // makes the windows it would have sent
  v1::Window window = old.MakeWindow(id, 1);
  agent.SendWindow(window);
  EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(1));
  EXPECT_EQ(pipeline_->Figures().windows_stored, 1u);
  window = old.MakeWindow(id, 2);
  window.set_node("b");  // that one is alive and has a stream of its own
  agent.SendWindow(window);
  EXPECT_THAT(agent.ReadAcknowledged(), ElementsAre(2));
  EXPECT_EQ(pipeline_->Figures().windows_stored, 1u);
  EXPECT_EQ(Dropped(*pipeline_, "foreign"), 1u);
}

TEST_F(AgentStreamTest, WindowsOfAnEndedProfileAreNoLossOfTheNext) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  std::string first;
  std::string second;
  ASSERT_TRUE(Submit(*Person(), &first).ok());
  agent.SendWindow(agent.MakeWindow(first, 1));
  agent.SendNews(first, v1::NODE_PHASE_FINISHED, 1, 1);
  ASSERT_TRUE(Await(first, v1::PROFILE_STATE_DONE));
  ASSERT_TRUE(Submit(*Person(), &second).ok());
  agent.SendWindow(agent.MakeWindow(second, 2));
  for (uint64_t i = 3; i <= 5; ++i) agent.SendWindow(agent.MakeWindow(first, i));
  agent.SendWindow(agent.MakeWindow(second, 6));
  agent.SendNews(second, v1::NODE_PHASE_FINISHED, 1, 6);
  EXPECT_TRUE(Await(second, v1::PROFILE_STATE_DONE));
  EXPECT_EQ(Dropped(*pipeline_, "profile_over"), 3u);
}

TEST_F(AgentStreamTest, NewsOfAProfileThatIsOverIsAnsweredWithStop) {
  FakeAgent agent(Connect(), "a");
  ASSERT_TRUE(agent.Join().has_value());
  agent.SendNews("p-000099", v1::NODE_PHASE_SAMPLING, 1);
  const auto stop = agent.Read();
  ASSERT_TRUE(stop.has_value() && stop->has_stop());
  EXPECT_EQ(stop->stop().profile_id(), "p-000099");
}

class BusyDaemonTest : public ServiceFixture {
 protected:
  BusyDaemonTest() { ingest_limits_ = {.windows = 1, .bytes = 1, .most_windows = 21}; }
};

TEST_F(BusyDaemonTest, AgentsWaitInsteadOfBeingThrownOut) {
  constexpr int kAgents = 20;
  constexpr uint64_t kWindows = 5;
  std::vector<std::unique_ptr<FakeAgent>> agents;
  for (int i = 0; i < kAgents; ++i) {
    agents.push_back(std::make_unique<FakeAgent>(Connect(), "n" + std::to_string(i)));
    ASSERT_TRUE(agents.back()->Join().has_value());
  }
  std::string id;
  ASSERT_TRUE(Submit(*Person(), &id).ok());
  for (uint64_t sequence = 1; sequence <= kWindows; ++sequence) {
    for (const auto& agent : agents) agent->SendWindow(agent->MakeWindow(id, sequence));
  }
  for (const auto& agent : agents) {
    uint64_t acknowledged = 0;
    while (acknowledged < kWindows) {
      const size_t more = agent->ReadAcknowledged().size();
      ASSERT_GT(more, 0u) << agent->End().error_message();
      acknowledged += more;
    }
  }
  EXPECT_EQ(pipeline_->Figures().windows_stored, kAgents * kWindows);
  EXPECT_EQ(Dropped(*pipeline_, "queue_full"), 0u);
}

TEST_F(AgentStreamTest, AnotherProtocolIsRefusedWithBothVersions) {
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

TEST_F(AgentStreamTest, SenselessMessagesEndTheStream) {
  using Spoil = std::function<void(FakeAgent&)>;
  const std::vector<std::pair<const char*, Spoil>> cases = {
      {"empty", [](FakeAgent& agent) { agent.Send({}); }},
      {"second register", [](FakeAgent& agent) { agent.SendRegister(agent.Hello()); }},
      {"window without a sequence",
       [](FakeAgent& agent) { agent.SendWindow(agent.MakeWindow("p-000001", 0)); }},
      {"unspecified phase",
       [](FakeAgent& agent) { agent.SendNews("p-000001", v1::NODE_PHASE_UNSPECIFIED, 1); }},
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
  absl::Notification done_;
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

std::string HelloBytes() {
  v1::AgentMessage hello;
  hello.mutable_register_()->set_node("a");
  hello.mutable_register_()->set_protocol_version(kProtocolVersion);
  hello.mutable_register_()->set_stream_id("stream-a");
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

TEST_F(AgentStreamTest, BytesThatAreNoMessageAreMalformed) {
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

TEST_F(AgentStreamTest, OversizedMessagesAreRefusedWithTheLimitAndCounted) {
  constexpr size_t kLimit = AgentStream::kMaxMessageBytes;
  for (const auto& messages :
       {std::vector<std::string>{Padded(kLimit + 1)},
        std::vector<std::string>{HelloBytes(), Padded(kLimit + 1)},
        std::vector<std::string>{HelloBytes(), Padded(GrpcHost::kMaxMessageBytes)}}) {
    ASSERT_GT(messages.back().size(), kLimit);
    const grpc::Status status = SendRaw(Connect(), messages);
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr("over the limit of 16777216"));
  }
  EXPECT_EQ(pipeline_->Figures().streams_malformed, 3u);
  // What gRPC does not even hand over.
  for (const size_t bytes : {size_t{GrpcHost::kMaxMessageBytes} + 1, 2 * kLimit + 1}) {
    const grpc::Status status = SendRaw(Connect(), {HelloBytes(), Padded(bytes)});
    EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  }
}

TEST_F(AgentStreamTest, AMessageAtTheLimitIsRead) {
  const std::string largest = Padded(AgentStream::kMaxMessageBytes);
  ASSERT_EQ(largest.size(), AgentStream::kMaxMessageBytes);
  const grpc::Status status = SendRaw(Connect(), {HelloBytes(), largest, HelloBytes()});
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("only the first, must be Register"));
}

TEST_F(AgentStreamTest, TheSameAgentReplacesItselfAnotherDoesNot) {
  FakeAgent first(Connect(), "a");
  ASSERT_TRUE(first.Join().has_value());
  FakeAgent second(Connect(), "a");
  ASSERT_TRUE(second.Join().has_value());
  EXPECT_EQ(first.End().error_code(), StatusCode::ABORTED);
  if (::getuid() != 0) GTEST_SKIP() << "the rest needs root";
  FakeAgent stranger(Connect(kNobody), "a");
  v1::Register hello = stranger.Hello();
  hello.set_user_mode(true);
  stranger.SendRegister(hello);
  EXPECT_EQ(stranger.End().error_code(), StatusCode::ALREADY_EXISTS);
}

TEST_F(AgentStreamTest, AnOrdinaryUsersAgentServesItsUserOnly) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  FakeAgent pretender(Connect(kNobody), "b");
  pretender.SendRegister(pretender.Hello());
  EXPECT_EQ(pretender.End().error_code(), StatusCode::PERMISSION_DENIED);
  FakeAgent agent(Connect(kNobody), "a");
  v1::Register hello = agent.Hello();
  hello.set_user_mode(true);
  hello.set_uid(0);  // a lie: the kernel knows better
  agent.SendRegister(hello);
  ASSERT_TRUE(agent.Read().has_value());
  std::string id;
  EXPECT_EQ(Submit(*Person(), &id).error_code(), StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Submit(*Person(kNobody), &id).ok());
}

}  // namespace
}  // namespace perfd
