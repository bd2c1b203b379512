#include "agent/experiment/plan/shared_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

namespace perfd::agent {
namespace {

Reference Reads(int32_t bytes = 8) {
  return {.instruction = 0x401000, .reads = true, .bytes = bytes};
}

Reference Writes(int32_t bytes = 8) {
  return {.instruction = 0x401008, .writes = true, .bytes = bytes};
}

// As TRACE records them.
TraceRecord Record(const std::vector<uint64_t>& addresses) {
  TraceRecord record{~uint64_t{0}, 0, addresses.empty() ? 0 : addresses[0], addresses.size(), 0};
  for (const uint64_t address : addresses) {
    record.lowest = std::min(record.lowest, address);
    record.highest = std::max(record.highest, address);
    record.sum += address;
  }
  return record;
}

std::vector<uint64_t> Steps(uint64_t begin, uint64_t count, int64_t step) {
  std::vector<uint64_t> addresses;
  for (uint64_t i = 0; i < count; ++i)
    addresses.push_back(begin + static_cast<uint64_t>(static_cast<int64_t>(i) * step));
  return addresses;
}

TraceRecord Fixed(uint64_t address, uint64_t count = 1000) {
  return Record(std::vector<uint64_t>(count, address));
}

ThreadTrace Thread(std::vector<TraceRecord> records, uint64_t passes = 1000) {
  return {.records = std::move(records), .traced_iterations = passes, .whole_iterations = passes};
}

bool Shares(const Reference& reference, const TraceRecord& a, const TraceRecord& b) {
  return SharedReferences(std::vector{reference}, std::vector{Thread({a}), Thread({b})})[0];
}

TEST(SharedReferences, CountersOfTwoThreadsInOneLine) {
  EXPECT_TRUE(Shares(Writes(), Fixed(4096), Fixed(4104)));
  EXPECT_TRUE(Shares(Writes(), Fixed(4096), Fixed(4096))) << "of one counter";
  EXPECT_TRUE(Shares(Writes(), Fixed(4096 + 56), Fixed(4096)));
  EXPECT_FALSE(Shares(Writes(), Fixed(4096), Fixed(4096 + 64)));
  EXPECT_TRUE(Shares(Writes(16), Fixed(4096), Fixed(4096 - 8))) << "it reaches into the next line";
  EXPECT_FALSE(Shares(Reads(), Fixed(4096), Fixed(4096))) << "nobody writes there";
}

// Each thread's half of an array, whose seam lies within a line.
TEST(SharedReferences, PartsThatTouchAreNotShared) {
  const auto parts = [](uint64_t seam) {
    return Shares(Writes(), Record(Steps(4096 + 8, 1000, 8)), Record(Steps(seam, 1000, 8)));
  };
  EXPECT_FALSE(parts(4104 + 8000));
  EXPECT_FALSE(parts(4104 + 8000 - 8)) << "they meet in one element";
  EXPECT_FALSE(parts(4104 + 8000 - 800)) << "in a tenth of them: a seam";
  EXPECT_TRUE(parts(4104 + 8000 - 5000)) << "in most of them";
}

TEST(SharedReferences, TurnsOfTwoThreadsInOneArray) {
  EXPECT_TRUE(Shares(Writes(), Record(Steps(4096, 1000, 16)), Record(Steps(4104, 1000, 16))));
  EXPECT_TRUE(
      Shares(Writes(), Record(Steps(4096 + 15984, 1000, -16)), Record(Steps(4104, 1000, 16))))
      << "downwards";
  EXPECT_TRUE(Shares(Writes(), Record(Steps(4096, 1000, 128)), Record(Steps(4104, 1000, 128))))
      << "columns, a line for each row";
  EXPECT_FALSE(Shares(Writes(), Record(Steps(4096, 1000, 128)), Record(Steps(4160, 1000, 128))))
      << "lines in turn";
}

// One writes what the other reads.
TEST(SharedReferences, TellsBothSides) {
  const std::vector<Reference> references = {Writes(), Reads(), Reads()};
  const TraceRecord none = Record({});
  const std::vector<ThreadTrace> threads = {
      Thread({Fixed(4096), none, Record(Steps(1 << 20, 1000, 8))}),
      Thread({none, Fixed(4100), Record(Steps(1 << 21, 1000, 8))})};
  EXPECT_EQ(SharedReferences(references, threads), (std::vector<bool>{true, true, false}));
}

TEST(SharedReferences, RareOnesCostLittle) {
  const auto often = [](uint64_t writes, uint64_t reads) -> bool {
    const std::vector<Reference> references = {Writes(), Reads()};
    const TraceRecord none = Record({});
    return SharedReferences(references, std::vector{Thread({Fixed(4096, writes), none}),
                                                    Thread({none, Fixed(4096, reads)})})[0];
  };
  EXPECT_TRUE(often(10, 1000));
  EXPECT_FALSE(often(9, 1000)) << "a flag that is set now and then";
  EXPECT_FALSE(often(1000, 9)) << "or looked at";
}

TEST(SharedReferences, WhatTheTraceDoesNotTellIsNotSaid) {
  std::vector<uint64_t> scattered = Steps(4096, 1000, 16);
  scattered[500] += 8;
  EXPECT_FALSE(Shares(Writes(), Record(scattered), Record(Steps(4104, 1000, 16))));
  std::vector<uint64_t> twice = Steps(4096, 500, 16);
  twice.insert(twice.end(), twice.begin(), twice.end());
  EXPECT_FALSE(Shares(Writes(), Record(twice), Record(Steps(4104, 1000, 16))));
  Reference unseen = Writes();
  unseen.traced = false;
  EXPECT_FALSE(Shares(unseen, Fixed(4096), Fixed(4096)));
  EXPECT_FALSE(Shares(Writes(), Fixed(4096), Record({})));
  EXPECT_FALSE(SharedReferences(std::vector{Writes()}, std::vector{Thread({Fixed(4096)})})[0]);
}

// Against a count of every access, line by line: what is said is so.
TEST(SharedReferences, AreSharedAsACountOfEveryAccessSays) {
  std::mt19937 random(1);
  const auto below = [&](uint64_t n) { return random() % n; };
  int said = 0;
  for (int round = 0; round < 2000; ++round) {
    const size_t threads = 2 + below(3);
    const std::vector<Reference> references = {Writes(), Reads()};
    std::vector<ThreadTrace> traces;
    // By line and thread: touched, written.
    std::map<uint64_t, std::map<size_t, std::pair<uint64_t, uint64_t>>> lines;
    for (size_t thread = 0; thread < threads; ++thread) {
      std::vector<TraceRecord> records;
      for (const Reference& reference : references) {
        const int64_t step = std::array<int64_t, 6>{0, 8, 16, 64, 128, -8}[below(6)];
        const auto at = Steps(1'000'000 + 8 * below(200), 1 + below(100), step);
        records.push_back(Record(at));
        for (const uint64_t address : at) {
          auto& [touched, written] = lines[address / 64][thread];
          ++touched;
          written += reference.writes;
        }
      }
      traces.push_back(Thread(std::move(records), 100));
    }
    bool any = false;
    for (const auto& [line, users] : lines) {
      for (const auto& [thread, use] : users) any |= use.second > 0 && users.size() > 1;
    }
    const std::vector<bool> shared = SharedReferences(references, traces);
    if (!shared[0] && !shared[1]) continue;
    ++said;
    ASSERT_TRUE(any) << round;
  }
  EXPECT_GT(said, 100);
}

}  // namespace
}  // namespace perfd::agent
