// core/perfdata/records/event_layout.h - how the kernel lays out the records of one event.
//
// Shape    from the event's perf_event_attr, which is trusted as little as the records: what it asks for beyond the fields
//          that are known makes can_decode() false.
// Source   perf_event_open(2) "MMAP layout"; include/uapi/linux/perf_event.h.
#ifndef CORE_PERFDATA_RECORDS_EVENT_LAYOUT_H_
#define CORE_PERFDATA_RECORDS_EVENT_LAYOUT_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>

namespace perfd {

// AX..IP and R8..R15: what an x86-64 unwinder needs. Bits: arch/x86/include/uapi/asm/perf_regs.h.
inline constexpr uint64_t kUserRegisterMask = 0xff01ff;
inline constexpr int kUserRegisterCount = 17;
// Where a thread came into the kernel.
inline constexpr uint64_t kUserIpMask = 1u << 8;

struct EventLayout {
  uint64_t sample_type = 0;
  bool sample_id_all = true;
  uint64_t read_format = 0;
  uint64_t branch_sample_type = 0;
  uint64_t user_registers = 0;
  uint64_t interrupt_registers = 0;
  uint64_t fixed_period = 0;  // 0: by frequency

  bool operator==(const EventLayout&) const = default;

  static EventLayout Of(const perf_event_attr& attr);
  bool Has(uint64_t bit) const { return (sample_type & bit) != 0; }
  // Every field that its samples have is known.
  bool can_decode() const;
  // The identifier of the event in bytes from the first after the header, of a sample; -1: it has none.
  int SampleIdOffset() const;
  // The same of other records, in bytes before the end.
  int TrailerIdOffset() const;
  // The sample_id at the end of records that are no samples.
  size_t TrailerBytes() const;
};

}  // namespace perfd

#endif  // CORE_PERFDATA_RECORDS_EVENT_LAYOUT_H_
