// How samples get their call paths: from the kernel's chain, or from a copy of the stack by way of the stack worker.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/pipeline/session.h"
#include "agent/sample/sampling_event.h"

namespace perfd::agent {
namespace {

constexpr int64_t kAwaitStacksNs = 3 * kNsPerSecond;
constexpr int64_t kSuspendStacksNs = kNsPerSecond / 2;
constexpr size_t kAutoStackSources = 4;  // 9 MiB each

// The kernel's chain holds return addresses, which may already belong to the next function: the call is before them.
CallPath PathOfBatch(std::span<const uint64_t> chain) {
  CallPath path;
  for (uint64_t address : chain.first(std::min(chain.size(), kMaxCallPathFrames)))
    path.addresses.push_back(path.addresses.empty() ? address : address - 1);
  path.complete = chain.size() <= kMaxCallPathFrames;  // as far as frame pointers can tell
  return path;
}

StackTarget Describe(const TrackedProcess& process) {
  return {.pid = process.info.pid,
          .uid = process.info.uid,
          .gid = process.admission.rights.gids[0],
          .image = process.image,
          .generation = process.space.generation(),
          .mappings = process.space.Mappings()};
}

}  // namespace

void Session::RecordCallPath(TrackedProcess& process, const perfd::Sample& sample) {
  const CallPaths callpaths = request_.spec.hotspots.callpaths;
  const bool kept = windows_.paths().kept();
  if (!windows_.paths().wanted()) return;
  if (!kept && sample.kernel) return;  // it tells nothing of loops
  if (stacks_ == nullptr && CopiesStacks(callpaths) && tools_.open_stacks != nullptr)
    stacks_ = std::make_unique<StackWorker>(tools_.open_stacks, *tools_.clock,
                                            kept ? StackWorker::kMaxSources : kAutoStackSources);
  if (stacks_ != nullptr && sample.user.registers.size() == kStackRegisters) {
    if (sample.time_ns >= process.space.exec_ns())
      ChooseStack(process, sample);
    else
      windows_.SkipPaths(1);  // the files of that program are no longer mapped
  } else if (!sample.callchain.empty()) {
    CountPath(process, process.info.rank, sample.kernel, sample.time_ns,
              PathOfBatch(sample.callchain));
  } else {
    windows_.SkipPaths(1);
  }
}

void Session::ChooseStack(TrackedProcess& process, const perfd::Sample& sample) {
  const auto location = stack_choice_.Next();
  if (!location.has_value() || *location < chosen_stacks_.size()) windows_.SkipPaths(1);
  if (!location.has_value()) return;
  if (*location >= chosen_stacks_.size()) chosen_stacks_.emplace_back();
  const bool current = process.stack_target != nullptr &&
                       process.stack_target->image == process.image &&
                       process.stack_target->generation == process.space.generation();
  if (!current) process.stack_target = std::make_shared<const StackTarget>(Describe(process));
  StackTask& task = chosen_stacks_[std::min(*location, chosen_stacks_.size() - 1)];
  task.target = process.stack_target;
  task.rank = process.info.rank;
  task.kernel = sample.kernel;
  task.time_ns = sample.time_ns;
  std::copy(sample.user.registers.begin(), sample.user.registers.end(),
            task.copy.registers.begin());
  task.copy.bytes.assign(sample.user.stack.begin(), sample.user.stack.end());
}

void Session::ExchangeStacks() {
  if (stacks_ == nullptr) return;
  for (StackTask& task : chosen_stacks_) {
    if (!stacks_->Submit(task)) windows_.SkipPaths(1);
  }
  chosen_stacks_.clear();
  for (const StackResult& result : stacks_->Drain()) {
    TrackedProcess* process = ranks_.Find(result.target->pid);
    // After an exec the addresses mean something else.
    const bool same = process != nullptr && process->image == result.target->image;
    if (same && result.path.has_value() && !result.path->addresses.empty())
      CountPath(*process, result.rank, result.kernel, result.time_ns, *result.path);
    else
      windows_.SkipPaths(1);
  }
}

void Session::CountPath(TrackedProcess& process, int32_t rank, bool kernel, uint64_t time_ns,
                        const CallPath& path) {
  std::vector<RawLocation> frames;
  frames.reserve(path.addresses.size() + 2);
  if (kernel) frames.push_back({.kind = RawLocation::Kind::kKernel});
  for (RuntimeAddress address : path.addresses) frames.push_back(Place(process, address, time_ns));
  if (!path.complete) {
    frames.push_back({.kind = RawLocation::Kind::kTruncated});
    windows_.CutPath();
  }
  windows_.builder().CountStack(rank, std::move(frames));
}

void Session::RecordStackTroubles() {
  if (stacks_ == nullptr) return;
  for (const auto& [pid, status] : stacks_->DrainTroubles()) {
    if (!windows_.paths().kept()) continue;  // nobody asked for them
    notices_.Warning(absl::Status(status.code(), absl::StrCat("call paths of pid ", pid,
                                                              " are missing: ", status.message())),
                     pid);
  }
}

// The last stacks are still with the worker when sampling ends.
void Session::AwaitStacks() {
  if (stacks_ == nullptr) return;
  const int64_t wait_ns =
      suspended_ || !windows_.paths().kept() ? kSuspendStacksNs : kAwaitStacksNs;
  const int64_t end_ns = tools_.clock->MonotonicNs() + wait_ns;
  while (stacks_->outstanding() > 0 && tools_.clock->MonotonicNs() < end_ns) {
    absl::SleepFor(absl::Milliseconds(5));
    ExchangeStacks();
  }
  ExchangeStacks();
  windows_.SkipPaths(stacks_->outstanding());
  RecordStackTroubles();
}

}  // namespace perfd::agent
