// A ring full of foreign bytes: first byte chooses the sample layout, the next two the read position, the rest is data.
#include <linux/perf_event.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <variant>
#include <vector>

#include "agent/sample/record_decoder.h"
#include "agent/sample/ring_buffer.h"

namespace {

constexpr size_t kRingBytes = 4096;
constexpr uint64_t kLayouts[] = {0, PERF_SAMPLE_CALLCHAIN,
                                 PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
                                 perfd::agent::kDecodableSampleType};

// Reads every byte that the spans claim, for the address sanitizer.
uint64_t Touch(const perfd::agent::Sample& sample) {
  uint64_t sum = std::accumulate(sample.callchain.begin(), sample.callchain.end(), uint64_t{0});
  sum = std::accumulate(sample.user_registers.begin(), sample.user_registers.end(), sum);
  for (const std::byte b : sample.user_stack) sum += static_cast<uint64_t>(b);
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  static const auto causes = perfd::agent::KernelCauses::Parse(
      "1000 T __x64_sys_read\n2000 t do_syscall_64\n3000 T asm_exc_page_fault\n");
  perfd::agent::RecordDecoder decoder(
      perfd::agent::kBaseSampleType | kLayouts[data[0] % 4], 0,
      data[0] < 128 ? perfd::agent::kUserRegisterMask : perfd::agent::kUserIpMask, &causes);
  const auto control = std::make_unique<perf_event_mmap_page>();
  const uint64_t start = (static_cast<uint64_t>(data[1]) << 8 | data[2]) * 8;
  const size_t length = std::min(size - 3, kRingBytes);
  std::vector<uint64_t> ring(kRingBytes / 8);
  auto* bytes = reinterpret_cast<std::byte*>(ring.data());
  for (size_t i = 0; i < length; ++i) bytes[(start + i) % kRingBytes] = std::byte{data[3 + i]};
  control->data_tail = start;
  perfd::agent::RingBuffer reader(control.get(), {bytes, kRingBytes});
  control->data_head = start + length;
  uint64_t sum = 0;
  size_t seen = 0;
  for (auto record = reader.Next(); !record.empty(); record = reader.Next()) {
    seen += record.size();
    if (seen > length) std::abort();
    const perfd::agent::PerfRecord decoded = decoder.Decode(record);
    if (const auto* sample = std::get_if<perfd::agent::Sample>(&decoded)) sum += Touch(*sample);
  }
  if (control->data_tail != start + length) std::abort();
  volatile uint64_t keep = sum;
  static_cast<void>(keep);
  return 0;
}
