#include "daemon/service/grpc_host.h"

#include <fcntl.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <pthread.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

constexpr absl::Duration kLookUpAgain = absl::Seconds(30);     // group membership may change
constexpr absl::Duration kLookUpAgainSoon = absl::Seconds(2);  // it could not be told
constexpr int kMostProbes = 3;                                 // while the rules change
constexpr absl::Duration kWatch = absl::Seconds(1);
constexpr absl::Duration kEvictWithin = absl::Seconds(1);
constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kMinPingMs = 5'000;
constexpr int kMaxCallsPerConnection = 128;

void Configure(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(GrpcHost::kMaxMessageBytes);
  builder.SetMaxSendMessageSize(-1);  // reports of large jobs; the client sets its own limit
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsPerConnection);
  // Two daemons on one port would share its connections unseen.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace

GrpcHost::GrpcHost(Pipeline& pipeline, IdentityOptions identity, Accounts& accounts, TlsGate& tls)
    : identities_(std::move(identity), accounts), shared_(pipeline, tls) {
  grpc::EnableDefaultHealthCheckService(true);
  watchdog_ = std::thread([this] { Watchdog(); });
}

GrpcHost::~GrpcHost() {
  Shutdown(absl::Seconds(1));
}

bool GrpcHost::Open(Door* door, PeerSource source, const TlsOptions* tls, int* port) {
  door->agents = std::make_unique<AgentCalls>(shared_, source);
  door->profiler = std::make_unique<ProfilerCalls>(shared_, source);
  door->hooks = std::make_unique<HookCalls>(shared_, std::move(source));
  grpc::ServerBuilder builder;
  Configure(builder);
  if (tls != nullptr) builder.AddListeningPort(tls->listen, shared_.tls.Credentials(), port);
  builder.RegisterService(door->agents.get());
  builder.RegisterService(door->profiler.get());
  builder.RegisterService(door->hooks.get());
  HandOver();
  door->server = builder.BuildAndStart();
  if (door->server == nullptr) return false;
  door->server->GetHealthCheckService()->SetServingStatus(shared_.pipeline.Healthy());
  return true;
}

std::shared_ptr<GrpcHost::Door> GrpcHost::EvictOldest() {
  auto oldest = doors_.begin();
  for (auto it = doors_.begin(); it != doors_.end(); ++it) {
    if (it->second->used < oldest->second->used) oldest = it;
  }
  std::shared_ptr<Door> door = std::move(oldest->second);
  doors_.erase(oldest);
  return door;
}

std::shared_ptr<GrpcHost::Door> GrpcHost::DoorOf(uint32_t uid) {
  std::shared_ptr<Door>& door = doors_[uid];
  if (door == nullptr) {
    door = std::make_shared<Door>();
    const bool open = Open(
        door.get(),
        [self = std::weak_ptr<Door>(door)](
            const grpc::CallbackServerContext&) -> absl::StatusOr<Peer> {
          const std::shared_ptr<Door> own = self.lock();
          if (own == nullptr) return absl::UnavailableError("the connection is closing");
          MutexLock lock(&own->mutex);
          return own->peer;
        },
        nullptr, nullptr);
    if (!open) {
      doors_.erase(uid);
      return nullptr;
    }
  }
  door->used = absl::Now();
  return door;
}

// Null when the uid must be looked up first.
std::shared_ptr<GrpcHost::Door> GrpcHost::KnownDoor(uint32_t uid) {
  MutexLock lock(&mutex_);
  const auto it = doors_.find(uid);
  const absl::Time now = absl::Now();
  if (it == doors_.end() || now > it->second->known_until) return nullptr;
  it->second->used = now;
  return it->second;
}

// The door of the uid, who is looked up for it; null: the daemon stops, or there can be no door.
std::shared_ptr<GrpcHost::Door> GrpcHost::Introduce(uint32_t uid) {
  for (int i = 0; i < kMostProbes && !Stopping(); ++i) {
    const Identities::Known known = identities_.LookUp(uid);
    std::shared_ptr<Door> evicted;
    std::shared_ptr<Door> door;
    {
      MutexLock lock(&mutex_);
      if (stopping_) break;
      if (known.generation != identities_.generation()) continue;  // the rules are others by now
      if (doors_.size() >= kMaxUids && !doors_.contains(uid)) evicted = EvictOldest();
      door = DoorOf(uid);
      if (door != nullptr) Know(*door, known);
    }
    if (evicted != nullptr) End(std::move(evicted));
    if (door == nullptr) LogError("no gRPC server could be made for uid {}", uid);
    return door;
  }
  return nullptr;
}

void GrpcHost::Know(Door& door, const Identities::Known& known) {
  door.known_until = absl::Now() + (known.sure ? kLookUpAgain : kLookUpAgainSoon);
  MutexLock lock(&door.mutex);
  door.peer = known.peer;
}

void GrpcHost::End(std::shared_ptr<Door> evicted) {
  const auto end = [evicted = std::move(evicted)] {
    evicted->server->Shutdown(absl::ToChronoTime(absl::Now() + kEvictWithin));
  };
  if (!introductions_.Post(end, end)) end();
}

bool GrpcHost::Stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

void GrpcHost::Adopt(UniqueFd connection, uint32_t uid) {
  const auto enter = [](Door& door, UniqueFd fd) {
    const int flags = ::fcntl(fd.get(), F_GETFL);
    ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
    grpc::AddInsecureChannelFromFd(door.server.get(), fd.Release());
  };
  if (const std::shared_ptr<Door> door = KnownDoor(uid); door != nullptr)
    return enter(*door, std::move(connection));
  // Shared: a task can be copied.
  auto waiting = std::make_shared<UniqueFd>(std::move(connection));
  const auto introduce = [this, enter, waiting, uid] {
    const std::shared_ptr<Door> door = Introduce(uid);
    if (door != nullptr) enter(*door, std::move(*waiting));
  };
  if (uid == 0) return introduce();  // nobody is asked who that is
  if (!introductions_.Post(introduce) && !introductions_.closed())
    LogWarning("a connection of uid {} is closed: too many wait to be looked up", uid);
}

absl::StatusOr<std::string> GrpcHost::ListenTls(const TlsOptions& options) {
  RETURN_IF_ERROR(shared_.tls.Open(options));
  int port = 0;
  auto door = std::make_shared<Door>();
  const bool open = Open(
      door.get(),
      [this](const grpc::CallbackServerContext& context) -> absl::StatusOr<Peer> {
        ASSIGN_OR_RETURN(std::shared_ptr<PeerCertificate> certificate,
                         shared_.tls.Admit(context.auth_context().get()));
        ASSIGN_OR_RETURN(Peer peer, identities_.FromCertificate(certificate->facts().uris));
        peer.certificate = std::move(certificate);
        return peer;
      },
      &options, &port);
  if (!open || port == 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", options.listen,
                                               ": the port is taken or the address is not ours"));
  }
  MutexLock lock(&mutex_);
  tls_door_ = std::move(door);
  return absl::StrCat(options.listen.substr(0, options.listen.rfind(':') + 1), port);
}

absl::Status GrpcHost::RenewTls(const TlsOptions& options) {
  const absl::Status status = shared_.tls.RenewCertificates(options);
  shared_.streams.Check(shared_.tls);
  return status;
}

void GrpcHost::SetIdentity(IdentityOptions identity) {
  const bool other_group = identities_.Set(std::move(identity));
  std::vector<std::pair<uint32_t, std::shared_ptr<Door>>> doors;
  {
    MutexLock lock(&mutex_);
    doors.assign(doors_.begin(), doors_.end());
  }
  for (const auto& [uid, door] : doors) {
    const Peer certain = identities_.FromUidAlone(uid);
    MutexLock lock(&door->mutex);
    door->peer.full_agent = certain.full_agent;
    if (other_group) door->peer.requester.privileged = certain.requester.privileged;
  }
  for (const auto& [uid, door] : doors) {
    if (Stopping()) return;
    const Identities::Known known = identities_.LookUp(uid);
    MutexLock lock(&mutex_);
    Know(*door, known);
  }
}

void GrpcHost::Watchdog() {
  pthread_setname_np(pthread_self(), "perfd-health");
  while (true) {
    std::vector<std::shared_ptr<Door>> doors;
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kWatch)) return;
      for (const auto& [uid, door] : doors_) doors.push_back(door);
      if (tls_door_ != nullptr) doors.push_back(tls_door_);
    }
    const bool healthy = shared_.pipeline.Healthy();
    for (const auto& door : doors) door->server->GetHealthCheckService()->SetServingStatus(healthy);
    shared_.streams.Check(shared_.tls);
    shared_.tls.WarnOfExpiry(absl::Now());
  }
}

void GrpcHost::Shutdown(absl::Duration within) {
  std::vector<std::shared_ptr<Door>> doors;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (auto& [uid, door] : doors_) doors.push_back(std::move(door));
    doors_.clear();
    if (tls_door_ != nullptr) doors.push_back(std::move(tls_door_));
    tls_door_ = nullptr;
  }
  if (watchdog_.joinable()) watchdog_.join();
  const auto deadline = absl::ToChronoTime(absl::Now() + within);
  const absl::Status reason = absl::UnavailableError("perfd is stopping");
  shared_.streams.CloseAll(reason);
  shared_.watches.End(reason);
  shared_.pipeline.EndDoctor();
  shared_.hooks.Close(within / 2);
  shared_.queries.Close(within / 2);
  introductions_.Close(absl::ZeroDuration());
  for (const auto& door : doors) door->server->Shutdown(deadline);
}

size_t GrpcHost::servers() {
  MutexLock lock(&mutex_);
  return doors_.size();
}

}  // namespace perfd::daemon
