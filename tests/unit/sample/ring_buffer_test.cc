#include "agent/sample/ring/ring_buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "tests/unit/perfdata/record_builder.h"
#include "tests/unit/sample/fake_kernel.h"

namespace perfd::agent {
namespace {

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

// Peek sees what Take then gives, wherever records wrap, and neither more than the last Look.
TEST(RingBuffer, PeeksAtWhatTheLastLookSawAndTakesNoMore) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 100; ++round) {
    FakeKernel kernel(4096, (random() % 1000) * 8);
    RingBuffer reader = kernel.Reader();
    for (uint64_t lap = 0; lap < 5; ++lap) {
      std::vector<std::vector<std::byte>> expected;
      for (uint64_t i = 0; i < 30; ++i) {
        const auto record = Record(lap * 100 + i, 1 + random() % 40);
        if (!kernel.Write(record)) break;
        expected.push_back(record);
      }
      reader.Snapshot();
      const bool later = kernel.Write(Record(999, 2));
      uint64_t cursor = RingBuffer::kFirst;
      for (const auto& record : expected) ASSERT_TRUE(Same(reader.Peek(&cursor), record));
      ASSERT_TRUE(reader.Peek(&cursor).empty());
      for (const auto& record : expected) ASSERT_TRUE(Same(reader.Pop(), record));
      ASSERT_TRUE(reader.Pop().empty()) << "written after the look";
      if (later) {
        ASSERT_TRUE(Same(reader.Next(), Record(999, 2)));
      }
      ASSERT_TRUE(reader.Next().empty());
    }
    EXPECT_EQ(reader.corrupt(), 0u);
  }
}

TEST(RingBuffer, PeekEndsAtACorruptRecordAndTakeCountsIt) {
  FakeKernel kernel(4096);
  RingBuffer reader = kernel.Reader();
  ASSERT_TRUE(kernel.Write(Record(1, 2)));
  ASSERT_TRUE(kernel.Write(Record(2, 2)));
  const uint16_t size = 12;
  std::memcpy(kernel.Bytes() + 16 + 6, &size, 2);
  reader.Snapshot();
  uint64_t cursor = RingBuffer::kFirst;
  EXPECT_FALSE(reader.Peek(&cursor).empty());
  EXPECT_TRUE(reader.Peek(&cursor).empty());
  EXPECT_EQ(reader.corrupt(), 0u);
  EXPECT_FALSE(reader.Pop().empty());
  EXPECT_TRUE(reader.Pop().empty());
  EXPECT_EQ(reader.corrupt(), 1u);
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
}  // namespace perfd::agent
