// core/perfdata/recording.h - a recording of perf (perf.data): what it says about itself, and its records in the order of time.
//
// Shape    Open reads what stands before the records; Next gives one decoded record after the other; counts() what there was.
//          Of a pipe events() and facts() grow while it is read.
// Errors   Open: kInvalidArgument (no recording, of another byte order, of a version that is not known), kUnimplemented (events
//          that cannot be decoded). Next: kDataLoss (damaged): what came before it is good. A recording that ends in the middle is
//          read to there, and counts() says so.
// Threads  thread-bound.
// Source   tools/perf/Documentation/perf.data-file-format.txt.
#ifndef CORE_PERFDATA_RECORDING_H_
#define CORE_PERFDATA_RECORDING_H_

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/perfdata/event_table.h"
#include "core/perfdata/features.h"
#include "core/perfdata/loss_count.h"
#include "core/perfdata/record_stream.h"
#include "core/perfdata/recording_bytes.h"
#include "core/perfdata/recording_facts.h"
#include "core/perfdata/records/event_set.h"
#include "core/perfdata/round_sorter.h"

namespace perfd {

struct RecordingCounts {
  static constexpr size_t kKinds = 128;
  // Records by kind, perf's own (64 and above) as well; the last counts all that are beyond.
  std::array<uint64_t, kKinds> records{};
  uint64_t malformed = 0;  // records
  uint64_t lost = 0;       // records that the kernel had no room for
  uint64_t late = 0;       // records that came after younger ones
  uint64_t damaged_features = 0;
  bool truncated = false;   // it ends amid a record
  bool unfinished = false;  // whoever recorded did not come to write its end: it has no features
  bool piped = false;
  RecordStream::Compression compression{};
};

class Recording {
 public:
  static absl::StatusOr<std::unique_ptr<Recording>> Open(std::unique_ptr<RecordingBytes> bytes);

  // Spans of a sample are valid until the next call. Nothing: the end.
  absl::StatusOr<std::optional<EventSet::Decoded>> Next();

  const std::vector<RecordedEvent>& events() const { return events_.all(); }
  const RecordingFacts& facts() const { return facts_; }
  const RecordingCounts& counts() const { return counts_; }

 private:
  explicit Recording(std::unique_ptr<RecordingBytes> bytes) : bytes_(std::move(bytes)) {}

  absl::Status ReadFileHeader();
  absl::Status ReadAttrs(uint64_t offset, uint64_t size, uint64_t attr_bytes);
  absl::StatusOr<std::vector<uint64_t>> ReadIds(uint64_t offset, uint64_t size);
  absl::Status ReadFeatures(std::span<const uint64_t> bits, uint64_t offset);
  absl::Status MakeSet();
  absl::Status ReadOne();
  absl::Status OnUserRecord(uint32_t kind, std::span<const std::byte> record);
  absl::Status OnAttr(std::span<const std::byte> body);
  void OnEventUpdate(std::span<const std::byte> body);
  void OnFeature(std::span<const std::byte> body);
  void Count(const PerfRecord& record);

  std::unique_ptr<RecordingBytes> bytes_;
  std::unique_ptr<RecordStream> stream_;
  EventTable events_;
  std::bitset<kFeatureBits> said_;  // of a pipe
  RecordingFacts facts_;
  RecordingCounts counts_;
  LossCount losses_;
  std::optional<EventSet> set_;
  RoundSorter sorter_;
  std::vector<std::byte> current_;
  absl::Status failed_;
  bool ended_ = false;
};

}  // namespace perfd

#endif  // CORE_PERFDATA_RECORDING_H_
