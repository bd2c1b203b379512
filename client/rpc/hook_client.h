// client/rpc/hook_client.h - what schedulers ask of perfd, in model values.
//
// Errors   as DaemonClient; every call is bounded by its timeout.
// Threads  thread-bound.
#ifndef CLIENT_RPC_HOOK_CLIENT_H_
#define CLIENT_RPC_HOOK_CLIENT_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/model/hook.h"

namespace perfd::client {

class HookClient {
 public:
  virtual ~HookClient() = default;

  // A job begins, or has ended.
  virtual absl::StatusOr<HookAnswer> Begin(const HookJob& job, absl::Duration timeout) = 0;
  virtual absl::StatusOr<HookAnswer> End(const HookJob& job, absl::Duration timeout) = 0;
  // The latest decisions about jobs.
  virtual absl::StatusOr<HookOverview> List(int limit) = 0;
};

}  // namespace perfd::client

#endif  // CLIENT_RPC_HOOK_CLIENT_H_
