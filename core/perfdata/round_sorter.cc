#include "core/perfdata/round_sorter.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace perfd {

void RoundSorter::Add(uint64_t time_ns, std::span<const std::byte> record) {
  if (time_ns == 0) {
    ready_.emplace_back(record.begin(), record.end());
    return;
  }
  if (time_ns < released_ns_) ++late_;
  newest_ns_ = std::max(newest_ns_, time_ns);
  held_.push_back({time_ns, {record.begin(), record.end()}});
  held_bytes_ += record.size() + kBytesBeside;
  if (held_bytes_ <= most_held_bytes_) return;
  const auto middle = held_.begin() + static_cast<std::ptrdiff_t>(held_.size() / 2);
  std::vector<uint64_t> times;
  std::transform(held_.begin(), held_.end(), std::back_inserter(times),
                 [](const Held& h) { return h.time_ns; });
  const auto median = times.begin() + (middle - held_.begin());
  std::nth_element(times.begin(), median, times.end());
  Release(*median);
}

void RoundSorter::FinishRound() {
  Release(newest_of_round_before_ns_);
  newest_of_round_before_ns_ = newest_ns_;
}

void RoundSorter::Finish() {
  Release(UINT64_MAX);
}

// What came first stays first among those of one time.
void RoundSorter::Release(uint64_t until_ns) {
  const auto kept = std::stable_partition(held_.begin(), held_.end(),
                                          [&](const Held& h) { return h.time_ns <= until_ns; });
  std::stable_sort(held_.begin(), kept,
                   [](const Held& a, const Held& b) { return a.time_ns < b.time_ns; });
  for (auto it = held_.begin(); it != kept; ++it) {
    held_bytes_ -= it->record.size() + kBytesBeside;
    released_ns_ = std::max(released_ns_, it->time_ns);
    ready_.push_back(std::move(it->record));
  }
  held_.erase(held_.begin(), kept);
}

std::optional<std::vector<std::byte>> RoundSorter::Pop() {
  if (ready_.empty()) return std::nullopt;
  std::vector<std::byte> record = std::move(ready_.front());
  ready_.pop_front();
  return record;
}

}  // namespace perfd
