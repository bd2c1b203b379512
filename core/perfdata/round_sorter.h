// core/perfdata/round_sorter.h - records of many rings, written ring by ring, in the order of their times.
//
// Shape    Add each record; FinishRound where the recording says that every ring was read once; Finish at the end. Pop what can
//          no longer be overtaken.
// Rules    a record of time 0 is not of any: it comes at once. After a round no record can be older than the newest of the round
//          before it, so what is older than that is let go.
// Memory   kMostHeldBytes: above it the older half is let go before its time; a record that then comes too late counts in late().
// Source   tools/perf/util/ordered-events.c, "A little idea about the flushing of the rounds" (process_finished_round).
#ifndef CORE_PERFDATA_ROUND_SORTER_H_
#define CORE_PERFDATA_ROUND_SORTER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace perfd {

class RoundSorter {
 public:
  static constexpr size_t kMostHeldBytes = size_t{128} << 20;

  explicit RoundSorter(size_t most_held_bytes = kMostHeldBytes)
      : most_held_bytes_(most_held_bytes) {}

  void Add(uint64_t time_ns, std::span<const std::byte> record);
  void FinishRound();
  void Finish();
  // Nothing: what is held may still be overtaken.
  std::optional<std::vector<std::byte>> Pop();
  uint64_t late() const { return late_; }

 private:
  static constexpr size_t kBytesBeside = 96;  // of a record: what holds it
  struct Held {
    uint64_t time_ns = 0;
    std::vector<std::byte> record;
  };
  // Lets go what is not newer.
  void Release(uint64_t until_ns);

  size_t most_held_bytes_;
  size_t held_bytes_ = 0;
  std::vector<Held> held_;
  std::deque<std::vector<std::byte>> ready_;
  uint64_t newest_ns_ = 0;
  uint64_t newest_of_round_before_ns_ = 0;
  uint64_t released_ns_ = 0;
  uint64_t late_ = 0;
};

}  // namespace perfd

#endif  // CORE_PERFDATA_ROUND_SORTER_H_
