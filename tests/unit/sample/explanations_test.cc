#include "agent/sample/explanations.h"

#include <gtest/gtest.h>

#include <map>

#include "agent/sample/sampling_event.h"
#include "tests/unit/perfdata/record_builder.h"
#include "tests/unit/sample/fake_kernel.h"

namespace perfd::agent {
namespace {

RecordBuilder TrailerAt(RecordBuilder builder, uint64_t time_ns) {
  return builder.U32(1).U32(2).U64(time_ns).U32(4).U32(0).U64(5);
}

std::vector<std::byte> Exec(uint32_t pid, uint64_t time_ns) {
  RecordBuilder b(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
  return TrailerAt(b.U32(pid).U32(pid).Text("app"), time_ns).Build();
}

std::vector<std::byte> Mapping(uint32_t pid, uint64_t time_ns) {
  RecordBuilder b(PERF_RECORD_MMAP2, 0);
  b.U32(pid).U32(pid).U64(0x1000).U64(0x1000).U64(0).U32(8).U32(1).U64(7).U64(0).U32(5).U32(2);
  return TrailerAt(b.Text("/lib"), time_ns).Build();
}

std::vector<std::byte> Lost() {
  return RecordBuilder(PERF_RECORD_LOST, 0).U64(1).U64(3).SampleId().Build();
}

// The ring of the thread that calls exec is the first; a mapping of another thread's ring is older.
TEST(Explanations, AreInTheOrderOfTimeWhicheverRingTheyComeFrom) {
  FakeKernel kernels[] = {FakeKernel(4096), FakeKernel(4096)};
  ASSERT_TRUE(kernels[0].Write(Exec(10, 500)) && kernels[0].Write(Mapping(10, 600)));
  ASSERT_TRUE(kernels[1].Write(Lost()) && kernels[1].Write(Mapping(10, 400)) &&
              kernels[1].Write(Mapping(11, 500)));
  EventSet events = EventSet::Create({{EventLayout{.sample_type = kBaseSampleType}, {}}}).value();
  std::vector<Explanation> found;
  std::vector<RingBuffer> readers;
  for (FakeKernel& kernel : kernels) readers.push_back(kernel.Reader());
  for (size_t i = 0; i < readers.size(); ++i) {
    readers[i].Snapshot();
    CollectExplanations(readers[i], events, i, &found);
  }
  SortByTime(&found);
  ASSERT_EQ(found.size(), 4u) << "losses explain nothing";
  const std::vector<std::pair<uint64_t, size_t>> expected = {
      {400, 1}, {500, 0}, {500, 1}, {600, 0}};
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(std::make_pair(found[i].time_ns, found[i].ring), expected[i]) << i;
  EXPECT_TRUE(std::holds_alternative<TaskEvent>(found[1].record));
  EXPECT_EQ(kernels[0].control().data_tail, 0u) << "nothing is consumed";
}

TEST(Explanations, MalformedOnesKeepTheirPlaceAndIgnoredOnesHaveNone) {
  FakeKernel kernel(4096);
  const auto short_exit = RecordBuilder(PERF_RECORD_EXIT, 0).U32(1).U32(1).SampleId().Build();
  const auto renamed =
      RecordBuilder(PERF_RECORD_COMM, 0).U32(1).U32(1).Text("x").SampleId().Build();
  ASSERT_TRUE(kernel.Write(Exec(10, 500)) && kernel.Write(short_exit) && kernel.Write(renamed));
  EventSet events = EventSet::Create({{EventLayout{.sample_type = kBaseSampleType}, {}}}).value();
  RingBuffer reader = kernel.Reader();
  reader.Snapshot();
  std::vector<Explanation> found;
  CollectExplanations(reader, events, 0, &found);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<MalformedRecord>(found[1].record));
  EXPECT_EQ(found[1].time_ns, 500u);
}

}  // namespace
}  // namespace perfd::agent
