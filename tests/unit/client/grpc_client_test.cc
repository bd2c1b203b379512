// The gRPC client against a real server on a Unix socket: answers, errors, a restart in the middle of a watch.
#include <gmock/gmock.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>

#include "client/rpc/grpc_daemon_client.h"
#include "core/base/version.h"
#include "core/wire/wire.h"
#include "tests/unit/client/sample_report.h"

namespace perfd::client {
namespace {

using ::testing::HasSubstr;

class FakeService final : public v1::Profiler::Service {
 public:
  grpc::Status GetVersion(grpc::ServerContext*, const v1::GetVersionRequest*,
                          v1::GetVersionResponse* response) override {
    response->set_version("1.2.3");
    response->set_protocol_version(protocol);
    return grpc::Status::OK;
  }
  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest* request,
                      v1::SubmitResponse* response) override {
    client_node = request->client_node();
    *response->mutable_status() = wire::ToProto(SampleReport().status);
    *response->mutable_status()->mutable_spec() = request->spec();
    return grpc::Status::OK;
  }
  grpc::Status GetReport(grpc::ServerContext*, const v1::GetReportRequest* request,
                         v1::Report* response) override {
    if (request->id() != "last") return {grpc::StatusCode::NOT_FOUND, "no such profile"};
    *response = wire::ToProto(SampleReport());
    return grpc::Status::OK;
  }
  // One event; then the end, a final event, or silence until the client goes.
  grpc::Status Watch(grpc::ServerContext* context, const v1::WatchRequest* request,
                     grpc::ServerWriter<v1::WatchEvent>* writer) override {
    watched_id = request->id();
    v1::WatchEvent event;
    ProfileStatus status = SampleReport().status;
    status.state = ProfileState::kSampling;
    *event.mutable_status() = wire::ToProto(status);
    writer->Write(event);
    if (finish) {
      event.mutable_status()->set_state(v1::PROFILE_STATE_DONE);
      writer->Write(event);
      return grpc::Status::OK;
    }
    while (!context->IsCancelled() && !stopping) usleep(10'000);
    return {grpc::StatusCode::UNAVAILABLE, "going down"};
  }

  int protocol = kProtocolVersion;
  std::string client_node;
  std::string watched_id;
  std::atomic<bool> finish{true};
  std::atomic<bool> stopping{false};
};

class GrpcClientTest : public testing::Test {
 protected:
  GrpcClientTest()
      : path_(testing::TempDir() + "/perfctl-test-" + std::to_string(getpid()) + ".sock") {
    Start();
  }
  ~GrpcClientTest() override { Stop(); }

  void Start() {
    service_ = std::make_unique<FakeService>();
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path_, grpc::InsecureServerCredentials());
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Stop() {
    if (server_ == nullptr) return;
    service_->stopping = true;
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
    server_->Wait();
    server_.reset();
    std::filesystem::remove(path_);
  }

  std::unique_ptr<GrpcDaemonClient> Connect() {
    DialOptions options;
    options.address = "unix:" + path_;
    auto client = GrpcDaemonClient::Connect(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  std::string path_;
  std::unique_ptr<FakeService> service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(GrpcClientTest, CarriesRequestsAndErrors) {
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  ProfileSpec spec;
  spec.target.pids = {1, 2};
  const auto status = client->Submit(spec);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->spec, spec);
  EXPECT_NE(service_->client_node, "");
  const auto report = client->GetReport("last");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(*report, SampleReport());
  EXPECT_EQ(client->GetReport("x").status(), absl::NotFoundError("no such profile"));
  EXPECT_EQ(client->ListNodes().status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(GrpcClientTest, AnotherProtocolIsRefused) {
  service_->protocol = kProtocolVersion + 1;
  DialOptions options;
  options.address = "unix:" + path_;
  EXPECT_TRUE(absl::IsFailedPrecondition(GrpcDaemonClient::Connect(options).status()));
  EXPECT_TRUE(GrpcDaemonClient::ConnectAny(options).ok());
}

TEST_F(GrpcClientTest, WatchEndsWithTheFinalState) {
  const auto client = Connect();
  std::vector<ProfileState> states;
  const auto status = client->Watch(
      {.id = "last"}, [&](const WatchEvent& event) { states.push_back(event.status.state); });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(states, (std::vector<ProfileState>{ProfileState::kSampling, ProfileState::kDone}));
}

TEST_F(GrpcClientTest, WatchStopsOnInterruptAndTimeout) {
  service_->finish = false;
  const auto client = Connect();
  bool seen = false;
  const auto see = [&seen](const WatchEvent&) { seen = true; };
  WatchOptions options{.id = "last", .stop = [&seen] { return seen; }};
  EXPECT_TRUE(absl::IsCancelled(client->Watch(options, see)));
  EXPECT_TRUE(seen);
  WatchOptions brief{.id = "last", .timeout = absl::Milliseconds(300)};
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->Watch(brief, see)));
}

TEST_F(GrpcClientTest, WatchSurvivesARestartOfTheDaemon) {
  service_->finish = false;
  const auto client = Connect();
  std::atomic<int> events{0};
  absl::Status result = absl::UnknownError("not over");
  std::thread watcher([&] {
    result = client->Watch({.id = "last", .timeout = absl::Seconds(20)},
                           [&](const WatchEvent&) { ++events; });
  });
  for (int i = 0; i < 500 && events == 0; ++i) usleep(10'000);
  EXPECT_EQ(events, 1);
  Stop();
  Start();
  watcher.join();
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_EQ(events, 3);
  EXPECT_EQ(service_->watched_id, "p-000042");  // no longer "last"
}

TEST_F(GrpcClientTest, NobodyListening) {
  Stop();
  DialOptions options;
  options.address = "unix:" + path_;
  const auto client = GrpcDaemonClient::Connect(options);
  EXPECT_TRUE(absl::IsUnavailable(client.status()));
  EXPECT_THAT(std::string(client.status().message()), HasSubstr(path_));
}

}  // namespace
}  // namespace perfd::client
