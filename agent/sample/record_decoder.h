// agent/sample/record_decoder.h - bytes of one perf record -> what it says. Pure; the bytes are foreign.
//
// Shape    Decode(bytes) -> variant. A Sample's spans point into the decoder and the bytes: valid until either changes.
// Errors   a record that contradicts its header or its layout is MalformedRecord; a kind that is not needed is
//          IgnoredRecord, whatever its contents.
// Threads  thread-bound.
// Source   perf_event_open(2) "MMAP layout", order of the PERF_SAMPLE_* fields; include/uapi/linux/perf_event.h,
//          enum perf_event_type.
#ifndef AGENT_SAMPLE_RECORD_DECODER_H_
#define AGENT_SAMPLE_RECORD_DECODER_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "agent/kernel/kernel_causes.h"
#include "agent/sample/sample_source.h"
#include "core/base/byte_reader.h"

namespace perfd::agent {

// AX..IP and R8..R15: what an x86-64 unwinder needs. Bits: arch/x86/include/uapi/asm/perf_regs.h.
inline constexpr uint64_t kUserRegisterMask = 0xff01ff;
inline constexpr int kUserRegisterCount = 17;
// Where a thread came into the kernel.
inline constexpr uint64_t kUserIpMask = 1u << 8;

// How the samples of one event are laid out. Only the fields below can be decoded.
inline constexpr uint64_t kBaseSampleType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
                                            PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                                            PERF_SAMPLE_PERIOD;
inline constexpr uint64_t kDecodableSampleType =
    kBaseSampleType | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

struct MalformedRecord {};
struct IgnoredRecord {};
struct LostRecord {
  uint64_t count = 0;
};
struct ThrottleRecord {
  bool begin = true;  // false: UNTHROTTLE
};

using PerfRecord = std::variant<MalformedRecord, IgnoredRecord, Sample, MappingEvent, TaskEvent,
                                LostRecord, ThrottleRecord>;

class RecordDecoder {
 public:
  // `sample_type`: bits of kDecodableSampleType, as in the attr, with sample_id_all set.
  // `clock_offset_ns`: added to every time (perf_clock.h). `register_mask`: kUserRegisterMask or kUserIpMask, as in the attr.
  // `causes`: null, or outlives this.
  explicit RecordDecoder(uint64_t sample_type, int64_t clock_offset_ns = 0,
                         uint64_t register_mask = kUserRegisterMask,
                         const KernelCauses* causes = nullptr);

  PerfRecord Decode(std::span<const std::byte> record);
  // Samples carry a copy of the stack.
  bool has_stacks() const { return Has(PERF_SAMPLE_STACK_USER); }
  // Mappings and task events: what must be known before the samples of the same time are understood.
  static bool ExplainsSamples(std::span<const std::byte> record);

 private:
  PerfRecord DecodeSample(ByteReader body, uint16_t misc);
  bool ReadCallchain(ByteReader& body);
  bool ReadRegisters(ByteReader& body, Sample* sample);
  bool ReadStack(ByteReader& body, Sample* sample) const;
  PerfRecord DecodeMapping(ByteReader body, uint16_t misc, uint64_t time_ns) const;
  uint64_t TimeOf(std::span<const std::byte> trailer) const;

  uint64_t Here(uint64_t time_ns) const {
    return time_ns + static_cast<uint64_t>(clock_offset_ns_);
  }
  bool Has(uint64_t bit) const { return (sample_type_ & bit) != 0; }

  uint64_t sample_type_;
  int64_t clock_offset_ns_;
  size_t trailer_bytes_;  // sample_id at the end of every other record
  uint64_t register_mask_;
  const KernelCauses* causes_;
  std::vector<uint64_t> callchain_;
  std::vector<uint64_t> kernel_chain_;
  std::vector<uint64_t> registers_;
};

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_RECORD_DECODER_H_
