#include "agent/attach/hold_runner.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/attach/held_threads.h"
#include "agent/attach/remote_call.h"
#include "agent/attach/thread_ops.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint32_t kMaxReadBytes = 16U << 20;
constexpr uint64_t kLowestError = static_cast<uint64_t>(-4095);  // MAX_ERRNO

bool HasCalls(const HoldRequest& request) {
  return std::any_of(request.ops.begin(), request.ops.end(),
                     [](const HoldOp& op) { return std::holds_alternative<CallOp>(op); });
}

// /proc shows the memory of a process through its main thread only; most often it is about to end altogether.
absl::Status CheckMainThread(int32_t pid) {
  ASSIGN_OR_RETURN(const ThreadStatus status, ReadThreadStatus(pid, pid));
  if (!IsDead(status)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("process ", pid, ": its main thread has exited"));
}

absl::Status CheckAdmitted(const HoldRequest& request) {
  if (!request.admitted.has_value()) return absl::OkStatus();
  return CheckUnchanged(*request.admitted, ProcFs(), request.pid);
}

// What the process may not do, and which of its limits forbids it. Source: mmap(2), "ERRORS".
std::string CallText(int64_t call, int error) {
  const char* text = strerror(error);
  if (call == SYS_mmap && error == ENOMEM)
    return absl::StrCat("the process may not map more memory: ", text,
                        " (ulimit -v, or vm.max_map_count)");
  if (call == SYS_mmap && error == EAGAIN)
    return absl::StrCat("the process may not map more memory: ", text,
                        " (ulimit -l: it locks what it maps)");
  return absl::StrCat("system call ", call, " in the process: ", text);
}

constexpr int64_t kShareOfRelease = 10;  // a tenth of the longest stop is kept for giving all back

// Runs the ops of one hold. Each Do fills in `result` and tells how the op ended.
class OpRun {
 public:
  OpRun(Operations& operations, HeldThreads& held, const CallSite& place, HoldReply& reply)
      : operations_(operations),
        held_(held),
        place_(place),
        call_(operations, held, place),
        reply_(reply) {}

  absl::Status All(const std::vector<HoldOp>& ops) {
    reply_.results.reserve(ops.size());
    for (size_t i = 0; i < ops.size(); ++i) {
      if (SystemClock().MonotonicNs() >= place_.deadline_ns)
        return absl::DeadlineExceededError(
            absl::StrCat("the stop reached its longest time before op ", i));
      OpResult& result = reply_.results.emplace_back();
      RETURN_IF_ERROR(std::visit([&](const auto& op) { return Do(op, result); }, ops[i]));
    }
    return call_.Finish();
  }

  // Gives the calling thread its registers back, where All has not. True: it may make the call all the same.
  bool CallIsLost() { return !call_.Finish().ok() || call_.lost(); }

 private:
  uint64_t Value(const OpValue& value) const {
    if (value.from_op == kNoOp) return value.number;
    return value.number + reply_.results[static_cast<size_t>(value.from_op)].value;
  }

  absl::Status Do(const CallOp& op, OpResult& result) {
    std::array<uint64_t, 6> arguments{};
    for (size_t i = 0; i < arguments.size(); ++i) arguments[i] = Value(op.arguments[i]);
    ASSIGN_OR_RETURN(result.value, call_.Call(op.call, arguments));
    const bool failed = result.value >= kLowestError;
    if (op.expect == CallOp::Expect::kEqual && result.value == op.expected) return absl::OkStatus();
    if (op.expect != CallOp::Expect::kAny && failed)
      return absl::AbortedError(CallText(op.call, static_cast<int>(-result.value)));
    if (op.expect == CallOp::Expect::kEqual)
      return absl::AbortedError(
          absl::StrFormat("system call %d in the process returned %#x, not %#x", op.call,
                          result.value, op.expected));
    return absl::OkStatus();
  }

  absl::Status Do(const WriteOp& op, OpResult& result) {
    const uint64_t address = Value(op.address);
    const uint64_t size = op.bytes.size();
    if (op.indivisible && size != 0 && address / kPageBytes != (address + size - 1) / kPageBytes)
      return absl::FailedPreconditionError(absl::StrFormat(
          "the %d bytes at %#x cross a page: they cannot be written at once", size, address));
    result.value = size;
    return operations_.Write(*place_.memory, address, op.bytes);
  }

  absl::Status Do(const ExpectBytesOp& op, OpResult& result) {
    result.bytes.resize(op.bytes.size());
    const uint64_t address = Value(op.address);
    RETURN_IF_ERROR(place_.memory->Read(address, result.bytes));
    if (result.bytes == op.bytes) return absl::OkStatus();
    return absl::AbortedError(absl::StrFormat("memory at %#x is not what was expected", address));
  }

  absl::Status Do(const ReadOp& op, OpResult& result) {
    if (op.size > kMaxReadBytes) return absl::InvalidArgumentError("a read of over 16 MiB");
    result.bytes.resize(op.size);
    return place_.memory->Read(Value(op.address), result.bytes);
  }

  absl::Status Do(const MoveThreadsOp& op, OpResult& result) {
    // The frame on its stack would bring the calling thread back to where it was before it was moved.
    RETURN_IF_ERROR(call_.Finish());
    ASSIGN_OR_RETURN(result.value, MoveThreads(op, operations_, *place_.memory, held_.threads()));
    return absl::OkStatus();
  }

  absl::Status Do(const RequireOutsideOp& op, OpResult&) {
    return RequireOutside(op, held_.threads());
  }

  absl::Status Do(const RequireOwnStacksOp&, OpResult&) {
    ASSIGN_OR_RETURN(const std::vector<MapEntry>* maps, held_.Maps());
    return RequireOwnStacks(place_.pid, *maps, held_.threads());
  }

  absl::Status Do(const ScanStacksOp& op, OpResult& result) {
    ASSIGN_OR_RETURN(result.value, ScanStacks(op, *place_.memory, held_.threads()));
    return absl::OkStatus();
  }

  absl::Status Do(const ReadThreadsOp&, OpResult& result) {
    ASSIGN_OR_RETURN(result.threads, ReadThreads(operations_, layout(), held_.threads()));
    return absl::OkStatus();
  }

  absl::Status Do(const GiveBackOp& op, OpResult& result) {
    // The frame on its stack would take away again from the calling thread what it is given.
    RETURN_IF_ERROR(call_.Finish());
    result.bytes.resize(op.entries.size());
    ASSIGN_OR_RETURN(result.value,
                     GiveBack(op, operations_, *place_.memory, held_.threads(), result.bytes));
    return absl::OkStatus();
  }

  const XsaveLayout& layout() const { return place_.layout; }

  Operations& operations_;
  HeldThreads& held_;
  const CallSite& place_;
  RemoteCall call_;
  HoldReply& reply_;
};

}  // namespace

absl::StatusOr<HoldRunner::Target> HoldRunner::Prepare(const HoldRequest& request) {
  if (request.pid == ::getpid()) return absl::InvalidArgumentError("a tracer cannot hold itself");
  RETURN_IF_ERROR(CheckMainThread(request.pid));
  RETURN_IF_ERROR(CheckAdmitted(request));
  ASSIGN_OR_RETURN(Memory memory, Memory::Open(request.pid, request.start_ticks));
  ASSIGN_OR_RETURN(const ProcessIdentity identity, ReadIdentity(request.pid));
  ASSIGN_OR_RETURN(const std::vector<int32_t> tids, ProcFs().Threads(request.pid));
  for (const int32_t tid : tids) {
    const auto status = ReadThreadStatus(request.pid, tid);
    if (status.ok() && !IsDead(*status)) RETURN_IF_ERROR(CheckInjectable(*status, request.pid));
  }
  Target target{std::move(memory), identity, {}};
  if (HasCalls(request)) {
    ASSIGN_OR_RETURN(const std::vector<MapEntry> maps, ProcFs().Maps(request.pid));
    ASSIGN_OR_RETURN(target.gadgets, FindGadgets(target.memory, maps));
  }
  return target;
}

void HoldRunner::HoldAndRun(const HoldRequest& request, const Target& target, HoldReply& reply) {
  const int64_t start_ns = SystemClock().MonotonicNs();
  CallSite place{request.pid, &target.memory, target.gadgets, layout_,
                 start_ns + request.max_stop_ns - request.max_stop_ns / kShareOfRelease};
  HeldThreads held(operations_, request.pid);
  reply.status = held.Stop(target.identity, place.deadline_ns);
  reply.threads = static_cast<int32_t>(held.threads().size());
  reply.repaired = held.repaired();
  // Once more: nobody can change anything from here on.
  if (reply.status.ok()) reply.status = CheckAdmitted(request);
  if (reply.status.ok()) {
    OpRun run(operations_, held, place, reply);
    reply.status = run.All(request.ops);
    reply.call_lost = run.CallIsLost();
  }
  held.Release();
  reply.stop_ns = SystemClock().MonotonicNs() - start_ns;
  reply.tracer_ends = !held.released();
}

HoldReply HoldRunner::Run(const HoldRequest& request, const std::function<void()>& about_to_stop,
                          const std::function<void()>& released) {
  HoldReply reply;
  const auto target = Prepare(request);
  if (!target.ok()) {
    reply.status = target.status();
    return reply;
  }
  about_to_stop();
  HoldAndRun(request, *target, reply);
  released();
  return reply;
}

}  // namespace perfd::agent
