// daemon/service/placed_answer.h - the answer to one question, with what it holds of its user's limits.
//
// Shape    Send ends the call. The question's place is given back at once, the answer's room when gRPC has sent it, or the call has ended: an
//          answer that nobody reads stays in memory.
// Limits   Limit::kAnswerBytesPerUser.
// Threads  Send once, on any thread. It deletes itself.
// Source   grpcpp/support/server_callback.h: ServerUnaryReactor, OnDone.
#ifndef DAEMON_SERVICE_PLACED_ANSWER_H_
#define DAEMON_SERVICE_PLACED_ANSWER_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/model/identity.h"
#include "daemon/limits/limits.h"
#include "daemon/service/rpc_status.h"

namespace perfd::daemon {

class PlacedAnswer final : public grpc::ServerUnaryReactor {
 public:
  // `response` is gRPC's, until the call is over; `limits` outlives it.
  PlacedAnswer(Limits& limits, google::protobuf::MessageLite& response)
      : limits_(limits), response_(response) {}

  // Of the user who asks.
  void Hold(Share place) { place_ = std::move(place); }
  // The response, where the status is OK.
  void Send(const Requester& requester, absl::Status status) {
    if (status.ok()) {
      // One that is larger than all of the limit has it alone.
      const int64_t bytes = std::min(static_cast<int64_t>(response_.ByteSizeLong()) + kCallBytes,
                                     limits_.Bytes(Limit::kAnswerBytesPerUser));
      absl::StatusOr<Share> room = limits_.Acquire(Limit::kAnswerBytesPerUser, requester, bytes);
      status = room.status();
      if (room.ok()) room_ = *std::move(room);
    }
    if (!status.ok()) response_.Clear();
    place_ = {};  // who has the answer may ask the next
    HandOver();
    Finish(ToRpc(status));
  }
  void OnDone() override {
    TakeOver();
    delete this;
  }

 private:
  static constexpr int64_t kCallBytes = 4096;  // what a call takes beside its answer

  ~PlacedAnswer() override = default;

  Limits& limits_;
  google::protobuf::MessageLite& response_;
  Share place_;
  Share room_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_SERVICE_PLACED_ANSWER_H_
