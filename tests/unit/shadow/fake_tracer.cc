// A tracer without ptrace: fake_tracer LOG ANSWER... - the nth hold, over all its lives, gets the nth answer, later ones "ok".
//
//   ok           text is checked and written while the process runs, everything else is only noted
//   calling:HEX  as ok, and ReadThreads finds a thread at that address that is about to make a call
//   unavailable, unsafe, gone, slow   the hold fails with that status, nothing is done
//   lost         as slow, and a remote call may yet be made
//   die          it ends instead of answering
//   die-late     as die, 10 ms after it has said that it is about to stop the process
//   stop-it      it suspends the process, and answers as slow, 10 ms later
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/attach/hold_codec.h"
#include "agent/attach/memory.h"
#include "agent/spawn/helper_process.h"
#include "core/base/clock.h"
#include "core/base/frame.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

struct Hold {
  const Memory& memory;
  uint64_t caller = 0;  // where a thread stands before its call; 0: none

  absl::StatusOr<OpResult> Do(const ExpectBytesOp& op) const {
    ASSIGN_OR_RETURN(const auto bytes, memory.Read(op.address.number, op.bytes.size()));
    if (bytes != op.bytes) return absl::AbortedError("other bytes than expected");
    return OpResult{};
  }
  absl::StatusOr<OpResult> Do(const WriteOp& op) const {
    RETURN_IF_ERROR(memory.Write(op.address.number, op.bytes));
    return OpResult{};
  }
  absl::StatusOr<OpResult> Do(const ReadThreadsOp&) const {
    OpResult result;
    ThreadFacts thread;
    thread.tid = 1;
    thread.pc = caller;
    if (caller != 0) result.threads = {thread};
    return result;
  }
  template <typename Op>
  absl::StatusOr<OpResult> Do(const Op&) const {
    return OpResult{};
  }
};

HoldReply Answer(const std::string& answer, const HoldRequest& request) {
  HoldReply reply;
  reply.stop_ns = 1000;
  if (answer == "unavailable") reply.status = absl::UnavailableError("a thread is in the way");
  if (answer == "unsafe") reply.status = absl::FailedPreconditionError("another tracer");
  if (answer == "stop-it") reply.stop_ns = 10 * kNsPerMs;
  if (answer == "slow" || answer == "stop-it")
    reply.status = absl::DeadlineExceededError("a thread does not stop");
  if (answer == "lost") reply.status = absl::DeadlineExceededError("a remote call does not return");
  reply.call_lost = answer == "lost";
  if (answer == "gone") reply.status = absl::NotFoundError("gone");
  if (!reply.status.ok()) return reply;
  const auto memory = Memory::Open(request.pid, request.start_ticks);
  if (!memory.ok()) {
    reply.status = memory.status();
    return reply;
  }
  Hold hold{*memory};
  if (absl::StartsWith(answer, "calling:"))
    hold.caller = std::strtoull(answer.c_str() + 8, nullptr, 16);
  for (const HoldOp& op : request.ops) {
    auto result = std::visit([&](const auto& it) { return hold.Do(it); }, op);
    reply.status = result.status();
    reply.results.push_back(result.ok() ? *std::move(result) : OpResult{});
    if (!reply.status.ok()) break;
  }
  return reply;
}

// One line per hold: the indices of its ops in HoldOp.
size_t Record(const std::string& path, const HoldRequest& request) {
  size_t before = 0;
  {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) ++before;
  }
  std::string line;
  for (const HoldOp& op : request.ops) absl::StrAppend(&line, op.index());
  std::ofstream(path, std::ios::app) << line << "\n";
  return before;
}

int Serve(const std::string& path, const std::vector<std::string>& answers) {
  for (;;) {
    const auto bytes = ReceiveFrame(kHelperSocket, kNoDeadline);
    if (!bytes.ok()) return 0;
    const auto request = DecodeRequest(*bytes);
    if (!request.ok()) return 1;
    const size_t at = Record(path, *request);
    const std::string answer = at < answers.size() ? answers[at] : "ok";
    if (answer == "die") return 2;
    if (answer == "die-late" || answer == "stop-it") {
      if (!SendFrame(kHelperSocket, "", kNoDeadline).ok()) return 0;
      if (answer == "stop-it") ::kill(request->pid, SIGSTOP);
      ::usleep(10'000);
      if (answer == "die-late") return 2;
    }
    const std::string reply = EncodeReply(Answer(answer, *request));
    if (!SendFrame(kHelperSocket, reply, kNoDeadline).ok()) return 0;
  }
}

}  // namespace
}  // namespace perfd::agent

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  return perfd::agent::Serve(argv[1], {argv + 2, argv + argc});
}
