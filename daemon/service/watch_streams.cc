#include "daemon/service/watch_streams.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/mutex.h"
#include "core/wire/wire.h"
#include "daemon/service/rpc_status.h"

namespace perfd::daemon {
namespace {

constexpr absl::Duration kProbe = absl::Milliseconds(200);
constexpr absl::Duration kAtLeast = absl::Seconds(1);

// What makes an event worth sending before its second is over.
struct Gist {
  ProfileState state = ProfileState::kPending;
  size_t notices = 0;
  uint64_t samples = 0;
  std::vector<NodeProgress::Phase> phases;

  explicit Gist(const ProfileStatus& status)
      : state(status.state), notices(status.notices.size()), samples(status.samples) {
    for (const NodeProgress& node : status.nodes) phases.push_back(node.phase);
  }
  bool operator==(const Gist&) const = default;
};

}  // namespace

// Everything that starts an operation runs on the watch thread, without a lock: gRPC may call back at once.
class WatchStreams::Stream final : public grpc::ServerWriteReactor<v1::WatchEvent> {
 public:
  Stream(absl::StatusOr<Peer> peer, std::string id, int32_t top_loops)
      : peer_(std::move(peer)), id_(std::move(id)), top_loops_(top_loops) {
    HandOver();
  }

  void Hold(std::shared_ptr<Stream> self) {
    MutexLock lock(&mutex_);
    self_ = std::move(self);
  }

  // True when there is nothing more to do for it.
  bool Step(Pipeline& pipeline, TlsGate& tls) {
    {
      MutexLock lock(&mutex_);
      if (writing_) return false;
      if (ended_.has_value() && !error_.has_value()) error_ = ended_;
      if (cancelled_ || !peer_.ok() || last_written_ || ended_.has_value()) end_ = true;
    }
    if (!end_) {
      const absl::Status holds = tls.Recheck(peer_->certificate.get());
      end_ = !holds.ok();
      if (end_) error_ = holds;
    }
    if (end_) {
      Finish(ToRpc(error_.has_value() ? *error_ : peer_.status()));
      return true;
    }
    Poll(pipeline);
    return false;
  }

  void End(const absl::Status& reason) {
    MutexLock lock(&mutex_);
    if (!last_written_) ended_ = reason;
  }

  void OnWriteDone(bool ok) override {
    TakeOver();
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) cancelled_ = true;
  }

  void OnCancel() override {
    TakeOver();
    MutexLock lock(&mutex_);
    cancelled_ = true;
  }

  void OnDone() override {
    TakeOver();
    std::shared_ptr<Stream> self;  // the list may have dropped it already
    MutexLock lock(&mutex_);
    self = std::move(self_);
  }

 private:
  void Poll(Pipeline& pipeline) {
    const absl::Time now = absl::Now();
    const absl::StatusOr<ProfileStatus> status = pipeline.Get(peer_->requester, id_);
    if (!status.ok()) return Fail(status.status());
    Gist gist(*status);
    if (gist_.has_value() && *gist_ == gist && now - sent_ < kAtLeast) return;
    const absl::StatusOr<WatchView> view = pipeline.Watch(peer_->requester, id_, top_loops_);
    if (!view.ok()) return Fail(view.status());
    id_ = view->status.id;  // "last" must not move on to a newer profile
    gist_ = std::move(gist);
    sent_ = now;
    event_.Clear();
    *event_.mutable_status() = wire::ToProto(view->status);
    for (const ReportRow& row : view->top_loops) *event_.add_top_loops() = wire::ToProto(row);
    {
      MutexLock lock(&mutex_);
      writing_ = true;
      last_written_ = IsFinal(view->status.state);
    }
    StartWrite(&event_);
  }

  void Fail(const absl::Status& error) {
    error_ = error;
    MutexLock lock(&mutex_);
    last_written_ = true;
  }

  const absl::StatusOr<Peer> peer_;
  std::string id_;
  const int32_t top_loops_;
  v1::WatchEvent event_;
  std::optional<Gist> gist_;
  std::optional<absl::Status> error_;
  absl::Time sent_ = absl::InfinitePast();
  bool end_ = false;
  std::shared_ptr<Stream> self_ ABSL_GUARDED_BY(mutex_);  // until OnDone
  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool last_written_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
};

WatchStreams::WatchStreams(Pipeline& pipeline, TlsGate& tls, Limits& limits)
    : pipeline_(pipeline), tls_(tls), limits_(limits), thread_([this] { Run(); }) {}

WatchStreams::~WatchStreams() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    woken_ = true;
  }
  thread_.join();
}

grpc::ServerWriteReactor<v1::WatchEvent>* WatchStreams::Begin(absl::StatusOr<Peer> peer,
                                                              std::string id, int32_t top_loops) {
  Places places;
  if (peer.ok()) {
    absl::StatusOr<Share> own = limits_.Acquire(Limit::kWatchesPerUser, peer->requester);
    absl::StatusOr<Share> any =
        own.ok() ? limits_.Acquire(Limit::kWatches, peer->requester) : own.status();
    if (any.ok())
      places = {*std::move(own), *std::move(any)};
    else
      peer = any.status();
  }
  MutexLock lock(&mutex_);
  auto stream = std::make_shared<Stream>(std::move(peer), std::move(id), top_loops);
  stream->Hold(stream);
  if (ended_.has_value()) stream->End(*ended_);
  Stream* reactor = stream.get();
  streams_.push_back({std::move(stream), std::move(places)});
  woken_ = true;
  return reactor;
}

void WatchStreams::End(const absl::Status& reason) {
  MutexLock lock(&mutex_);
  ended_ = reason;
  woken_ = true;
  for (const Standing& standing : streams_) standing.stream->End(reason);
}

void WatchStreams::Run() {
  pthread_setname_np(pthread_self(), "perfd-watch");
  while (true) {
    std::vector<std::shared_ptr<Stream>> streams;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &WatchStreams::HasWork));
      mutex_.AwaitWithTimeout(absl::Condition(&woken_), kProbe);
      if (stopping_) return;
      woken_ = false;
      for (const Standing& standing : streams_) streams.push_back(standing.stream);
    }
    std::vector<std::shared_ptr<Stream>> over;
    for (const auto& stream : streams) {
      if (stream->Step(pipeline_, tls_)) over.push_back(stream);
    }
    MutexLock lock(&mutex_);
    std::erase_if(streams_, [&](const Standing& standing) {
      return std::find(over.begin(), over.end(), standing.stream) != over.end();
    });
  }
}

}  // namespace perfd::daemon
