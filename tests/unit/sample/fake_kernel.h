// tests/unit/sample/fake_kernel.h - the kernel's side of a perf ring.
#ifndef TESTS_UNIT_SAMPLE_FAKE_KERNEL_H_
#define TESTS_UNIT_SAMPLE_FAKE_KERNEL_H_

#include <memory>
#include <span>
#include <vector>

#include "agent/sample/ring/ring_buffer.h"

namespace perfd::agent {

// Plays the kernel: writes whole records, never over what the reader has not given back.
class FakeKernel {
 public:
  explicit FakeKernel(size_t size, uint64_t start = 0)
      : control_(std::make_unique<perf_event_mmap_page>()), data_(size / 8) {
    control_->data_head = control_->data_tail = start;
  }

  bool Write(std::span<const std::byte> record) {
    const uint64_t head = control_->data_head;
    const uint64_t tail = __atomic_load_n(&control_->data_tail, __ATOMIC_ACQUIRE);
    if (head + record.size() - tail > Size()) return false;
    for (size_t i = 0; i < record.size(); ++i) Bytes()[(head + i) % Size()] = record[i];
    __atomic_store_n(&control_->data_head, head + record.size(), __ATOMIC_RELEASE);
    return true;
  }
  RingBuffer Reader() { return RingBuffer(control_.get(), {Bytes(), Size()}); }
  perf_event_mmap_page& control() { return *control_; }
  size_t Size() const { return data_.size() * 8; }
  std::byte* Bytes() { return reinterpret_cast<std::byte*>(data_.data()); }

 private:
  std::unique_ptr<perf_event_mmap_page> control_;
  std::vector<uint64_t> data_;
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_SAMPLE_FAKE_KERNEL_H_
