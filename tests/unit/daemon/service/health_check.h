// Asks gRPC's standard health service without its generated code: the request is empty, the answer's first field is
// the status (grpc/health/v1/health.proto).
#ifndef TESTS_UNIT_DAEMON_SERVICE_HEALTH_CHECK_H_
#define TESTS_UNIT_DAEMON_SERVICE_HEALTH_CHECK_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <vector>

#include "core/base/notification.h"

namespace perfd::daemon {

inline constexpr int kServing = 1;
inline constexpr int kNotServing = 2;

// -1: no answer.
inline int Health(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  const grpc::Slice empty("");
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer answer;
  Notification done;
  bool ok = false;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request, &answer,
                 [&](const grpc::Status& status) {
                   ok = status.ok();
                   done.Notify();
                 });
  done.WaitForNotification();
  std::vector<grpc::Slice> slices;
  if (!ok || !answer.Dump(&slices).ok() || slices.empty() || slices[0].size() != 2) return -1;
  return slices[0].begin()[1];
}

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_SERVICE_HEALTH_CHECK_H_
