#include "daemon/service/doors/grpc_host.h"

#include <grpcpp/health_check_service_interface.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

constexpr int kMostProbes = 3;  // while the rules change
constexpr absl::Duration kWatch = absl::Seconds(1);
constexpr absl::Duration kEvictWithin = absl::Seconds(1);
// Somewhat over what is answered, so that the call alone is refused, in its words.
constexpr uint32_t kMostQuestion = ProfilerCalls::kMostSubmitBytes + (64 << 10);
constexpr absl::Duration kSayWithin = absl::Seconds(1);

// Who could end perfd anyway: what they send goes to gRPC without a detour.
bool IsOurs(uint32_t uid) {
  return uid == 0 || uid == ::geteuid();
}

}  // namespace

GrpcHost::GrpcHost(Pipeline& pipeline, IdentityOptions identity, Accounts& accounts, TlsGate& tls,
                   Limits& limits)
    : identities_(std::move(identity), accounts),
      shared_(pipeline, tls, limits),
      connections_(limits),
      relay_(limits, {.sizes = {.most = Door::kMaxMessageBytes, .most_question = kMostQuestion},
                      .is_trusted = [this](uint32_t uid) {
                        return identities_.FromUidAlone(uid).full_agent;
                      }}) {
  grpc::EnableDefaultHealthCheckService(true);
  watchdog_ = std::thread([this] { Watchdog(); });
}

GrpcHost::~GrpcHost() {
  Shutdown(absl::Seconds(1));
}

void GrpcHost::RenewLimits() {
  MutexLock lock(&mutex_);
  if (tls_door_ != nullptr) tls_door_->SizeMemory();
}

std::shared_ptr<Door> GrpcHost::EvictOldest(bool unknown) {
  auto oldest = doors_.end();
  bool oldest_idle = false;
  for (auto it = doors_.begin(); it != doors_.end(); ++it) {
    Door& door = *it->second;
    const bool idle = connections_.Of(it->first) == 0;
    if (door.full_agent() || (unknown && (!idle || !door.unknown().held()))) continue;
    if (oldest == doors_.end() || idle > oldest_idle ||
        (idle == oldest_idle && door.used() < oldest->second->used())) {
      oldest = it;
      oldest_idle = idle;
    }
  }
  if (oldest == doors_.end()) return nullptr;
  std::shared_ptr<Door> door = std::move(oldest->second);
  doors_.erase(oldest);
  return door;
}

absl::Status GrpcHost::MakeRoom(uint32_t uid, bool known, Share* place,
                                std::shared_ptr<Door>* evicted) {
  if (!known) {
    std::optional<Share> taken = shared_.limits.TryAcquire(Limit::kUnknownUsers, uid);
    if (!taken.has_value()) *evicted = EvictOldest(/*unknown=*/true);
    if (*evicted != nullptr) (*evicted)->unknown() = {};
    if (!taken.has_value()) {
      ASSIGN_OR_RETURN(taken, shared_.limits.Acquire(Limit::kUnknownUsers, uid));
    }
    *place = *std::move(taken);
  }
  if (*evicted != nullptr || doors_.size() < kMaxUids) return absl::OkStatus();
  *evicted = EvictOldest(/*unknown=*/false);
  return *evicted != nullptr ? absl::OkStatus()
                             : absl::UnavailableError("all servers are of agents");
}

std::shared_ptr<Door> GrpcHost::DoorOf(uint32_t uid) {
  std::shared_ptr<Door>& door = doors_[uid];
  if (door == nullptr) {
    door = std::make_shared<Door>(shared_);
    door->KnowCertain(identities_.FromUidAlone(uid), /*administrators=*/true);
    const bool open = door->Open(
        [self = std::weak_ptr<Door>(door)](
            const grpc::CallbackServerContext&) -> absl::StatusOr<Peer> {
          const std::shared_ptr<Door> own = self.lock();
          if (own == nullptr) return absl::UnavailableError("the connection is closing");
          return own->peer();
        },
        /*tls=*/nullptr);
    if (!open) {
      doors_.erase(uid);
      return nullptr;
    }
  }
  door->Use(absl::Now());
  return door;
}

// Null when the uid must be looked up first.
std::shared_ptr<Door> GrpcHost::KnownDoor(uint32_t uid) {
  MutexLock lock(&mutex_);
  const auto it = doors_.find(uid);
  const absl::Time now = absl::Now();
  if (it == doors_.end() || !it->second->IsKnown(now)) return nullptr;
  it->second->Use(now);
  return it->second;
}

// The door of the uid, who is looked up for it; null: the daemon stops, or there can be no door.
std::shared_ptr<Door> GrpcHost::Introduce(uint32_t uid) {
  for (int i = 0; i < kMostProbes && !Stopping(); ++i) {
    const Identities::Known known = identities_.LookUp(uid);
    std::shared_ptr<Door> evicted;
    std::shared_ptr<Door> door;
    absl::Status refused;
    {
      MutexLock lock(&mutex_);
      if (stopping_) break;
      if (known.generation != identities_.generation()) continue;  // the rules are others by now
      Share place;
      if (!doors_.contains(uid)) {
        // While the databases do not answer everybody counts as known.
        refused = MakeRoom(uid, known.named || !known.sure, &place, &evicted);
        if (!refused.ok()) LogClosed(absl::StrCat("uid ", uid), refused);
      }
      if (refused.ok()) door = DoorOf(uid);
      if (door != nullptr) door->Know(known);
      if (door != nullptr && place.held()) door->unknown() = std::move(place);
    }
    if (evicted != nullptr) End(std::move(evicted));
    if (door == nullptr && refused.ok()) LogError("no gRPC server could be made for uid {}", uid);
    return door;
  }
  return nullptr;
}

void GrpcHost::LogClosed(const std::string& whose, const absl::Status& why) {
  if (absl::IsResourceExhausted(why)) return;  // a limit, which logs itself
  if (const auto more = closed_.Next(absl::GetCurrentTimeNanos()); more.has_value())
    LogWarning("a connection of {} is closed: {} ({} more since the last such line)", whose,
               Text(why), *more);
}

void GrpcHost::End(std::shared_ptr<Door> evicted) {
  const auto end = [evicted = std::move(evicted)] {
    evicted->Shutdown(absl::Now() + kEvictWithin);
  };
  if (!introductions_.Post(end, end)) end();
}

bool GrpcHost::Stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

void GrpcHost::Adopt(UniqueFd connection, uint32_t uid) {
  if (const absl::Status taken =
          connections_.Add(connection.get(), uid, identities_.FromUidAlone(uid).full_agent);
      !taken.ok()) {
    MutexLock lock(&mutex_);
    return LogClosed(absl::StrCat("uid ", uid), taken);
  }
  if (!IsOurs(uid)) {
    absl::StatusOr<UniqueFd> carried = relay_.Carry(std::move(connection), uid);
    if (!carried.ok()) {
      MutexLock lock(&mutex_);
      return LogClosed(absl::StrCat("uid ", uid), carried.status());
    }
    connection = *std::move(carried);
  }
  if (const std::shared_ptr<Door> door = KnownDoor(uid); door != nullptr)
    return door->Enter(std::move(connection));
  // Shared: a task can be copied. What nobody has entered is ended for both sides: Connections has a second descriptor.
  struct Waiting {
    explicit Waiting(UniqueFd waiting) : fd(std::move(waiting)) {}
    ~Waiting() {
      if (fd.valid()) ::shutdown(fd.get(), SHUT_RDWR);
    }
    UniqueFd fd;
  };
  auto waiting = std::make_shared<Waiting>(std::move(connection));
  const auto introduce = [this, waiting, uid] {
    const std::shared_ptr<Door> door = Introduce(uid);
    if (door != nullptr) door->Enter(std::move(waiting->fd));
  };
  if (uid == 0) return introduce();  // nobody is asked who that is
  if (!introductions_.Post(introduce) && !introductions_.closed())
    LogWarning("a connection of uid {} is closed: too many wait to be looked up", uid);
}

absl::StatusOr<std::string> GrpcHost::ListenTls(const TlsOptions& options) {
  RETURN_IF_ERROR(shared_.tls.Open(options));
  ASSIGN_OR_RETURN(std::unique_ptr<TcpDoor> tcp, TcpDoor::Open(options.listen));
  auto door = std::make_shared<Door>(shared_);
  const bool open = door->Open(
      [this](const grpc::CallbackServerContext& context) -> absl::StatusOr<Peer> {
        ASSIGN_OR_RETURN(std::shared_ptr<PeerCertificate> certificate,
                         shared_.tls.Admit(context.auth_context().get()));
        ASSIGN_OR_RETURN(Peer peer, identities_.FromCertificate(certificate->facts().uris));
        peer.certificate = std::move(certificate);
        return peer;
      },
      shared_.tls.Credentials());
  if (!open) return absl::InternalError("no gRPC server could be made for TLS");
  MutexLock lock(&mutex_);
  tls_door_ = std::move(door);
  tcp_door_ = std::move(tcp);
  RETURN_IF_ERROR(tcp_door_->Serve([this](UniqueFd connection, const std::string& network) {
    AdoptTcp(std::move(connection), network);
  }));
  return tcp_door_->address();
}

void GrpcHost::AdoptTcp(UniqueFd connection, const std::string& network) {
  const absl::Status taken = connections_.Add(connection.get(), network);
  std::shared_ptr<Door> door;
  {
    MutexLock lock(&mutex_);
    if (!taken.ok()) return LogClosed(network, taken);
    door = tls_door_;
  }
  // Not under the lock: what gRPC does then is its business. The door is there as long as connections come (Shutdown).
  if (door != nullptr) door->Enter(std::move(connection));
}

absl::Status GrpcHost::RenewTls(const TlsOptions& options) {
  absl::Status status = shared_.tls.RenewCertificates(options);
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
    door->KnowCertain(identities_.FromUidAlone(uid), other_group);
  }
  for (const auto& [uid, door] : doors) {
    if (Stopping()) return;
    const Identities::Known known = identities_.LookUp(uid);
    MutexLock lock(&mutex_);
    door->Know(known);
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
    for (const auto& door : doors) door->SetServing(healthy);
    shared_.streams.Check(shared_.tls);
    shared_.tls.WarnOfExpiry(absl::Now());
  }
}

void GrpcHost::Shutdown(absl::Duration within) {
  std::unique_ptr<TcpDoor> tcp;  // ended first, and without the lock, which its thread takes
  {
    MutexLock lock(&mutex_);
    tcp = std::move(tcp_door_);
  }
  if (tcp != nullptr) tcp->Stop();
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
  const absl::Time deadline = absl::Now() + within;
  const absl::Status reason = absl::UnavailableError("perfd is stopping");
  shared_.streams.CloseAll(reason);
  shared_.watches.End(reason);
  shared_.pipeline.EndDoctor();
  shared_.hooks.Close(within / 2);
  shared_.queries.Close(within / 2);
  introductions_.Close(absl::ZeroDuration());
  for (const auto& door : doors) door->Shutdown(deadline);
  doors.clear();
  relay_.Close(kSayWithin);
}

size_t GrpcHost::servers() {
  MutexLock lock(&mutex_);
  return doors_.size();
}

}  // namespace perfd::daemon
