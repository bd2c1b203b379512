// agent/sample/ring/ring_buffer.h - reads whole kernel records from one perf_event ring, in order.
//
// Shape    Next() -> span of bytes: one record, header first, contiguous, 8-byte aligned; empty when there is none.
//          Or in two steps: Snapshot() notes what is there now; Peek walks over it, Pop consumes it and no more than it.
//          A span is valid until the next call; Next and Pop then give its bytes back to the kernel.
// Units    sizes in bytes; the data area is a power of two.
// Errors   Next never fails. A record that contradicts the ring empties the ring and is counted in corrupt().
// Threads  thread-bound: one reader. The kernel is the only writer.
// Loss     kernel overruns arrive as PERF_RECORD_LOST and are returned like any record.
// Source   perf_event_open(2) "MMAP layout"; include/uapi/linux/perf_event.h, comment at data_head (barriers).
#ifndef AGENT_SAMPLE_RING_RING_BUFFER_H_
#define AGENT_SAMPLE_RING_RING_BUFFER_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace perfd::agent {

class RingBuffer {
 public:
  // Neither is owned. `data` is 8-byte aligned and its size a power of two.
  RingBuffer(perf_event_mmap_page* control, std::span<const std::byte> data);

  std::span<const std::byte> Next();
  void Snapshot();
  // The record at `cursor`, which is moved behind it; the first one for kFirst. Empty: no more, or a corrupt one.
  std::span<const std::byte> Peek(uint64_t* cursor);
  std::span<const std::byte> Pop();
  static constexpr uint64_t kFirst = UINT64_MAX;
  uint64_t corrupt() const { return corrupt_; }

 private:
  void Publish();
  uint64_t SizeAt(uint64_t position) const;
  std::span<const std::byte> At(uint64_t position, size_t size);
  void CopyOut(uint64_t from, std::span<std::byte> to) const;

  perf_event_mmap_page* control_;
  std::span<const std::byte> data_;
  uint64_t tail_;       // first byte not yet returned
  uint64_t published_;  // what the kernel knows of it
  uint64_t head_;       // last head seen: spares an acquire load per record
  uint64_t corrupt_ = 0;
  std::vector<std::byte> scratch_;  // for records that wrap
};

}  // namespace perfd::agent

#endif  // AGENT_SAMPLE_RING_RING_BUFFER_H_
