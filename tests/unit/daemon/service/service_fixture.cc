#include "tests/unit/daemon/service/service_fixture.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/version.h"
#include "core/wire/wire.h"

namespace perfd::daemon {

FakeAgent::FakeAgent(std::shared_ptr<grpc::Channel> channel, std::string node)
    : channel_(std::move(channel)),
      node_(std::move(node)),
      stub_(v1::AgentService::NewStub(channel_)) {
  context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  stream_ = stub_->Connect(&context_);
}

FakeAgent::~FakeAgent() {
  (void)End();
}

v1::Register FakeAgent::Hello() const {
  v1::Register hello;
  hello.set_node(node_);
  hello.set_version("test");
  hello.set_protocol_version(kProtocolVersion);
  hello.set_stream_id("stream-" + node_);
  hello.set_instance_id("1");
  return hello;
}

bool FakeAgent::SendRegister(const v1::Register& hello) {
  v1::AgentMessage message;
  *message.mutable_register_() = hello;
  return Send(message);
}

bool FakeAgent::SendUpdate(const std::string& profile, v1::NodePhase phase, int ranks,
                           uint64_t last_sequence) {
  v1::AgentMessage message;
  v1::SessionUpdate& update = *message.mutable_session();
  update.set_profile_id(profile);
  update.set_phase(phase);
  for (int i = 0; i < ranks; ++i) update.add_ranks()->set_rank(i);
  update.set_last_sequence(last_sequence);
  return Send(message);
}

bool FakeAgent::SendWindow(const v1::Window& window) {
  v1::AgentMessage message;
  *message.mutable_window() = window;
  return Send(message);
}

std::optional<v1::DaemonMessage> FakeAgent::Read() {
  v1::DaemonMessage message;
  if (!stream_->Read(&message)) return std::nullopt;
  return message;
}

std::optional<v1::Welcome> FakeAgent::Join() {
  SendRegister(Hello());
  const auto message = Read();
  if (!message.has_value() || !message->has_welcome()) return std::nullopt;
  return message->welcome();
}

std::vector<uint64_t> FakeAgent::ReadAcknowledged() {
  while (const auto message = Read()) {
    if (!message->has_acknowledge()) continue;
    return {message->acknowledge().sequences().begin(), message->acknowledge().sequences().end()};
  }
  return {};
}

grpc::Status FakeAgent::End() {
  if (ended_) return grpc::Status::OK;
  ended_ = true;
  stream_->WritesDone();
  while (Read().has_value()) {
  }
  return stream_->Finish();
}

v1::Window FakeAgent::MakeWindow(const std::string& profile, uint64_t sequence,
                                 uint64_t samples) const {
  Window window;
  window.profile_id = profile;
  window.node = node_;
  window.stream_id = "stream-" + node_;
  window.sequence = sequence;
  const auto count =
      static_cast<int64_t>(sequence % 1'000'000);  // numbers may be as large as they like
  window.start_unix_ns = 1'700'000'000'000'000'000 + count * 5'000'000'000;
  window.duration_ns = 5'000'000'000;
  window.setup = {"cpu-clock", 199, false, "per-thread", Provenance::kSampled};
  window.ranks = {{node_, 100, 1000, 7, 0, 1, RankSource::kPmix, "job", "app"}};
  window.threads = {{0, 100, 100}};
  CodeLocation location;
  location.category = Category::kLoop;
  location.module_id = "abcdef";
  location.module_path = "/bin/app";
  location.function = "kernel";
  location.function_low = 0x1000;
  location.loop = LoopFacts{};
  location.loop->header = 0x1010;
  location.loop->low = 0x1010;
  location.loop->high = 0x1040;
  location.loop->source = {"app.c", 10, 12};
  location.source = location.loop->source;
  window.locations = {location};
  window.rows = {{0, 0, samples, samples * 5'000'000}};
  window.accounting.seen = window.accounting.kept = samples;
  return wire::ToProto(window);
}

ServiceFixture::ServiceFixture() {
  identity_.tls_admins = {"root"};
  std::string name = (std::filesystem::temp_directory_path() / "perfd-service-XXXXXX").string();
  if (::mkdtemp(name.data()) != nullptr) folder_ = name;
  ::chmod(folder_.c_str(), 0755);  // other users must reach the socket
}

ServiceFixture::~ServiceFixture() {
  StopDaemon();
  std::filesystem::remove_all(folder_);
}

void ServiceFixture::StartDaemon() {
  StoreOptions options;
  options.directory = folder_ + "/store";
  store_ = *SqliteStore::Open(std::move(options));
  door_ = *UnixDoor::Open(folder_ + "/run/perfd.sock");
  PipelineOptions pipeline_options;
  pipeline_options.ingest = ingest_limits_;
  pipeline_options.limits = shared_limits_;
  pipeline_options.report_url = [](const std::string& id) { return "http://pages/" + id; };
  pipeline_options.extra_checks = [this] { return door_->Checks(); };
  pipeline_ = std::make_unique<Pipeline>(*store_, clock_, std::move(pipeline_options));
  EXPECT_TRUE(pipeline_->Restore().ok());
  identity_.own_uid = ::getuid();
  host_ = std::make_unique<GrpcHost>(*pipeline_, identity_, *accounts_, tls_, limits_);
  pipeline_->Run();
  EXPECT_TRUE(
      door_->Serve([this](UniqueFd fd, uint32_t uid) { host_->Adopt(std::move(fd), uid); }).ok());
}

void ServiceFixture::StopDaemon() {
  if (door_ != nullptr) door_->Stop();
  if (host_ != nullptr) host_->Shutdown(absl::Seconds(2));
  if (pipeline_ != nullptr) pipeline_->Stop();
  host_.reset();
  pipeline_.reset();
  door_.reset();
  store_.reset();
}

int ServiceFixture::ConnectSocket(std::optional<uint32_t> uid) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder_ + "/run/perfd.sock";
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // The kernel notes the credentials of the connecting thread; the raw call changes this thread only.
  const uint32_t own = ::geteuid();
  EXPECT_EQ(::syscall(SYS_setresuid, -1, uid.value_or(own), -1), 0);
  const int connected =
      ::connect(fd, static_cast<sockaddr*>(static_cast<void*>(&address)), sizeof(address));
  EXPECT_EQ(::syscall(SYS_setresuid, -1, own, -1), 0);
  EXPECT_EQ(connected, 0) << std::strerror(errno);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return fd;
}

std::shared_ptr<grpc::Channel> ServiceFixture::Connect(std::optional<uint32_t> uid) {
  return grpc::CreateInsecureChannelFromFd("perfd", ConnectSocket(uid));
}

std::unique_ptr<v1::Profiler::Stub> ServiceFixture::Person(std::optional<uint32_t> uid) {
  return v1::Profiler::NewStub(Connect(uid));
}

grpc::Status ServiceFixture::Submit(v1::Profiler::Stub& stub, std::string* id,
                                    const std::string& command) {
  ProfileSpec spec = FixedLengthSpec();
  spec.name = "test";
  spec.target.command = command;
  v1::SubmitRequest request;
  *request.mutable_spec() = wire::ToProto(spec);
  request.set_protocol_version(kProtocolVersion);
  grpc::ClientContext context;
  v1::SubmitResponse response;
  grpc::Status status = stub.Submit(&context, request, &response);
  *id = response.status().id();
  return status;
}

void ServiceFixture::SetLimit(Limit limit, int64_t value) {
  limit_values_[static_cast<size_t>(limit)] = value;
  limits_.Set(limit_values_);
}

v1::ProfileStatus ServiceFixture::Get(const std::string& id) {
  const auto stub = Person();
  grpc::ClientContext context;
  v1::GetProfileRequest request;
  request.set_id(id);
  v1::ProfileStatus status;
  const grpc::Status got = stub->GetProfile(&context, request, &status);
  EXPECT_TRUE(got.ok()) << got.error_message();
  return status;
}

bool ServiceFixture::Await(const std::string& id, v1::ProfileState state) {
  for (int i = 0; i < 500; ++i) {
    if (Get(id).state() == state) return true;
    absl::SleepFor(absl::Milliseconds(20));
  }
  ADD_FAILURE() << Get(id).ShortDebugString();
  return false;
}

}  // namespace perfd::daemon
