#include "core/perfdata/record_stream.h"

#include <linux/perf_event.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/byte_reader.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

constexpr size_t kSkipBytes = size_t{64} << 10;

bool Is(uint32_t type, UserRecord kind) {
  return type == static_cast<uint32_t>(kind);
}

absl::Status NoRecord(const perf_event_header& header) {
  return absl::DataLossError(absl::StrCat("a record of kind ", header.type, " and ", header.size,
                                          " bytes cannot be one: the recording is damaged"));
}

}  // namespace

// False: the recording ends before that.
absl::StatusOr<bool> RecordStream::Fill(std::span<std::byte> to) {
  const size_t allowed = std::min<uint64_t>(to.size(), left_);
  ASSIGN_OR_RETURN(const size_t got, bytes_->Read(to.first(allowed)));
  left_ -= got;
  if (got == to.size()) return true;
  if (got > 0 || (known_end_ && left_ > 0)) truncated_ = true;
  left_ = 0;
  return false;
}

absl::StatusOr<bool> RecordStream::ReadRecord() {
  perf_event_header header{};
  record_.resize(sizeof header);
  ASSIGN_OR_RETURN(const bool begins, Fill(record_));
  if (!begins) return false;
  header = ByteReader(record_).Read<perf_event_header>();
  if (header.size < sizeof header) return NoRecord(header);
  record_.resize(header.size);
  ASSIGN_OR_RETURN(const bool whole, Fill(std::span<std::byte>(record_).subspan(sizeof header)));
  if (!whole) truncated_ = true;
  return whole;
}

absl::Status RecordStream::Decompress() {
  ByteReader reader(record_);
  const auto header = reader.Read<perf_event_header>();
  size_t size = reader.remaining();
  if (Is(header.type, UserRecord::kCompressed2)) {
    const auto told = reader.Read<uint64_t>();
    if (!reader.ok() || told > reader.remaining()) return NoRecord(header);
    size = told;
  }
  decompressed_.erase(decompressed_.begin(),
                      decompressed_.begin() + static_cast<std::ptrdiff_t>(consumed_));
  consumed_ = 0;
  const size_t before = decompressed_.size();
  RETURN_IF_ERROR(zstd_.Append(reader.ReadSpan(size), kMostDecompressed, &decompressed_));
  ++compression_.records;
  compression_.bytes += size;
  compression_.decompressed_bytes += decompressed_.size() - before;
  if (compression_.decompressed_bytes / kMostRatio >
      compression_.bytes + kMostDecompressed / kMostRatio)
    return absl::DataLossError("compressed records become more than any recording has");
  return absl::OkStatus();
}

absl::Status RecordStream::SkipTrailingData() {
  ByteReader reader(record_);
  const auto header = reader.Read<perf_event_header>();
  uint64_t bytes = 0;
  if (Is(header.type, UserRecord::kAuxTrace)) bytes = reader.Read<uint64_t>();
  if (Is(header.type, UserRecord::kTracingData)) {
    bytes = reader.Read<uint32_t>();
    bytes = (bytes + 7) / 8 * 8;
  }
  if (!reader.ok()) return NoRecord(header);
  std::vector<std::byte> sink(std::min<uint64_t>(bytes, kSkipBytes));
  while (bytes > 0) {
    const size_t part = std::min<uint64_t>(bytes, sink.size());
    ASSIGN_OR_RETURN(const bool whole, Fill(std::span<std::byte>(sink).first(part)));
    if (!whole) {
      truncated_ = true;
      return absl::OkStatus();
    }
    bytes -= part;
  }
  return absl::OkStatus();
}

// A record may go on in the next compressed one: nothing, then.
absl::StatusOr<std::optional<std::span<const std::byte>>> RecordStream::NextDecompressed() {
  const std::span<const std::byte> rest =
      std::span<const std::byte>(decompressed_).subspan(consumed_);
  if (rest.size() < sizeof(perf_event_header)) return std::nullopt;
  const auto header = ByteReader(rest).Read<perf_event_header>();
  if (header.size < sizeof header || Is(header.type, UserRecord::kCompressed) ||
      Is(header.type, UserRecord::kCompressed2))
    return NoRecord(header);
  if (header.size > rest.size()) return std::nullopt;
  consumed_ += header.size;
  return rest.first(header.size);
}

absl::StatusOr<std::optional<std::span<const std::byte>>> RecordStream::Next() {
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<std::span<const std::byte>> inner, NextDecompressed());
    if (inner.has_value()) return inner;
    ASSIGN_OR_RETURN(const bool more, ReadRecord());
    if (!more) {
      truncated_ = truncated_ || consumed_ < decompressed_.size();
      return std::nullopt;
    }
    const auto type = ByteReader(record_).Read<perf_event_header>().type;
    if (Is(type, UserRecord::kCompressed) || Is(type, UserRecord::kCompressed2)) {
      RETURN_IF_ERROR(Decompress());
      continue;
    }
    RETURN_IF_ERROR(SkipTrailingData());
    return record_;
  }
}

}  // namespace perfd
