#include "agent/sample/ring_buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "tests/unit/sample/record_builder.h"

namespace perfd {
namespace {

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

// A record of `words` 8-byte words with recognisable contents.
std::vector<std::byte> Record(uint64_t serial, size_t words) {
  RecordBuilder b(PERF_RECORD_SAMPLE, 0);
  for (size_t i = 1; i < words; ++i) b.U64(serial * 1000 + i);
  return b.Build();
}

bool Same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

TEST(RingBuffer, EmptyRingHasNoRecords) {
  FakeKernel kernel(4096);
  RingBuffer reader = kernel.Reader();
  EXPECT_TRUE(reader.Next().empty());
  EXPECT_TRUE(reader.Next().empty());
  EXPECT_EQ(reader.corrupt(), 0u);
}

TEST(RingBuffer, GivesBytesBackOnlyAfterTheNextCall) {
  FakeKernel kernel(4096);
  RingBuffer reader = kernel.Reader();
  ASSERT_TRUE(kernel.Write(Record(1, 4)));
  ASSERT_FALSE(reader.Next().empty());
  EXPECT_EQ(kernel.control().data_tail, 0u);
  EXPECT_TRUE(reader.Next().empty());
  EXPECT_EQ(kernel.control().data_tail, 32u);
}

// Random sizes from random starts, so that records wrap at every word, also inside the header's own word.
TEST(RingBuffer, ReturnsEveryRecordInOrderWhereverItWraps) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    const uint64_t start = (random() % 10'000) * 8 + (round % 3 == 0 ? UINT64_MAX - 8191 : 0);
    FakeKernel kernel(4096, start);
    RingBuffer reader = kernel.Reader();
    uint64_t written = 0;
    uint64_t read = 0;
    std::vector<std::vector<std::byte>> expected;
    while (read < 100) {
      const auto record = Record(written, 1 + random() % 60);
      if (written < 100 && random() % 3 != 0 && kernel.Write(record)) {
        expected.push_back(record);
        ++written;
        continue;
      }
      const auto got = reader.Next();
      if (got.empty()) {
        ASSERT_EQ(read, written);
        continue;
      }
      ASSERT_TRUE(Same(got, expected[read])) << "round " << round << " record " << read;
      ASSERT_EQ(reinterpret_cast<uintptr_t>(got.data()) % 8, 0u);
      ++read;
    }
    EXPECT_EQ(reader.corrupt(), 0u);
  }
}

TEST(RingBuffer, ARecordMayFillTheWholeRing) {
  FakeKernel kernel(4096, 8);
  RingBuffer reader = kernel.Reader();
  const auto record = Record(1, 512);
  ASSERT_TRUE(kernel.Write(record));
  EXPECT_TRUE(Same(reader.Next(), record));
}

TEST(RingBuffer, RecordsThatContradictTheRingEmptyItAndAreCounted) {
  struct Case {
    uint16_t size;
    uint64_t head;
  };
  for (const Case& c :
       {Case{0, 64}, Case{7, 64}, Case{12, 64}, Case{72, 64}, Case{16, 4}, Case{16, 4104}}) {
    FakeKernel kernel(4096);
    RingBuffer reader = kernel.Reader();
    std::memcpy(kernel.Bytes() + 6, &c.size, 2);
    kernel.control().data_head = c.head;
    EXPECT_TRUE(reader.Next().empty());
    EXPECT_EQ(reader.corrupt(), 1u) << c.size << " " << c.head;
    EXPECT_EQ(kernel.control().data_tail, c.head);
    EXPECT_TRUE(reader.Next().empty());
    EXPECT_EQ(reader.corrupt(), 1u);
  }
}

// The barriers, for the thread sanitizer and for weaker machines.
TEST(RingBuffer, ReadsWhileAnotherThreadWrites) {
  constexpr uint64_t kRecords = 20'000;
  FakeKernel kernel(4096);
  RingBuffer reader = kernel.Reader();
  std::thread writer([&] {
    for (uint64_t i = 0; i < kRecords;) {
      if (kernel.Write(Record(i, 2 + i % 9))) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  uint64_t read = 0;
  bool same = true;
  while (read < kRecords) {
    const auto got = reader.Next();
    if (got.empty()) {
      std::this_thread::yield();
      continue;
    }
    same = same && Same(got, Record(read, 2 + read % 9));
    ++read;
  }
  writer.join();
  EXPECT_TRUE(same);
  EXPECT_EQ(reader.corrupt(), 0u);
}

}  // namespace
}  // namespace perfd
