// core/perfdata/records/record_decoder.h - bytes of one perf record -> what it says. Pure; the bytes are foreign.
//
// Shape    Decode(bytes) -> variant. A Sample's spans point into the decoder and the bytes: valid until either changes.
// Errors   a record that contradicts its header or its layout is MalformedRecord; a kind that is not needed is
//          IgnoredRecord, whatever its contents.
// Threads  thread-bound.
// Source   perf_event_open(2) "MMAP layout"; include/uapi/linux/perf_event.h, enum perf_event_type; the order of the fields of a
//          sample: kernel/events/core.c perf_output_sample (the header's comment has PERF_SAMPLE_AUX elsewhere).
#ifndef CORE_PERFDATA_RECORDS_RECORD_DECODER_H_
#define CORE_PERFDATA_RECORDS_RECORD_DECODER_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "core/base/byte_reader.h"
#include "core/perfdata/records/event_layout.h"
#include "core/perfdata/records/sample.h"

namespace perfd {

struct MalformedRecord {};
struct IgnoredRecord {};
struct LostRecord {
  uint64_t count = 0;
  bool samples =
      false;  // LOST_SAMPLES: samples of an event; else records of any kind that a ring had no room for
  uint64_t time_ns = 0;
};
struct ThrottleRecord {
  bool begin = true;  // false: UNTHROTTLE
};

using PerfRecord = std::variant<MalformedRecord, IgnoredRecord, Sample, MappingEvent, TaskEvent,
                                LostRecord, ThrottleRecord>;

// Kinds from here on are perf's own, written into files (tools/lib/perf/include/perf/event.h, PERF_RECORD_USER_TYPE_START).
inline constexpr uint32_t kFirstUserRecord = 64;

class RecordDecoder {
 public:
  // `clock_offset_ns`: added to every time. Of a layout that it cannot decode every sample is malformed.
  explicit RecordDecoder(const EventLayout& layout, int64_t clock_offset_ns = 0);

  PerfRecord Decode(std::span<const std::byte> record);
  const EventLayout& layout() const { return layout_; }
  // The time of any record; 0: it has none. Without its contents.
  uint64_t TimeOf(std::span<const std::byte> record) const;
  // Mappings and task events: what must be known before the samples of the same time are understood.
  static bool ExplainsSamples(std::span<const std::byte> record);

 private:
  PerfRecord DecodeSample(ByteReader body, uint16_t misc);
  void ReadFixedFields(ByteReader& body, Sample* sample) const;
  void SkipCounters(ByteReader& body) const;
  bool ReadCallchain(ByteReader& body, Sample* sample);
  bool SkipRaw(ByteReader& body) const;
  bool SkipBranches(ByteReader& body) const;
  bool ReadRegisters(ByteReader& body, Sample* sample);
  void RetainUserRegisters(bool wide);
  bool ReadStack(ByteReader& body, Sample* sample) const;
  bool ReadAccess(ByteReader& body, Sample* sample) const;
  uint64_t TrailerTime(std::span<const std::byte> trailer) const;

  bool Has(uint64_t bit) const { return layout_.Has(bit); }
  uint64_t Here(uint64_t time_ns) const {
    return time_ns + static_cast<uint64_t>(clock_offset_ns_);
  }

  EventLayout layout_;
  int64_t clock_offset_ns_;
  size_t trailer_bytes_;
  std::vector<uint64_t> callchain_;
  std::vector<uint64_t> kernel_chain_;
  std::vector<uint64_t> registers_;
};

}  // namespace perfd

#endif  // CORE_PERFDATA_RECORDS_RECORD_DECODER_H_
