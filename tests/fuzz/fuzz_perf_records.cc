// A stream of foreign records: first the layout of two events, byte by byte, then records in a ring, from a position of the
// input's choice.
#include <linux/perf_event.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <variant>
#include <vector>

#include "agent/sample/ring/ring_buffer.h"
#include "core/perfdata/records/event_set.h"

namespace {

constexpr size_t kRingBytes = 4096;

// Reads every byte that the spans claim, for the address sanitizer.
uint64_t Touch(const perfd::Sample& sample) {
  uint64_t sum = std::accumulate(sample.callchain.begin(), sample.callchain.end(), uint64_t{0});
  sum = std::accumulate(sample.entry.chain.begin(), sample.entry.chain.end(), sum);
  sum = std::accumulate(sample.user.registers.begin(), sample.user.registers.end(), sum);
  for (const std::byte b : sample.user.stack) sum += static_cast<uint64_t>(b);
  return sum;
}

// Which fields the samples have is the first four bytes' choice; the second event has an identifier and an address as well.
std::vector<perfd::IdentifiedEvent> Events(const uint8_t* data) {
  perfd::EventLayout layout;
  uint32_t bits = 0;
  std::memcpy(&bits, data, sizeof bits);
  layout.sample_type = bits % PERF_SAMPLE_MAX;
  layout.sample_id_all = (bits >> 25 & 1) != 0;
  layout.read_format = data[4] % PERF_FORMAT_MAX;
  layout.branch_sample_type = (data[4] & 0x80) != 0 ? PERF_SAMPLE_BRANCH_HW_INDEX : 0;
  layout.user_registers = (bits >> 26 & 1) != 0 ? perfd::kUserRegisterMask : bits >> 26;
  layout.interrupt_registers = data[5];
  std::vector<perfd::IdentifiedEvent> events = {{layout, {1}}};
  if ((bits >> 31 & 1) != 0) {
    layout.sample_type |= PERF_SAMPLE_ADDR;
    events.push_back({layout, {2, 3}});
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHead = 8;
  if (size < kHead) return 0;
  auto events = perfd::EventSet::Create(Events(data));
  if (!events.ok()) return 0;
  const auto control = std::make_unique<perf_event_mmap_page>();
  const uint64_t start = (static_cast<uint64_t>(data[6]) << 8 | data[7]) * 8;
  const size_t length = std::min(size - kHead, kRingBytes);
  std::vector<uint64_t> ring(kRingBytes / 8);
  auto* bytes = reinterpret_cast<std::byte*>(ring.data());
  for (size_t i = 0; i < length; ++i) bytes[(start + i) % kRingBytes] = std::byte{data[kHead + i]};
  control->data_tail = start;
  perfd::agent::RingBuffer reader(control.get(), {bytes, kRingBytes});
  control->data_head = start + length;
  uint64_t sum = 0;
  size_t seen = 0;
  for (auto record = reader.Next(); !record.empty(); record = reader.Next()) {
    seen += record.size();
    if (seen > length) std::abort();
    sum += events->TimeOf(record);
    const perfd::EventSet::Decoded decoded = events->Decode(record);
    if (decoded.event >= events->size()) std::abort();
    if (const auto* sample = std::get_if<perfd::Sample>(&decoded.record)) sum += Touch(*sample);
  }
  if (control->data_tail != start + length) std::abort();
  volatile uint64_t keep = sum;
  static_cast<void>(keep);
  return 0;
}
