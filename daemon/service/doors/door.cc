#include "daemon/service/doors/door.h"

#include <fcntl.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>

#include <utility>

#include "absl/time/clock.h"

namespace perfd::daemon {
namespace {

constexpr absl::Duration kLookUpAgain = absl::Seconds(30);     // group membership may change
constexpr absl::Duration kLookUpAgainSoon = absl::Seconds(2);  // it could not be told
constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kMinPingMs = 5'000;
constexpr int kMaxCallsPerConnection = 128;
constexpr int kHandshakeMs = 10'000;
void Configure(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(Door::kMaxMessageBytes);
  builder.SetMaxSendMessageSize(-1);  // reports of large jobs; the client sets its own limit
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  // gRPC has no bound on what a message may become: 16 KiB may be 16 MiB, and 16 MiB 16 GiB.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP})
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
}

}  // namespace

bool Door::Open(PeerSource source, std::shared_ptr<grpc::ServerCredentials> tls) {
  agents_ = std::make_unique<AgentCalls>(shared_, source);
  profiler_ = std::make_unique<ProfilerCalls>(shared_, source);
  hooks_ = std::make_unique<HookCalls>(shared_, std::move(source));
  grpc::ServerBuilder builder;
  Configure(builder);
  if (tls != nullptr) {
    using From = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    tls_ = builder.experimental().AddExternalConnectionAcceptor(From::FROM_FD, std::move(tls));
    SizeMemory();
    builder.SetResourceQuota(memory_);
  } else {
    // What a call may send before anybody reads it stays what it is at first: 64 KiB.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  }
  builder.RegisterService(agents_.get());
  builder.RegisterService(profiler_.get());
  builder.RegisterService(hooks_.get());
  HandOver();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return false;
  SetServing(shared_.pipeline.Healthy());
  return true;
}

void Door::SizeMemory() {
  if (tls_ == nullptr) return;
  memory_.Resize(static_cast<size_t>(shared_.limits.Value(Limit::kTlsMemory)) << 20);
}

void Door::Know(const Identities::Known& known) {
  known_until_ = absl::Now() + (known.sure ? kLookUpAgain : kLookUpAgainSoon);
  MutexLock lock(&mutex_);
  peer_ = known.peer;
}

void Door::KnowCertain(const Peer& certain, bool administrators) {
  MutexLock lock(&mutex_);
  peer_.full_agent = certain.full_agent;
  if (administrators) peer_.requester.privileged = certain.requester.privileged;
}

Peer Door::peer() const {
  MutexLock lock(&mutex_);
  return peer_;
}

void Door::Enter(UniqueFd connection) {
  if (tls_ != nullptr) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection.Release();
    return tls_->HandleNewConnection(&parameters);
  }
  const int flags = ::fcntl(connection.get(), F_GETFL);
  ::fcntl(connection.get(), F_SETFL, flags | O_NONBLOCK);
  grpc::AddInsecureChannelFromFd(server_.get(), connection.Release());
}

void Door::SetServing(bool healthy) {
  server_->GetHealthCheckService()->SetServingStatus(healthy);
}

void Door::Shutdown(absl::Time deadline) {
  server_->Shutdown(absl::ToChronoTime(deadline));
}

}  // namespace perfd::daemon
