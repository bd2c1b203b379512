// Recordings that others made, and what perf 6.1 says of them. Those whose licence lets us are in tests/data/perf; the others are
// read from the folder that PERFD_RECORDINGS names, where somebody has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "core/files/own_file.h"
#include "core/perfdata/recording.h"
#include "core/zstd/zstd.h"

namespace perfd {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr size_t kLargest = size_t{16} << 20;

std::vector<std::byte> Load(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadBoundedFile(path, kLargest);
  EXPECT_TRUE(text.ok()) << text.status();
  if (!text.ok()) return {};
  const auto* first = reinterpret_cast<const std::byte*>(text->data());
  std::vector<std::byte> bytes(first, first + text->size());
  if (!path.ends_with(".zst")) return bytes;
  std::vector<std::byte> out;
  EXPECT_TRUE(DecompressStream().Append(bytes, kLargest, &out).ok());
  return out;
}

struct SampleValues {
  size_t event = 0;
  Sample sample;  // without what its spans see
};

struct Reading {
  std::map<uint32_t, uint64_t> kinds;
  std::vector<SampleValues> samples;
  RecordingCounts counts;
  RecordingFacts facts;
  std::vector<RecordedEvent> events;
};

Reading ReadAll(const std::vector<std::byte>& bytes) {
  Reading out;
  auto recording = Recording::Open(BytesInMemory(bytes));
  EXPECT_TRUE(recording.ok()) << recording.status();
  if (!recording.ok()) return out;
  while (true) {
    const auto next = (*recording)->Next();
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok() || !next->has_value()) break;
    const auto* sample = std::get_if<Sample>(&(*next)->record);
    if (sample != nullptr) out.samples.push_back({(*next)->event, *sample});
  }
  out.counts = (*recording)->counts();
  out.facts = (*recording)->facts();
  out.events = (*recording)->events();
  for (uint32_t kind = 0; kind < RecordingCounts::kKinds; ++kind)
    if (out.counts.records[kind] > 0) out.kinds[kind] = out.counts.records[kind];
  EXPECT_EQ(out.counts.malformed, 0u);
  EXPECT_EQ(out.counts.damaged_features, 0u);
  EXPECT_EQ(out.counts.late, 0u);
  EXPECT_FALSE(out.counts.truncated);
  return out;
}

enum : uint32_t {
  kMmap = 1,
  kComm = 3,
  kExit = 4,
  kFork = 7,
  kSample = 9,
  kMmap2 = 10,
  kSwitch = 14,
  kKsymbol = 17,
  kAttr = 64,
  kRound = 68,
  kIdIndex = 69,
  kThreadMap = 73,
  kCpuMap = 74,
  kUpdate = 78,
  kTimeConv = 79,
  kInit = 82,
};

TEST(Recorded, LoadLatencyOfASkylake) {
  const Reading read =
      ReadAll(Load("tests/data/perf/skx-load-latency-weight-struct.perf.data.zst"));
  EXPECT_THAT(read.kinds,
              UnorderedElementsAre(Pair(kMmap, 15), Pair(kComm, 2959), Pair(kExit, 59),
                                   Pair(kFork, 2955), Pair(kSample, 14), Pair(kMmap2, 6930),
                                   Pair(kRound, 30), Pair(kThreadMap, 1), Pair(kTimeConv, 1)));
  ASSERT_EQ(read.events.size(), 2u);
  EXPECT_EQ(read.events[0].ids.size(), 112u);
  EXPECT_EQ(read.facts.cpus_online, 112u);
  EXPECT_EQ(read.facts.numa_nodes.size(), 2u);
  EXPECT_EQ(read.facts.numa_nodes[0].cpus, "0-27,56-83");
  ASSERT_EQ(read.samples.size(), 14u);
  std::map<MemoryLevel, int> levels;
  uint64_t weight = 0;
  int walks = 0;
  int locked = 0;
  std::set<uint64_t> lines;
  for (const SampleValues& s : read.samples) {
    EXPECT_EQ(s.event, 0u);
    ASSERT_TRUE(s.sample.access.has_value());
    const MemoryAccess& access = *s.sample.access;
    ++levels[access.source.level];
    weight += access.latency_cycles;
    walks += access.source.tlb == TlbResult::kWalk ? 1 : 0;
    locked += access.source.lock == LockState::kLocked ? 1 : 0;
    lines.insert(access.address.value() / 64);
    EXPECT_EQ(access.source.operation, MemoryOperation::kLoad);
    EXPECT_EQ(access.source.snoop, SnoopResult::kNone);
    EXPECT_EQ(access.instruction_latency, 0);
    EXPECT_EQ(s.sample.period, 10'009u) << "fixed by the event";
  }
  EXPECT_THAT(levels,
              UnorderedElementsAre(Pair(MemoryLevel::kFillBuffer, 5), Pair(MemoryLevel::kL3, 4),
                                   Pair(MemoryLevel::kL1, 4), Pair(MemoryLevel::kL2, 1)));
  EXPECT_EQ(weight, 1725u);
  EXPECT_EQ(walks, 1);
  EXPECT_EQ(locked, 2);
  EXPECT_EQ(lines.size(), 14u);
  const Sample& first = read.samples.front().sample;
  EXPECT_EQ(first.time_ns / 1000, 13166196585u);
  EXPECT_EQ(first.pid, 20132);
  EXPECT_EQ(first.tid, 20144);
  EXPECT_EQ(first.cpu, 28u);
  EXPECT_EQ(first.ip, RuntimeAddress(0xffffffffa4470d46));
  EXPECT_TRUE(first.kernel);
  EXPECT_EQ(first.access->address, RuntimeAddress(0x55ffba5cda08));
  EXPECT_EQ(first.access->latency_cycles, 225u);
  const Sample& last = read.samples.back().sample;
  EXPECT_EQ(last.time_ns / 1000, 13173534502u);
  EXPECT_EQ(last.tid, 19892);
  EXPECT_EQ(last.access->address, RuntimeAddress(0x7fc3ada9f408));
  EXPECT_EQ(last.access->latency_cycles, 168u);
}

TEST(Recorded, AddressesWithoutASource) {
  const Reading read = ReadAll(Load("tests/data/perf/cfl-pebs-cycles-addr-only.perf.data.zst"));
  EXPECT_THAT(read.kinds,
              UnorderedElementsAre(Pair(kComm, 14), Pair(kExit, 13), Pair(kFork, 12),
                                   Pair(kSample, 211), Pair(kMmap2, 109), Pair(kRound, 4),
                                   Pair(kThreadMap, 1), Pair(kCpuMap, 1), Pair(kTimeConv, 1)));
  int with_address = 0;
  int user = 0;
  uint64_t period = 0;
  std::set<uint64_t> addresses;
  std::set<uint64_t> pages;
  for (const SampleValues& s : read.samples) {
    ASSERT_TRUE(s.sample.access.has_value());
    const MemoryAccess& access = *s.sample.access;
    user += s.sample.kernel ? 0 : 1;
    period += s.sample.period;
    EXPECT_EQ(access.source, MemorySource{}) << "not available is no value";
    EXPECT_EQ(access.latency_cycles, 0u);
    if (access.address == RuntimeAddress(0)) continue;
    ++with_address;
    addresses.insert(access.address.value());
    pages.insert(access.address.value() / 4096);
  }
  EXPECT_EQ(with_address, 51);
  EXPECT_EQ(addresses.size(), 48u);
  EXPECT_EQ(pages.size(), 26u);
  EXPECT_EQ(user, 126);
  EXPECT_EQ(period, 281331538u);
  ASSERT_EQ(read.events.size(), 1u);
  EXPECT_EQ(read.events[0].name, "cycles:u");
}

std::string OtherRecordings() {
  const char* folder = std::getenv("PERFD_RECORDINGS");
  return folder == nullptr ? "" : folder;
}

TEST(Recorded, APipeWithoutFeatures) {
  if (OtherRecordings().empty()) GTEST_SKIP() << "PERFD_RECORDINGS names no folder";
  const Reading read = ReadAll(Load(OtherRecordings() + "/pipe-data-src-na.perf.data"));
  EXPECT_TRUE(read.counts.piped);
  EXPECT_THAT(read.kinds,
              UnorderedElementsAre(Pair(kMmap, 112), Pair(kComm, 2), Pair(kSample, 69),
                                   Pair(kMmap2, 34), Pair(kAttr, 1), Pair(kTimeConv, 1)));
  for (const SampleValues& s : read.samples) {
    EXPECT_EQ(s.sample.tid, 11512);
    EXPECT_EQ(*s.sample.access, MemoryAccess{});
  }
}

TEST(Recorded, CompressedWithTwoLayouts) {
  if (OtherRecordings().empty()) GTEST_SKIP() << "PERFD_RECORDINGS names no folder";
  const Reading read = ReadAll(Load(OtherRecordings() + "/zen2-zstd-data-src-na.perf.data"));
  EXPECT_THAT(
      read.kinds,
      UnorderedElementsAre(Pair(kMmap, 140), Pair(kComm, 2), Pair(kExit, 25), Pair(kFork, 24),
                           Pair(kSample, 242), Pair(kMmap2, 62), Pair(kSwitch, 42), Pair(kRound, 1),
                           Pair(kThreadMap, 1), Pair(kCpuMap, 1), Pair(kTimeConv, 1)));
  EXPECT_EQ(read.counts.compression.records, 7u);
  EXPECT_EQ(read.counts.compression.bytes, 21417u);
  EXPECT_EQ(read.counts.compression.decompressed_bytes, 2073888u);
  std::map<size_t, int> of_event;
  std::set<int32_t> threads;
  for (const SampleValues& s : read.samples) {
    ++of_event[s.event];
    threads.insert(s.sample.tid);
    EXPECT_EQ(*s.sample.access, MemoryAccess{});
  }
  EXPECT_THAT(of_event, UnorderedElementsAre(Pair(0, 233), Pair(1, 9)));
}

TEST(Recorded, AHybridProcessorAndDescriptionsNewerThanOurs) {
  if (OtherRecordings().empty()) GTEST_SKIP() << "PERFD_RECORDINGS names no folder";
  const Reading read = ReadAll(Load(OtherRecordings() + "/adl-hybrid-zstd-attr136.perf.data"));
  ASSERT_EQ(read.events.size(), 3u);
  EXPECT_EQ(read.counts.compression.decompressed_bytes, 4551624u);
  EXPECT_EQ(read.kinds.at(kSample), 539u);
  EXPECT_EQ(read.kinds.at(kMmap2), 13u);
  EXPECT_EQ(read.kinds.at(kKsymbol), 2u);
  EXPECT_EQ(read.kinds.at(kRound), 8u);
  EXPECT_EQ(read.kinds.at(kUpdate), 2u);
  EXPECT_EQ(read.kinds.at(kInit), 1u);
  EXPECT_EQ(read.kinds.at(kIdIndex), 1u);
  std::set<uint32_t> cpus;
  for (const SampleValues& s : read.samples) {
    EXPECT_EQ(s.event, 1u) << "the larger cores'";
    EXPECT_EQ(s.sample.tid, 22091);
    EXPECT_EQ(*s.sample.access, MemoryAccess{});
    cpus.insert(s.sample.cpu);
  }
  EXPECT_THAT(cpus, ElementsAre(6, 7));
}

}  // namespace
}  // namespace perfd
