#include "client/rpc/watch_stream.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/rpc/convert.h"
#include "client/rpc/rpc_status.h"
#include "core/base/status_macros.h"

namespace perfd::client {
namespace {

// The daemon sends at least one event a second.
constexpr int kSilentSlices = 150;
constexpr auto kSlice = std::chrono::milliseconds(100);

class WatchStream {
 public:
  WatchStream(v1::Profiler::Stub& stub, const WatchStreamRequest& request) : request_(request) {
    v1::WatchRequest message;
    message.set_id(request.id);
    message.set_top_loops(request.top_loops);
    reader_ = stub.AsyncWatch(&context_, message, &queue_, Tag());
  }

  // Every operation must have come back before the queue may go.
  ~WatchStream() {
    context_.TryCancel();
    if (pending_) {
      void* tag = nullptr;
      bool ok = false;
      queue_.Next(&tag, &ok);
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  // True: an operation finished well; false: the stream is over.
  absl::StatusOr<bool> Wait() {
    void* tag = nullptr;
    bool ok = false;
    for (int slice = 0; slice < kSilentSlices; ++slice) {
      RETURN_IF_ERROR(request_.keep_going());
      const auto deadline = std::chrono::system_clock::now() + kSlice;
      if (queue_.AsyncNext(&tag, &ok, deadline) != grpc::CompletionQueue::GOT_EVENT) continue;
      pending_ = false;
      return ok;
    }
    return absl::UnavailableError("the daemon is silent");
  }

  void StartRead(v1::WatchEvent* event) {
    pending_ = true;
    reader_->Read(event, Tag());
  }

  void StartFinish(grpc::Status* status) {
    pending_ = true;
    reader_->Finish(status, Tag());
  }

 private:
  void* Tag() { return this; }  // one operation at a time: one tag is enough

  const WatchStreamRequest& request_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::WatchEvent>> reader_;
  bool pending_ = true;  // the start of the call
};

}  // namespace

absl::Status ReadWatchStream(v1::Profiler::Stub& stub, const WatchStreamRequest& request,
                             const std::function<void(const WatchEvent&)>& on_event,
                             const std::string& address) {
  v1::WatchEvent message;  // outlives the stream: a read may still be writing it
  grpc::Status rpc_status;
  WatchStream stream(stub, request);
  bool final_state = false;
  ASSIGN_OR_RETURN(bool more, stream.Wait());
  while (more) {
    stream.StartRead(&message);
    ASSIGN_OR_RETURN(more, stream.Wait());
    if (!more) break;
    ASSIGN_OR_RETURN(const WatchEvent event, WatchEventFromProto(message));
    on_event(event);
    final_state = IsFinal(event.status.state);
  }
  stream.StartFinish(&rpc_status);
  RETURN_IF_ERROR(stream.Wait().status());
  if (final_state) return absl::OkStatus();
  if (rpc_status.ok())
    return absl::UnavailableError(absl::StrCat("perfd at ", address, " ended the stream early"));
  return FromRpc(rpc_status, address);
}

}  // namespace perfd::client
