#include "core/perfdata/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/perfdata/record_builder.h"
#include "tests/unit/perfdata/recording_builder.h"

namespace perfd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

perf_event_attr Attr(uint64_t more = 0) {
  perf_event_attr attr{};
  attr.sample_type =
      PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | more;
  attr.sample_id_all = 1;
  return attr;
}

std::vector<std::byte> SampleAt(uint64_t time_ns, uint64_t id = 1) {
  return RecordBuilder(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER)
      .U64(id)
      .U64(0x401000 + time_ns)
      .U32(10)
      .U32(11)
      .U64(time_ns)
      .Build();
}

struct Reading {
  absl::Status status;
  std::vector<uint64_t> times;  // of samples
  std::vector<size_t> events;   // of samples
  RecordingCounts counts;
  RecordingFacts facts;
  std::vector<RecordedEvent> described;
};

Reading ReadAll(const std::vector<std::byte>& bytes) {
  Reading out;
  auto recording = Recording::Open(BytesInMemory(bytes));
  out.status = recording.status();
  if (!recording.ok()) return out;
  while (true) {
    const auto next = (*recording)->Next();
    if (!next.ok()) out.status = next.status();
    if (!next.ok() || !next->has_value()) break;
    const auto* sample = std::get_if<Sample>(&(*next)->record);
    if (sample == nullptr) continue;
    out.times.push_back(sample->time_ns);
    out.events.push_back((*next)->event);
  }
  out.counts = (*recording)->counts();
  out.facts = (*recording)->facts();
  out.described = (*recording)->events();
  return out;
}

RecordingBuilder TwoRounds() {
  RecordingBuilder b;
  b.Event(Attr(), {1, 2}).Event(Attr(), {3});
  // Each ring is in order; the rings of one round are not among each other.
  b.Record(SampleAt(10)).Record(SampleAt(30)).Record(SampleAt(20, 3)).Round();
  b.Record(SampleAt(50, 2)).Record(SampleAt(25, 3)).Round();
  return b.Record(SampleAt(60));
}

TEST(Recording, FileAndPipeGiveTheSameInTheOrderOfTime) {
  for (const auto& bytes : {TwoRounds().File(), TwoRounds().Pipe()}) {
    const Reading read = ReadAll(bytes);
    ASSERT_TRUE(read.status.ok()) << read.status;
    EXPECT_THAT(read.times, ElementsAre(10, 20, 25, 30, 50, 60));
    EXPECT_THAT(read.events, ElementsAre(0, 1, 1, 0, 0, 0));
    EXPECT_EQ(read.counts.records[PERF_RECORD_SAMPLE], 6u);
    EXPECT_EQ(read.counts.records[68], 2u);
    EXPECT_FALSE(read.counts.truncated);
    EXPECT_EQ(read.counts.late, 0u);
  }
  EXPECT_TRUE(ReadAll(TwoRounds().Pipe()).counts.piped);
}

TEST(Recording, Features) {
  RecordingBuilder b = TwoRounds();
  b.Feature(3, Bytes().Text("node7")).Feature(6, Bytes().Text("x86_64"));
  b.Feature(7, Bytes().Add(uint32_t{64}).Add(uint32_t{48}));
  b.Feature(11, Bytes().Add(uint32_t{2}).Text("perf").Text("record"));
  b.Feature(
      14,
      Bytes().Add(uint32_t{1}).Add(uint32_t{0}).Add(uint64_t{1024}).Add(uint64_t{7}).Text("0-3"));
  Bytes build_id;
  build_id.Append(RecordingBuilder::User(67, Bytes()
                                                 .Add(int32_t{-1})
                                                 .Raw("abcdefghijklmnopqrst", 20)
                                                 .Add(uint32_t{0})
                                                 .Raw("/bin/app\0\0\0\0", 12)
                                                 .bytes));
  b.Feature(2, build_id);
  Bytes names;
  names.Add(uint32_t{2}).Add(uint32_t{sizeof(perf_event_attr)});
  for (const auto& [name, id] :
       {std::pair("loads", uint64_t{1}), std::pair("cycles:u", uint64_t{3})}) {
    names.Append(std::vector<std::byte>(sizeof(perf_event_attr)));
    names.Add(uint32_t{1}).Text(name).Add(id);
  }
  b.Feature(12, names);
  for (const auto& bytes : {b.File(), b.Pipe()}) {
    const Reading read = ReadAll(bytes);
    ASSERT_TRUE(read.status.ok()) << read.status;
    EXPECT_EQ(read.counts.damaged_features, 0u);
    EXPECT_EQ(read.facts.host, "node7");
    EXPECT_EQ(read.facts.machine, "x86_64");
    EXPECT_EQ(read.facts.cpus_online, 48u);
    EXPECT_EQ(read.facts.command, "perf record");
    ASSERT_EQ(read.facts.numa_nodes.size(), 1u);
    EXPECT_EQ(read.facts.numa_nodes[0].cpus, "0-3");
    ASSERT_EQ(read.facts.modules.size(), 1u);
    EXPECT_EQ(read.facts.modules[0].path, "/bin/app");
    EXPECT_EQ(read.facts.modules[0].build_id, "abcdefghijklmnopqrst");
    EXPECT_EQ(read.described[0].name, "loads");
    EXPECT_EQ(read.described[1].name, "cycles:u");
  }
}

TEST(Recording, DamagedFeaturesAreCountedAndTheRestIsRead) {
  RecordingBuilder b = TwoRounds();
  b.Feature(3, Bytes().Add(uint32_t{4'000'000'000})).Feature(6, Bytes().Text("x86_64"));
  b.Feature(14, Bytes().Add(uint32_t{60'000}));
  const Reading read = ReadAll(b.File());
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.counts.damaged_features, 2u);
  EXPECT_EQ(read.facts.host, "");
  EXPECT_EQ(read.facts.machine, "x86_64");
  EXPECT_EQ(read.times.size(), 6u);
}

// perf 6.1 refuses descriptions that are longer than its own.
TEST(Recording, DescriptionsOfNewerAndOlderKernels) {
  for (const uint32_t bytes : {64u, 72u, 96u, 136u, 144u}) {
    RecordingBuilder b;
    b.Event(Attr(), {1}, bytes).Record(SampleAt(5));
    for (const auto& recording : {b.File(), b.Pipe()}) {
      const Reading read = ReadAll(recording);
      ASSERT_TRUE(read.status.ok()) << bytes << ": " << read.status;
      EXPECT_THAT(read.times, ElementsAre(5)) << bytes;
    }
  }
}

TEST(Recording, CompressedRecordsGoOnInTheNextOne) {
  Bytes inner;
  for (const uint64_t time : {1u, 2u, 3u, 4u}) inner.Append(SampleAt(time));
  const auto cut = inner.bytes.begin() + 50;  // amid the second sample
  RecordingBuilder b;
  b.Event(Attr(), {1});
  b.Record(RecordingBuilder::User(81, RecordingBuilder::Frame({inner.bytes.begin(), cut})));
  // The newer kind tells its size, and is filled up.
  const std::vector<std::byte> rest = RecordingBuilder::Frame({cut, inner.bytes.end()});
  Bytes told;
  told.Add(uint64_t{rest.size()}).Append(rest);
  told.bytes.resize((told.bytes.size() + 7) / 8 * 8);
  b.Record(RecordingBuilder::User(83, told.bytes));
  const Reading read = ReadAll(b.File());
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_THAT(read.times, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(read.counts.compression.decompressed_bytes, inner.bytes.size());
}

TEST(Recording, DamagedCompressionEndsTheReadingAndWhatCameBeforeIsGiven) {
  RecordingBuilder b;
  b.Event(Attr(), {1}).Record(SampleAt(7));
  b.Record(RecordingBuilder::User(81, std::vector<std::byte>(32, std::byte{0x55})));
  const Reading read = ReadAll(b.Record(SampleAt(8)).File());
  EXPECT_TRUE(absl::IsDataLoss(read.status)) << read.status;
  EXPECT_THAT(read.times, ElementsAre(7));
}

TEST(Recording, DataBetweenRecordsIsSkipped) {
  Bytes trace;
  trace.Add(uint64_t{4096}).Append(std::vector<std::byte>(32));
  RecordingBuilder b;
  b.Event(Attr(), {1}).Record(RecordingBuilder::User(71, trace.bytes));
  b.Record(std::vector<std::byte>(4096, std::byte{0xff}));
  b.Record(RecordingBuilder::User(66, Bytes().Add(uint32_t{13}).bytes));
  b.Record(std::vector<std::byte>(16, std::byte{0xff}));
  const Reading read = ReadAll(b.Record(SampleAt(9)).Pipe());
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_THAT(read.times, ElementsAre(9));
}

TEST(Recording, EveryTruncationIsReadToItsEnd) {
  for (const auto& whole : {TwoRounds().Pipe(), TwoRounds().File()}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::vector<std::byte> cut(whole.begin(),
                                       whole.begin() + static_cast<std::ptrdiff_t>(size));
      const Reading read = ReadAll(cut);
      EXPECT_LE(read.times.size(), 6u);
      EXPECT_TRUE(std::is_sorted(read.times.begin(), read.times.end()));
      if (size < 16) {
        EXPECT_TRUE(absl::IsInvalidArgument(read.status)) << size;
      }
    }
  }
  std::vector<std::byte> cut = TwoRounds().Pipe();
  cut.resize(cut.size() - 4);
  const Reading read = ReadAll(cut);
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_TRUE(read.counts.truncated);
  EXPECT_EQ(read.times.size(), 5u);
}

TEST(Recording, ARecorderThatWasKilledLeavesWhatItWrote) {
  std::vector<std::byte> file = TwoRounds().File();
  const uint64_t none = 0;
  std::memcpy(file.data() + 48, &none, sizeof none);  // the size of the records
  const Reading read = ReadAll(file);
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_TRUE(read.counts.unfinished);
  EXPECT_EQ(read.times.size(), 6u);
}

TEST(Recording, WhatIsNotOneIsRefusedInWords) {
  const auto text = [](const char* chars) {
    Bytes b;
    b.Raw(chars, std::strlen(chars));
    b.bytes.resize(200);
    return ReadAll(b.bytes).status;
  };
  EXPECT_THAT(std::string(text("PERFILE3").message()), HasSubstr("PERFILE2"));
  EXPECT_THAT(std::string(text("2ELIFREP").message()), HasSubstr("byte order"));
  EXPECT_THAT(std::string(text("PERFFILE").message()), HasSubstr("3.2"));
  EXPECT_THAT(std::string(ReadAll({}).status.message()), HasSubstr("empty"));
  RecordingBuilder parts = TwoRounds();
  parts.Feature(24, Bytes().Add(uint64_t{1}));
  EXPECT_TRUE(absl::IsUnimplemented(ReadAll(parts.File()).status));
  RecordingBuilder newer;
  newer.Event(Attr(uint64_t{1} << 30), {1});
  EXPECT_TRUE(absl::IsUnimplemented(ReadAll(newer.File()).status));
}

TEST(Recording, WhatIsOpened) {
  const auto open = [](const std::string& path) { return OpenRecordingBytes(path).status(); };
  EXPECT_TRUE(absl::IsNotFound(open("/nowhere/at/all")));
  EXPECT_THAT(std::string(open("/tmp").message()), HasSubstr("folder"));
  EXPECT_THAT(std::string(open("/dev/null").message()), HasSubstr("neither"));
}

// The rings tell of losses, and perf writes down at its end, without a time, what each event lost.
TEST(Recording, LossesThatAreToldTwiceCountOnce) {
  const auto trailer = [](RecordBuilder b, uint64_t time_ns) {
    return b.U32(10).U32(11).U64(time_ns).U64(1).Build();
  };
  RecordingBuilder b;
  b.Event(Attr(), {1}).Record(SampleAt(5));
  b.Record(trailer(RecordBuilder(PERF_RECORD_LOST, 0).U64(1).U64(30), 6));
  EXPECT_EQ(ReadAll(b.File()).counts.lost, 30u);
  b.Record(trailer(RecordBuilder(PERF_RECORD_LOST_SAMPLES, 0).U64(50), 0));
  EXPECT_EQ(ReadAll(b.File()).counts.lost, 50u);
  b.Record(trailer(RecordBuilder(PERF_RECORD_LOST_SAMPLES, 0).U64(7), 8));
  EXPECT_EQ(ReadAll(b.File()).counts.lost, 57u) << "the processor's own buffer ran over";
  b.Record(trailer(RecordBuilder(PERF_RECORD_LOST_SAMPLES, 1u << 15).U64(900), 0));
  EXPECT_EQ(ReadAll(b.File()).counts.lost, 57u) << "what a filter left out";
}

TEST(Recording, IdentifiersAreBoundedInAll) {
  const perf_event_attr attr = Attr();
  RecordingBuilder b;
  for (int i = 0; i < 8; ++i) {
    std::vector<uint64_t> ids(200'000);
    for (size_t k = 0; k < ids.size(); ++k) ids[k] = k + static_cast<uint64_t>(i) * ids.size();
    b.Event(attr, ids);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ReadAll(b.File()).status));
  RecordingBuilder alike;
  for (int i = 0; i < 8; ++i) alike.Event(attr, std::vector<uint64_t>(200'000, 7));
  EXPECT_THAT(std::string(ReadAll(alike.File()).status.message()), HasSubstr("too many"));
}

TEST(Recording, AnEventThatIsDescribedAfterSamplesIsDamage) {
  RecordingBuilder b;
  b.Event(Attr(), {1}).Record(SampleAt(5));
  Bytes late;
  perf_event_attr attr = Attr();
  attr.size = sizeof attr;
  b.Record(RecordingBuilder::User(64, late.Add(attr).Add(uint64_t{2}).bytes)).Record(SampleAt(6));
  const Reading read = ReadAll(b.Pipe());
  EXPECT_TRUE(absl::IsDataLoss(read.status)) << read.status;
  EXPECT_THAT(read.times, ElementsAre(5));
}

TEST(Recording, AnEventThatIsCutOffIsDamage) {
  for (const uint32_t said : {0u, 63u, 128u, 4'000'000'000u}) {
    Bytes body;
    body.Add(uint32_t{0}).Add(said).Append(std::vector<std::byte>(32));
    RecordingBuilder b;
    b.Event(Attr(), {1}).Record(RecordingBuilder::User(64, body.bytes)).Record(SampleAt(5));
    EXPECT_TRUE(absl::IsDataLoss(ReadAll(b.Pipe()).status)) << said;
  }
}

TEST(Recording, WhatBecomesAThousandTimesAsLargeIsDamage) {
  // A frame of one run-length block each (RFC 8878, 3.1.1.2): 128 KiB out of 4 bytes.
  std::vector<std::byte> frame(10);
  const uint32_t magic = 0xfd2fb528;
  std::memcpy(frame.data(), &magic, 4);
  frame[5] = std::byte{0x50};
  const uint32_t block = 1 | 1u << 1 | (128u << 10) << 3;
  std::memcpy(frame.data() + 6, &block, 3);
  RecordingBuilder b;
  b.Event(Attr(), {1});
  for (int i = 0; i < 4000; ++i) b.Record(RecordingBuilder::User(81, frame));
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(b.File()).status));
}

TEST(Recording, ACutBetweenRecordsIsNoticed) {
  std::vector<std::byte> cut = TwoRounds().File();
  cut.resize(104 + 24 + 2 * 144 + 2 * SampleAt(1).size());
  const Reading read = ReadAll(cut);
  EXPECT_EQ(read.times.size(), 2u);
  EXPECT_TRUE(read.counts.truncated);
}

TEST(RoundSorter, WhatComesTooLateIsCounted) {
  RoundSorter sorter(4 * (16 + 96));
  const std::vector<std::byte> bytes(16);
  for (const uint64_t time : {40u, 30u, 20u, 10u, 50u}) sorter.Add(time, bytes);
  std::vector<size_t> released;
  while (sorter.Pop().has_value()) released.push_back(1);
  EXPECT_EQ(released.size(), 3u) << "10, 20 and 30: the older half";
  sorter.Add(15, bytes);
  EXPECT_EQ(sorter.late(), 1u);
  sorter.Add(0, bytes);
  EXPECT_TRUE(sorter.Pop().has_value()) << "of no time: at once";
}

}  // namespace
}  // namespace perfd
