// core/perfdata/record_stream.h - the records of a recording, one after the other: framed, decompressed, trailing data left out.
//
// Shape    Next() -> the bytes of one record, header first; nothing at the end. Valid until the next call.
// Errors   Next: kDataLoss when a record cannot be one or compressed bytes are damaged; the reading ends there. A recording that
//          ends amid a record is no error: truncated().
// Threads  thread-bound.
// Memory   one record, and what one compressed record gives (kMostDecompressed).
// Source   tools/perf/Documentation/perf.data-file-format.txt: PERF_RECORD_COMPRESSED; PERF_RECORD_HEADER_TRACING_DATA and
//          PERF_RECORD_AUXTRACE are followed by data that are no records.
#ifndef CORE_PERFDATA_RECORD_STREAM_H_
#define CORE_PERFDATA_RECORD_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/perfdata/recording_bytes.h"
#include "core/zstd/zstd.h"

namespace perfd {

// perf's own kinds that matter here.
enum class UserRecord : uint32_t {
  kAttr = 64,
  kTracingData = 66,
  kBuildId = 67,
  kFinishedRound = 68,
  kAuxTrace = 71,
  kEventUpdate = 78,
  kFeature = 80,
  kCompressed = 81,
  kFinishedInit = 82,
  kCompressed2 = 83,
};

inline constexpr size_t kMostDecompressed = size_t{64} << 20;
// Of a whole recording, beyond that: records of perf become a hundred times as small.
inline constexpr uint64_t kMostRatio = 1000;

class RecordStream {
 public:
  // `bytes` outlives it; `limit` of them are records. UINT64_MAX: all that come.
  RecordStream(RecordingBytes* bytes, uint64_t limit)
      : bytes_(bytes), left_(limit), known_end_(limit != UINT64_MAX) {}

  absl::StatusOr<std::optional<std::span<const std::byte>>> Next();
  bool truncated() const { return truncated_; }
  struct Compression {
    uint64_t records = 0;
    uint64_t bytes = 0;
    uint64_t decompressed_bytes = 0;
  };
  const Compression& compression() const { return compression_; }

 private:
  absl::StatusOr<bool> Fill(std::span<std::byte> to);
  absl::StatusOr<bool> ReadRecord();
  absl::Status Decompress();
  absl::Status SkipTrailingData();
  absl::StatusOr<std::optional<std::span<const std::byte>>> NextDecompressed();

  RecordingBytes* bytes_;
  uint64_t left_;
  bool known_end_;
  bool truncated_ = false;
  Compression compression_;
  std::vector<std::byte> record_;
  DecompressStream zstd_;
  std::vector<std::byte> decompressed_;
  size_t consumed_ = 0;  // of decompressed_
};

}  // namespace perfd

#endif  // CORE_PERFDATA_RECORD_STREAM_H_
