#include "daemon/aggregate/paths/path_table.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace perfd::daemon {
namespace {

constexpr char kOther[] = "(other)";

}  // namespace

void PathTable::AddOther(int32_t rank, uint64_t samples) {
  if (other_stacks_.size() < limits_.ranks || other_stacks_.contains(rank))
    other_stacks_[rank] += samples;
}

uint64_t PathTable::AddStack(int32_t rank, const std::vector<const std::string*>& frames,
                             uint64_t samples) {
  StackKey key{rank, {}};
  key.second.reserve(frames.size());
  for (const std::string* frame : frames) {
    auto found = frame_index_.find(*frame);
    if (found == frame_index_.end()) {
      if (frame_names_.size() >= limits_.frame_names || stacks_.size() >= limits_.stacks) {
        AddOther(rank, samples);
        return samples;
      }
      found = frame_index_.emplace(*frame, static_cast<uint32_t>(frame_names_.size())).first;
      frame_names_.push_back(*frame);
    }
    key.second.push_back(found->second);
  }
  if (auto found = stacks_.find(key); found != stacks_.end()) {
    found->second += samples;
    return 0;
  }
  if (stacks_.size() < limits_.stacks) {
    stacks_.emplace(std::move(key), samples);
    return 0;
  }
  AddOther(rank, samples);
  return samples;
}

size_t PathTable::Bytes() const {
  constexpr size_t kNode = 64;  // of a map's entry, beside what it holds
  size_t bytes = calls_.size() * (sizeof(*calls_.begin()) + kNode) +
                 other_stacks_.size() * sizeof(*other_stacks_.begin());
  for (const std::string& name : frame_names_) bytes += 2 * (name.size() + sizeof(std::string));
  for (const auto& [key, samples] : stacks_)
    bytes += sizeof(key) + sizeof(samples) + key.second.size() * sizeof(uint32_t);
  return bytes;
}

uint64_t PathTable::AddCall(const WindowCall& call) {
  const std::pair key(call.location, call.loop);
  if (calls_.size() >= limits_.calls && !calls_.contains(key)) return call.paths;
  calls_[key] += call.paths;
  return 0;
}

uint64_t PathTable::AbsorbStacks(const PathState& state) {
  uint64_t lost = 0;
  std::vector<const std::string*> frames;
  for (const WindowStack& stack : state.stacks) {
    frames.clear();
    for (uint32_t frame : stack.frames) frames.push_back(&state.frame_names[frame]);
    lost += AddStack(stack.rank, frames, stack.samples);
  }
  for (const OtherStacks& other : state.other_stacks) AddOther(other.rank, other.samples);
  return lost;
}

PathState PathTable::State(const std::vector<uint32_t>& place) const {
  PathState state;
  std::vector<uint32_t> order(frame_names_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return frame_names_[a] < frame_names_[b]; });
  std::vector<uint32_t> new_frame(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    new_frame[order[i]] = i;
    state.frame_names.push_back(frame_names_[order[i]]);
  }
  for (const auto& [key, samples] : stacks_) {
    WindowStack stack{key.first, {}, samples};
    for (uint32_t frame : key.second) stack.frames.push_back(new_frame[frame]);
    state.stacks.push_back(std::move(stack));
  }
  std::sort(state.stacks.begin(), state.stacks.end(),
            [](const WindowStack& a, const WindowStack& b) {
              return std::tie(a.rank, a.frames) < std::tie(b.rank, b.frames);
            });
  for (const auto& [rank, samples] : other_stacks_) state.other_stacks.push_back({rank, samples});
  std::sort(state.other_stacks.begin(), state.other_stacks.end(),
            [](const OtherStacks& a, const OtherStacks& b) { return a.rank < b.rank; });
  state.calls = calls();
  for (WindowCall& call : state.calls) {
    call.location = place[call.location];
    if (call.loop.has_value()) call.loop = place[*call.loop];
  }
  std::sort(state.calls.begin(), state.calls.end(), [](const WindowCall& a, const WindowCall& b) {
    return std::tie(a.location, a.loop) < std::tie(b.location, b.loop);
  });
  return state;
}

std::vector<ReportStack> PathTable::stacks() const {
  std::vector<ReportStack> stacks;
  stacks.reserve(stacks_.size() + other_stacks_.size());
  for (const auto& [key, samples] : stacks_) {
    ReportStack stack{key.first, {}, samples};
    for (uint32_t frame : key.second) stack.frames.push_back(frame_names_[frame]);
    stacks.push_back(std::move(stack));
  }
  for (const auto& [rank, samples] : other_stacks_) stacks.push_back({rank, {kOther}, samples});
  return stacks;
}

std::vector<WindowCall> PathTable::calls() const {
  std::vector<WindowCall> calls;
  calls.reserve(calls_.size());
  for (const auto& [key, paths] : calls_) calls.push_back({key.first, key.second, paths});
  return calls;
}

}  // namespace perfd::daemon
