#include "tests/bench/bench_rank.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/experiment/preparation.h"
#include "agent/procfs/procfs.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

extern char** environ;

namespace perfd::agent {
namespace {

constexpr int kReadyMs = 120'000;  // 16 GB in small pages take a while
constexpr int kInstallAttempts = 5;
constexpr int64_t kSweepNs = 60 * kNsPerSecond;

int64_t Now() {
  return SystemClock().MonotonicNs();
}

// Empty when it does not come in time.
std::string ReadLine(int fd) {
  const int64_t deadline = Now() + int64_t{kReadyMs} * kNsPerMs;
  std::string line;
  for (char c = 0;;) {
    pollfd ready{fd, POLLIN, 0};
    const auto left = static_cast<int>((deadline - Now()) / kNsPerMs);
    if (left <= 0 || poll(&ready, 1, left) <= 0 || read(fd, &c, 1) != 1) return "";
    if (c == '\n') return line;
    line += c;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchRank>> BenchRank::Start(const RankShape& shape) {
  std::unique_ptr<BenchRank> rank(new BenchRank);
  RETURN_IF_ERROR(rank->Spawn(shape));
  RETURN_IF_ERROR(rank->ReadPlaces());
  return rank;
}

absl::Status BenchRank::Spawn(const RankShape& shape) {
  std::vector<std::string> arguments = {PERFD_BENCH_RANK, absl::StrCat(shape.threads),
                                        absl::StrCat(shape.trip), absl::StrCat(shape.bytes),
                                        shape.huge ? "huge" : "4k"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError("pipe2");
  out_ = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  const int error = posix_spawn(&pid_, PERFD_BENCH_RANK, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    pid_ = 0;
    return absl::FailedPreconditionError(
        absl::StrCat("start ", PERFD_BENCH_RANK, ": ", strerror(error)));
  }
  return absl::OkStatus();
}

absl::Status BenchRank::ReadPlaces() {
  const std::string line = ReadLine(out_);
  uint64_t bytes = 0;
  if (sscanf(line.c_str(), "%lx %lx %lx %lx %lx %lx", &low_, &header_, &exit_, &high_, &control_,
             &bytes) != 6) {
    return absl::DeadlineExceededError(
        absl::StrCat("the puppet does not say where its loop is: \"", line, "\""));
  }
  info_.pid = pid_;
  ASSIGN_OR_RETURN(info_.start_ticks, ProcFs().StartTicks(pid_));
  ASSIGN_OR_RETURN(Memory memory, Memory::Open(pid_, info_.start_ticks));
  memory_ = std::make_unique<Memory>(std::move(memory));
  ASSIGN_OR_RETURN(text_, memory_->Read(low_, high_ - low_));
  return absl::OkStatus();
}

BenchRank::~BenchRank() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    // Giving back many GB takes its time.
    for (int i = 0; i < 3000 && waitpid(pid_, nullptr, WNOHANG) == 0; ++i)
      absl::SleepFor(absl::Milliseconds(10));
  }
  if (out_ >= 0) close(out_);
}

RankLoops BenchRank::Places() const {
  LoopSite place;
  place.target.loop_id = "triad";
  place.target.location_key = "triad";
  place.target.function_low = low_;
  place.target.header = header_;
  place.function.name = "triad";
  place.function.low = low_;
  place.function.high = high_;
  LoopFacts facts;
  facts.header = header_;
  facts.low = header_;
  facts.high = exit_;
  place.function.loops = {facts};
  place.function.spans = {{header_, exit_, 0}};
  return {info_, {place}};
}

absl::StatusOr<LoopToInject> BenchRank::Loop() const {
  return PrepareLoop(Places().loops[0], {}, *memory_);
}

absl::StatusOr<std::unique_ptr<RankInjector>> BenchRank::Install(
    const InjectorOptions& options) const {
  absl::Status status;
  for (int i = 0; i < kInstallAttempts; ++i) {
    // A lab of its own each time: nothing is left of a failed one.
    ASSIGN_OR_RETURN(std::unique_ptr<RankInjector> injector, RankInjector::Open(info_, options));
    ASSIGN_OR_RETURN(LoopToInject loop, Loop());
    std::vector<LoopToInject> loops;
    loops.push_back(std::move(loop));
    const auto installed = injector->Install(std::move(loops));
    status = installed.ok() ? installed->at(0).status : installed.status();
    if (status.ok()) return injector;
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) break;
    absl::SleepFor(absl::Milliseconds(100));
  }
  return status;
}

absl::StatusOr<bool> BenchRank::Altered() const {
  ASSIGN_OR_RETURN(std::vector<uint8_t> text, memory_->Read(low_, high_ - low_));
  return text != text_;
}

absl::StatusOr<bench_reading> BenchRank::Read() const {
  for (int i = 0; i < 1000; ++i) {
    bench_reading reading{};
    RETURN_IF_ERROR(
        memory_->Read(control_ + offsetof(bench_control, reading),
                      std::span(reinterpret_cast<uint8_t*>(&reading), sizeof(reading))));
    if (reading.check == (reading.entries ^ static_cast<uint64_t>(reading.ns))) return reading;
  }
  return absl::UnavailableError("the puppet's counter cannot be read in one piece");
}

absl::StatusOr<bench_control> BenchRank::Control() const {
  bench_control control{};
  RETURN_IF_ERROR(
      memory_->Read(control_, std::span(reinterpret_cast<uint8_t*>(&control), sizeof(control))));
  return control;
}

absl::StatusOr<std::vector<bench_pass>> BenchRank::Passes() const {
  ASSIGN_OR_RETURN(const bench_control control, Control());
  // Those next to be overwritten may be half written.
  const uint64_t known = std::min<uint64_t>(control.passes, BENCH_PASSES - 4);
  std::vector<bench_pass> passes;
  for (uint64_t i = control.passes - known; i < control.passes; ++i)
    passes.push_back(control.pass[i % BENCH_PASSES]);
  return passes;
}

absl::StatusOr<BenchRank::Sweep> BenchRank::SweepMemory(uint64_t bytes) {
  auto write = [&](size_t offset, uint64_t value) {
    return memory_->Write(control_ + offset,
                          std::span(reinterpret_cast<const uint8_t*>(&value), sizeof(value)));
  };
  RETURN_IF_ERROR(write(offsetof(bench_control, sweep_bytes), bytes));
  RETURN_IF_ERROR(write(offsetof(bench_control, sweep_asked), ++sweeps_));
  const int64_t deadline = Now() + kSweepNs;
  while (Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(2));
    ASSIGN_OR_RETURN(const bench_control control, Control());
    if (control.sweep_done == sweeps_) return Sweep{control.sweep_ns, control.sweep_faults};
  }
  return absl::DeadlineExceededError("the puppet does not finish its sweep");
}

}  // namespace perfd::agent
