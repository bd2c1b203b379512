// tests/unit/daemon/service/watcher.h - a call of Watch that stands, or was refused.
#ifndef TESTS_UNIT_DAEMON_SERVICE_WATCHER_H_
#define TESTS_UNIT_DAEMON_SERVICE_WATCHER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "perfd/v1/profiler.grpc.pb.h"

namespace perfd::daemon {

struct Watcher {
  explicit Watcher(std::unique_ptr<v1::Profiler::Stub> person, const std::string& id)
      : stub(std::move(person)) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::WatchRequest request;
    request.set_id(id);
    reader = stub->Watch(&context, request);
  }
  bool Stands() {
    v1::WatchEvent event;
    return stands = reader->Read(&event);
  }
  // Once; when it has not ended by itself it is cancelled.
  grpc::Status End() {
    v1::WatchEvent event;
    if (stands) context.TryCancel();
    while (reader->Read(&event)) {
    }
    grpc::Status status = reader->Finish();
    reader.reset();
    return status;
  }
  ~Watcher() {
    if (reader != nullptr) End();
  }

  bool stands = true;
  std::unique_ptr<v1::Profiler::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::WatchEvent>> reader;
};

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_SERVICE_WATCHER_H_
