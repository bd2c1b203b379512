#include "core/perfdata/records/event_layout.h"

#include <bit>

namespace perfd {
namespace {

constexpr size_t kFieldBytes = 8;

// Each adds 8 bytes to the trailer. Source: "struct sample_id".
constexpr uint64_t kTrailerBits = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                                  PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
// Before PERF_SAMPLE_ID in a sample, and after it in a trailer.
constexpr uint64_t kBeforeId =
    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
constexpr uint64_t kAfterId = PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU;

constexpr uint64_t kKnownSampleType = PERF_SAMPLE_MAX - 1;
constexpr uint64_t kKnownReadFormat = PERF_FORMAT_MAX - 1;
// Those that add to a sample: HW_INDEX does, COUNTERS (1 << 19, Linux 6.8) would.
constexpr uint64_t kKnownBranchType = PERF_SAMPLE_BRANCH_MAX - 1;

size_t FieldsOf(uint64_t bits) {
  return kFieldBytes * static_cast<size_t>(std::popcount(bits));
}

}  // namespace

EventLayout EventLayout::Of(const perf_event_attr& attr) {
  EventLayout out;
  out.sample_type = attr.sample_type;
  out.sample_id_all = attr.sample_id_all != 0;
  out.read_format = attr.read_format;
  out.branch_sample_type = attr.branch_sample_type;
  out.user_registers = attr.sample_regs_user;
  out.interrupt_registers = attr.sample_regs_intr;
  out.fixed_period = attr.freq != 0 ? 0 : attr.sample_period;
  return out;
}

bool EventLayout::can_decode() const {
  if ((sample_type & ~kKnownSampleType) != 0) return false;
  if (Has(PERF_SAMPLE_READ) && (read_format & ~kKnownReadFormat) != 0) return false;
  return !Has(PERF_SAMPLE_BRANCH_STACK) || (branch_sample_type & ~kKnownBranchType) == 0;
}

int EventLayout::SampleIdOffset() const {
  if (Has(PERF_SAMPLE_IDENTIFIER)) return 0;
  return Has(PERF_SAMPLE_ID) ? static_cast<int>(FieldsOf(sample_type & kBeforeId)) : -1;
}

int EventLayout::TrailerIdOffset() const {
  if (!sample_id_all) return -1;
  if (Has(PERF_SAMPLE_IDENTIFIER)) return kFieldBytes;
  if (!Has(PERF_SAMPLE_ID)) return -1;
  return static_cast<int>(kFieldBytes + FieldsOf(sample_type & kAfterId));
}

size_t EventLayout::TrailerBytes() const {
  return sample_id_all ? FieldsOf(sample_type & kTrailerBits) : 0;
}

}  // namespace perfd
