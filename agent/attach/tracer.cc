#include "agent/attach/tracer.h"

#include "absl/strings/str_cat.h"
#include "agent/attach/hold_codec.h"
#include "agent/spawn/helper_process.h"
#include "core/base/clock.h"
#include "core/base/frame.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr int64_t kPrepareNs = 10 * kNsPerSecond;  // nothing is stopped yet
constexpr int64_t kSlackNs = 20 * kNsPerMs;
constexpr int64_t kStopFactor = 2;  // the tracer kills itself then; if it cannot, we do

int64_t After(int64_t ns) {
  return SystemClock().MonotonicNs() + ns;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tracer>> Tracer::Start(TracerOptions options) {
  std::unique_ptr<Tracer> tracer(new Tracer(std::move(options)));
  RETURN_IF_ERROR(tracer->Spawn());
  return tracer;
}

Tracer::~Tracer() {
  End();
}

absl::Status Tracer::Spawn() {
  const HelperProgram program{"tracer", options_.program, options_.arguments, /*own_session=*/true};
  ASSIGN_OR_RETURN(Helper tracer, StartWithSocket("tracer", [&](int socket) {
                     return StartHelper(program, socket);
                   }));
  pid_ = tracer.pid;
  socket_ = std::move(tracer.socket);
  return absl::OkStatus();
}

std::string Tracer::End() {
  socket_.Reset();
  // At once: what it holds is free from then on.
  return pid_ > 0 ? EndHelper(std::exchange(pid_, 0), 0) : "ended before";
}

absl::Status Tracer::Fail(const absl::Status& status, const HoldRequest& request) {
  const std::string end = End();
  const std::string subject = absl::StrCat("stop of process ", request.pid, ": the tracer ");
  if (absl::IsUnavailable(status))
    return absl::UnavailableError(absl::StrCat(subject, "died: ", end));
  if (absl::IsDeadlineExceeded(status))
    return absl::DeadlineExceededError(absl::StrCat(subject, "hung and was ended: ", end));
  return absl::Status(status.code(), absl::StrCat(subject, "answered badly: ", status.message()));
}

absl::StatusOr<HoldReply> Tracer::Run(const HoldRequest& request) {
  unanswered_stop_ns_ = 0;
  const std::string bytes = EncodeRequest(request);
  RETURN_IF_ERROR(DecodeRequest(bytes).status());
  if (pid_ == 0) RETURN_IF_ERROR(Spawn());
  absl::Status sent = SendFrame(socket_.get(), bytes, After(kPrepareNs));
  if (absl::IsUnavailable(sent)) {  // it ended after its last reply: nothing has happened yet
    End();
    RETURN_IF_ERROR(Spawn());
    sent = SendFrame(socket_.get(), bytes, After(kPrepareNs));
  }
  if (!sent.ok()) return Fail(sent, request);
  auto answer = ReceiveFrame(socket_.get(), After(kPrepareNs));
  int64_t stop_begin_ns = 0;
  if (answer.ok() && answer->empty()) {
    stop_begin_ns = After(0);
    answer = ReceiveFrame(socket_.get(), After(kStopFactor * request.max_stop_ns + kSlackNs));
  }
  auto reply = answer.ok() ? DecodeReply(*answer) : answer.status();
  if (!reply.ok()) {
    const absl::Status failed = Fail(reply.status(), request);
    if (stop_begin_ns > 0) unanswered_stop_ns_ = After(0) - stop_begin_ns;
    return failed;
  }
  if (reply->tracer_ends) End();
  return reply;
}

}  // namespace perfd::agent
