// A recording of foreign bytes: as they are, or (first byte odd) with the rest as the compressed records of one event, whose
// compression is right.
#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <variant>
#include <vector>

#include "core/perfdata/recording.h"
#include "tests/unit/perfdata/recording_builder.h"

namespace {

std::vector<std::byte> Compressed(std::span<const std::byte> inner) {
  perf_event_attr attr{};
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                     PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC |
                     PERF_SAMPLE_RAW;
  attr.sample_id_all = 1;
  perfd::RecordingBuilder builder;
  builder.Event(attr, {1});
  constexpr size_t kPiece = 4000;
  for (size_t at = 0; at < inner.size(); at += kPiece) {
    const auto piece = inner.subspan(at, std::min(kPiece, inner.size() - at));
    builder.Record(perfd::RecordingBuilder::User(
        81, perfd::RecordingBuilder::Frame({piece.begin(), piece.end()})));
  }
  return builder.Pipe();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(data, size).subspan(1));
  std::vector<std::byte> bytes(rest.begin(), rest.end());
  if ((data[0] & 1) != 0) bytes = Compressed(rest);
  auto recording = perfd::Recording::Open(perfd::BytesInMemory(bytes));
  if (!recording.ok()) return 0;
  uint64_t records = 0;
  while (true) {
    const auto next = (*recording)->Next();
    if (!next.ok() || !next->has_value()) break;
    if ((*next)->event >= (*recording)->events().size()) std::abort();
    ++records;
  }
  uint64_t counted = 0;
  for (uint32_t kind = 0; kind < perfd::kFirstUserRecord; ++kind)
    counted += (*recording)->counts().records[kind];
  // Every record of the kernel came out once, also where the reading ended early.
  if (records > counted) std::abort();
  return 0;
}
