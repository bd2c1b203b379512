#include <algorithm>
#include <utility>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "daemon/service/call_services.h"

namespace perfd::daemon {

bool StreamList::Add(std::shared_ptr<AgentStream> stream) {
  MutexLock lock(&mutex_);
  if (streams_.size() >= kMaxStreams) return false;
  streams_.push_back(std::move(stream));
  return true;
}

void StreamList::Check(TlsGate& tls) {
  std::vector<std::shared_ptr<AgentStream>> streams;
  {
    MutexLock lock(&mutex_);
    std::erase_if(streams_, [](const auto& stream) { return stream->done(); });
    streams = streams_;
  }
  const int64_t now_ns = SystemClock().MonotonicNs();
  for (const auto& stream : streams) stream->Check(tls, now_ns);
}

void StreamList::CloseAll(const absl::Status& reason) {
  std::vector<std::shared_ptr<AgentStream>> streams;
  {
    MutexLock lock(&mutex_);
    streams.swap(streams_);
  }
  for (const auto& stream : streams) stream->Close(reason);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* AgentCalls::Connect(
    grpc::CallbackServerContext* context) {
  TakeOver();
  std::shared_ptr<AgentStream> stream =
      AgentStream::Begin(peer_(*context), shared_.pipeline, shared_.pump);
  AgentStream* reactor = stream.get();
  if (!shared_.streams.Add(std::move(stream)))
    reactor->Close(absl::ResourceExhaustedError("too many agents"));
  return reactor;
}

}  // namespace perfd::daemon
