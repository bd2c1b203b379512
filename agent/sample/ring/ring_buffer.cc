#include "agent/sample/ring/ring_buffer.h"

#include <algorithm>
#include <cstring>

namespace perfd::agent {

// Source: include/uapi/linux/perf_event.h. The two words shared with the kernel have fixed places.
static_assert(offsetof(perf_event_mmap_page, data_head) == 1024);
static_assert(offsetof(perf_event_mmap_page, data_tail) == 1032);
static_assert(sizeof(perf_event_header) == 8);

RingBuffer::RingBuffer(perf_event_mmap_page* control, std::span<const std::byte> data)
    : control_(control), data_(data), tail_(control->data_tail), published_(tail_), head_(tail_) {}

// The release pairs with the kernel's read of data_tail: our reads of the record come before it may be overwritten.
void RingBuffer::Publish() {
  if (published_ == tail_) return;
  published_ = tail_;
  __atomic_store_n(&control_->data_tail, published_, __ATOMIC_RELEASE);
}

void RingBuffer::CopyOut(uint64_t from, std::span<std::byte> to) const {
  const size_t at = from & (data_.size() - 1);
  const size_t first = std::min(to.size(), data_.size() - at);
  std::memcpy(to.data(), data_.data() + at, first);
  if (first < to.size()) std::memcpy(to.data() + first, data_.data(), to.size() - first);
}

// The acquire pairs with the kernel's barrier between writing a record and moving data_head.
void RingBuffer::Snapshot() {
  head_ = __atomic_load_n(&control_->data_head, __ATOMIC_ACQUIRE);
}

// 0: what is there cannot be a record. The kernel writes sizes that are multiples of 8 and never laps the reader.
uint64_t RingBuffer::SizeAt(uint64_t position) const {
  const uint64_t available = head_ - position;
  perf_event_header header{};
  if (available < sizeof header || available > data_.size()) return 0;
  CopyOut(position, std::as_writable_bytes(std::span(&header, 1)));
  const bool sound =
      header.size >= sizeof header && header.size % 8 == 0 && header.size <= available;
  return sound ? header.size : 0;
}

std::span<const std::byte> RingBuffer::At(uint64_t position, size_t size) {
  const size_t at = position & (data_.size() - 1);
  if (at + size <= data_.size()) return data_.subspan(at, size);
  scratch_.resize(size);
  CopyOut(position, scratch_);
  return scratch_;
}

std::span<const std::byte> RingBuffer::Peek(uint64_t* cursor) {
  if (*cursor == kFirst) *cursor = tail_;
  if (*cursor == head_) return {};
  const uint64_t size = SizeAt(*cursor);
  if (size == 0) return {};
  const uint64_t position = *cursor;
  *cursor += size;
  return At(position, size);
}

std::span<const std::byte> RingBuffer::Pop() {
  Publish();
  if (tail_ == head_) return {};
  const uint64_t size = SizeAt(tail_);
  if (size == 0) {  // nothing behind it can be made out
    ++corrupt_;
    tail_ = head_;
    Publish();
    return {};
  }
  const uint64_t position = tail_;
  tail_ += size;
  return At(position, size);
}

std::span<const std::byte> RingBuffer::Next() {
  if (tail_ == head_) {
    Publish();
    Snapshot();
  }
  return Pop();
}

}  // namespace perfd::agent
