// agent/experiment/plan/group_means.h - times of short instances that were each timed alone, in groups.
//
// Shape    means of ten one after the other, without the longest: an interrupt is not the loop's. What is left over is dropped.
// Threads  thread-safe (pure).
#ifndef AGENT_EXPERIMENT_PLAN_GROUP_MEANS_H_
#define AGENT_EXPERIMENT_PLAN_GROUP_MEANS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace perfd::agent {

inline constexpr size_t kGroupInstances = 10;  // whose mean is taken, as that of a batch is

std::vector<uint64_t> GroupMeans(std::span<const uint64_t> cycles);

}  // namespace perfd::agent

#endif  // AGENT_EXPERIMENT_PLAN_GROUP_MEANS_H_
