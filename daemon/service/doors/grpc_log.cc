#include "daemon/service/doors/grpc_log.h"

#include <grpc/support/log.h>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "daemon/limits/peer_log.h"

namespace perfd::daemon {
namespace {

// A kind is a place in gRPC's code. Called from any thread.
void LogOfGrpc(gpr_log_func_args* said) {
  static PeerLog& lines = *new PeerLog;
  const auto more =
      lines.Next(absl::StrCat(said->file, ":", said->line), SystemClock().MonotonicNs());
  if (!more.has_value()) return;
  const auto level =
      said->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kInfo;
  LogLine(level, absl::StrCat("gRPC: ", said->message, LeftOutText(*more)));
}

}  // namespace

GrpcLog::GrpcLog() {
  gpr_set_log_function(LogOfGrpc);
}

GrpcLog::~GrpcLog() {
  gpr_set_log_function(nullptr);
}

}  // namespace perfd::daemon
