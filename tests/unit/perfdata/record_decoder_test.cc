#include "core/perfdata/records/record_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/perfdata/record_builder.h"

namespace perfd {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kBase = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                           PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;

EventLayout Layout(uint64_t more = 0, uint64_t registers = kUserRegisterMask) {
  return {.sample_type = kBase | more, .user_registers = registers};
}

RecordBuilder BaseSample(uint16_t misc = PERF_RECORD_MISC_USER) {
  RecordBuilder b(PERF_RECORD_SAMPLE, misc);
  b.U64(99).U64(0x401234).U32(10).U32(11).U64(1'000'000).U32(3).U32(0).U64(5'025'126);
  return b;
}

template <typename T>
T Expect(const PerfRecord& record) {
  const T* value = std::get_if<T>(&record);
  EXPECT_NE(value, nullptr) << "variant index " << record.index();
  return value != nullptr ? *value : T{};
}

TEST(RecordDecoder, PlainSample) {
  RecordDecoder decoder(Layout());
  const auto bytes = BaseSample().Build();
  const auto s = Expect<Sample>(decoder.Decode(bytes));
  EXPECT_EQ(s.ip, 0x401234u);
  EXPECT_EQ(s.pid, 10);
  EXPECT_EQ(s.tid, 11);
  EXPECT_EQ(s.time_ns, 1'000'000u);
  EXPECT_EQ(s.cpu, 3u);
  EXPECT_EQ(s.period, 5'025'126u);
  EXPECT_FALSE(s.kernel);
  EXPECT_TRUE(s.callchain.empty());
  EXPECT_TRUE(Expect<Sample>(decoder.Decode(BaseSample(PERF_RECORD_MISC_KERNEL).Build())).kernel);
}

TEST(RecordDecoder, TimesAreOfOurOwnClock) {
  RecordDecoder ahead(Layout(), 500);
  EXPECT_EQ(Expect<Sample>(ahead.Decode(BaseSample().Build())).time_ns, 1'000'500u);
  RecordDecoder behind(Layout(), -400'000);
  EXPECT_EQ(Expect<Sample>(behind.Decode(BaseSample().Build())).time_ns, 600'000u);
  RecordBuilder exited(PERF_RECORD_EXIT, 0);
  exited.U32(10).U32(1).U32(11).U32(1).U64(77).SampleId();
  EXPECT_EQ(Expect<TaskEvent>(ahead.Decode(exited.Build())).time_ns, 503u);
}

TEST(RecordDecoder, CallchainKeepsUserFramesOnly) {
  RecordDecoder decoder(Layout(PERF_SAMPLE_CALLCHAIN));
  const auto bytes = BaseSample()
                         .U64(6)
                         .U64(static_cast<uint64_t>(PERF_CONTEXT_KERNEL))
                         .U64(0xffffffff81000000)
                         .U64(static_cast<uint64_t>(PERF_CONTEXT_USER))
                         .U64(0x401234)
                         .U64(0x402000)
                         .U64(0x403000)
                         .Build();
  const auto s = Expect<Sample>(decoder.Decode(bytes));
  EXPECT_THAT(s.callchain, ElementsAre(0x401234, 0x402000, 0x403000));
}

TEST(RecordDecoder, KernelSamplesTellHowTheirThreadCameIn) {
  RecordDecoder decoder(Layout(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER, kUserIpMask));
  const auto with = [](uint16_t misc, uint64_t abi) {
    RecordBuilder b = BaseSample(misc);
    b.U64(3).U64(static_cast<uint64_t>(PERF_CONTEXT_KERNEL)).U64(0xffffffff81000000);
    b.U64(0xffffffff82000000).U64(abi);
    if (abi != PERF_SAMPLE_REGS_ABI_NONE) b.U64(0x401000);
    return b.Build();
  };
  const auto bytes = with(PERF_RECORD_MISC_KERNEL, PERF_SAMPLE_REGS_ABI_64);
  const auto s = Expect<Sample>(decoder.Decode(bytes));
  EXPECT_THAT(s.entry.chain, ElementsAre(0xffffffff81000000, 0xffffffff82000000));
  EXPECT_TRUE(s.callchain.empty());
  EXPECT_EQ(s.entry.user_ip, 0x401000u);
  EXPECT_TRUE(s.user.registers.empty()) << "one is not enough to unwind";
  const auto none = with(PERF_RECORD_MISC_KERNEL, PERF_SAMPLE_REGS_ABI_NONE);
  EXPECT_EQ(Expect<Sample>(decoder.Decode(none)).entry.user_ip, 0u);
  const auto user = with(PERF_RECORD_MISC_USER, PERF_SAMPLE_REGS_ABI_64);
  EXPECT_EQ(Expect<Sample>(decoder.Decode(user)).entry.user_ip, 0u);
}

// As perf record --call-graph dwarf asks on newer kernels, with SP and IP only, and with more than we need.
TEST(RecordDecoder, RegistersAreFoundByTheirBits) {
  RecordDecoder more(Layout(PERF_SAMPLE_REGS_USER, kUserRegisterMask | 1u << 9 | 1u << 11));
  RecordBuilder b = BaseSample();
  b.U64(PERF_SAMPLE_REGS_ABI_64);
  for (uint64_t i = 0; i < kUserRegisterCount + 2; ++i) b.U64(100 + i);
  const auto bytes = b.Build();
  const auto s = Expect<Sample>(more.Decode(bytes));
  ASSERT_EQ(s.user.registers.size(), static_cast<size_t>(kUserRegisterCount));
  EXPECT_EQ(s.user.registers[8], 108u);
  EXPECT_EQ(s.user.registers[9], 111u) << "R8 comes after two that are left out";
  RecordDecoder fewer(Layout(PERF_SAMPLE_REGS_USER, 1u << 7));
  RecordBuilder sp = BaseSample(PERF_RECORD_MISC_KERNEL);
  sp.U64(PERF_SAMPLE_REGS_ABI_64).U64(0x7ffd0000);
  const auto stack = sp.Build();
  const auto without = Expect<Sample>(fewer.Decode(stack));
  EXPECT_TRUE(without.user.registers.empty());
  EXPECT_EQ(without.entry.user_ip, 0u) << "it was not recorded";
}

TEST(RecordDecoder, RegistersAndStack) {
  RecordDecoder decoder(Layout(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER));
  RecordBuilder b = BaseSample();
  b.U64(PERF_SAMPLE_REGS_ABI_64);
  for (uint64_t i = 0; i < kUserRegisterCount; ++i) b.U64(100 + i);
  b.U64(32).Fill(24, 0xaa).Fill(8, 0).U64(24);
  const auto bytes = b.Build();
  const auto s = Expect<Sample>(decoder.Decode(bytes));
  ASSERT_EQ(s.user.registers.size(), static_cast<size_t>(kUserRegisterCount));
  EXPECT_EQ(s.user.registers[8], 108u) << "the instruction pointer";
  ASSERT_EQ(s.user.stack.size(), 24u);
  EXPECT_EQ(s.user.stack[23], std::byte{0xaa});
}

TEST(RecordDecoder, NoUserStateIsNoRegistersAndNoStack) {
  RecordDecoder decoder(Layout(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER));
  const auto bytes = BaseSample().U64(PERF_SAMPLE_REGS_ABI_NONE).U64(0).Build();
  const auto s = Expect<Sample>(decoder.Decode(bytes));
  EXPECT_TRUE(s.user.registers.empty());
  EXPECT_TRUE(s.user.stack.empty());
}

TEST(RecordDecoder, SamplesThatContradictTheirLayoutAreMalformed) {
  RecordDecoder plain(Layout());
  EXPECT_TRUE(std::holds_alternative<MalformedRecord>(plain.Decode(BaseSample().U64(1).Build())));
  RecordDecoder chain(Layout(PERF_SAMPLE_CALLCHAIN));
  for (const uint64_t count : {uint64_t{2}, UINT64_MAX, UINT64_MAX / 8, uint64_t{1} << 61}) {
    EXPECT_TRUE(std::holds_alternative<MalformedRecord>(
        chain.Decode(BaseSample().U64(count).U64(1).Build())))
        << count;
  }
  RecordDecoder stack(Layout(PERF_SAMPLE_STACK_USER));
  EXPECT_TRUE(std::holds_alternative<MalformedRecord>(
      stack.Decode(BaseSample().U64(8).U64(0).U64(9).Build())))
      << "more used than copied";
  EXPECT_TRUE(std::holds_alternative<MalformedRecord>(
      stack.Decode(BaseSample().U64(UINT64_MAX).U64(0).Build())));
}

// Every field that a sample can have, in the kernel's order; `Full` of what it means below.
constexpr uint64_t kEveryField = PERF_SAMPLE_MAX - 1 - PERF_SAMPLE_WEIGHT;

EventLayout FullLayout() {
  return {.sample_type = kEveryField,
          .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST |
                         PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
          .branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX,
          .user_registers = kUserRegisterMask,
          .interrupt_registers = 0x3};
}

RecordBuilder FullSample() {
  RecordBuilder b(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP);
  b.U64(99).U64(0x401234).U32(10).U32(11).U64(1'000'000).U64(0x7f0000001000);
  b.U64(99).U64(98).U32(3).U32(0).U64(10'007);
  b.U64(2).U64(1).U64(2);                         // READ: two counters, two times
  b.U64(7).U64(99).U64(0).U64(8).U64(97).U64(0);  // value, identifier, lost of each
  b.U64(2).U64(static_cast<uint64_t>(PERF_CONTEXT_USER)).U64(0x401000);
  b.U32(12).Fill(12, 0x5a);     // RAW, up to eight bytes
  b.U64(1).U64(0).Fill(24, 1);  // BRANCH_STACK with its index
  b.U64(PERF_SAMPLE_REGS_ABI_64);
  for (int i = 0; i < kUserRegisterCount; ++i) b.U64(7);
  b.U64(8).U64(0).U64(8);                           // STACK_USER
  b.U32(225).U16(250).U16(3);                       // WEIGHT_STRUCT
  b.U64(0x10650100842).U64(0);                      // DATA_SRC, TRANSACTION
  b.U64(PERF_SAMPLE_REGS_ABI_64).U64(1).U64(2);     // REGS_INTR
  b.U64(0x123000).U64(42).U64(2u << 20).U64(4096);  // PHYS_ADDR, CGROUP, both page sizes
  return b.U64(8).U64(0);                           // AUX
}

TEST(RecordDecoder, EveryFieldThatASampleCanHave) {
  RecordDecoder decoder(FullLayout());
  const auto bytes = FullSample().Build();
  const auto s = Expect<Sample>(decoder.Decode(bytes));
  EXPECT_EQ(s.tid, 11);
  EXPECT_EQ(s.cpu, 3u);
  EXPECT_EQ(s.period, 10'007u);
  EXPECT_TRUE(s.precise);
  EXPECT_THAT(s.callchain, ElementsAre(0x401000));
  EXPECT_EQ(s.user.registers.size(), static_cast<size_t>(kUserRegisterCount));
  ASSERT_TRUE(s.access.has_value());
  EXPECT_EQ(s.access->address, RuntimeAddress(0x7f0000001000));
  EXPECT_EQ(s.access->latency_cycles, 225u);
  EXPECT_EQ(s.access->instruction_latency, 250u);
  EXPECT_EQ(s.access->page_bytes, 2u << 20);
  EXPECT_EQ(s.access->source.level, MemoryLevel::kL3);
  EXPECT_EQ(s.access->source.tlb, TlbResult::kWalk);
  EXPECT_EQ(decoder.TimeOf(bytes), 1'000'000u);
}

TEST(RecordDecoder, OlderWeightsAreWholeWords) {
  RecordDecoder decoder(Layout(PERF_SAMPLE_WEIGHT));
  const auto bytes = BaseSample().U64(uint64_t{1} << 40).Build();
  const auto s = Expect<Sample>(decoder.Decode(bytes));
  ASSERT_TRUE(s.access.has_value());
  EXPECT_EQ(s.access->latency_cycles, uint64_t{1} << 40);
  EXPECT_EQ(s.access->address, RuntimeAddress(0)) << "not recorded";
}

TEST(RecordDecoder, AFixedPeriodIsTheEvents) {
  EventLayout layout = Layout();
  layout.sample_type &= ~static_cast<uint64_t>(PERF_SAMPLE_PERIOD);
  layout.fixed_period = 10'009;
  RecordBuilder b(PERF_RECORD_SAMPLE, 0);
  b.U64(99).U64(0x401234).U32(10).U32(11).U64(5).U32(3).U32(0);
  const auto bytes = b.Build();
  EXPECT_EQ(Expect<Sample>(RecordDecoder(layout).Decode(bytes)).period, 10'009u);
}

TEST(RecordDecoder, CountsThatDoNotFitAreMalformed) {
  EventLayout counters = Layout(PERF_SAMPLE_READ);
  counters.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
  RecordDecoder read(counters);
  RecordDecoder branches(Layout(PERF_SAMPLE_BRANCH_STACK));
  RecordDecoder aux(Layout(PERF_SAMPLE_AUX));
  for (const uint64_t count : {uint64_t{2}, UINT64_MAX, UINT64_MAX / 8, uint64_t{1} << 61}) {
    const auto bytes = BaseSample().U64(count).U64(1).Build();
    EXPECT_TRUE(std::holds_alternative<MalformedRecord>(read.Decode(bytes))) << count;
    EXPECT_TRUE(std::holds_alternative<MalformedRecord>(branches.Decode(bytes))) << count;
    EXPECT_TRUE(std::holds_alternative<MalformedRecord>(aux.Decode(bytes))) << count;
  }
}

TEST(RecordDecoder, FieldsThatNobodyKnowsMakeSamplesMalformed) {
  const EventLayout layout = Layout(uint64_t{1} << 25);
  EXPECT_FALSE(layout.can_decode());
  const auto bytes = BaseSample().U64(1).Build();
  EXPECT_TRUE(std::holds_alternative<MalformedRecord>(RecordDecoder(layout).Decode(bytes)));
}

TEST(RecordDecoder, MappingsOfOlderKernels) {
  RecordDecoder decoder(Layout());
  const auto make = [](uint16_t misc) {
    RecordBuilder b(PERF_RECORD_MMAP, misc);
    b.U32(10).U32(11).U64(0x7f0000000000).U64(0x2000).U64(0x1000);
    return b.Text("/opt/app").SampleId().Build();
  };
  const auto code = Expect<MappingEvent>(decoder.Decode(make(0)));
  EXPECT_EQ(code.start, RuntimeAddress(0x7f0000000000));
  EXPECT_EQ(code.file_offset, FileOffset(0x1000));
  EXPECT_EQ(code.path, "/opt/app");
  EXPECT_TRUE(code.executable);
  EXPECT_FALSE(Expect<MappingEvent>(decoder.Decode(make(PERF_RECORD_MISC_MMAP_DATA))).executable);
}

TEST(RecordDecoder, WithoutATrailerTheWholeRecordIsTheBody) {
  EventLayout layout = Layout();
  layout.sample_id_all = false;
  RecordDecoder decoder(layout);
  const auto bytes = RecordBuilder(PERF_RECORD_COMM, 0).U32(10).U32(12).Text("a name").Build();
  const auto event = Expect<TaskEvent>(decoder.Decode(bytes));
  EXPECT_EQ(event.name, "a name");
  EXPECT_EQ(event.time_ns, 0u);
  EXPECT_EQ(decoder.TimeOf(bytes), 0u);
}

TEST(RecordDecoder, EveryTruncationOfEveryKindIsMalformed) {
  const std::vector<std::vector<std::byte>> records = {
      FullSample().Build(),
      RecordBuilder(PERF_RECORD_FORK, 0).U32(1).U32(1).U32(2).U32(1).U64(9).Fill(48, 0).Build(),
      RecordBuilder(PERF_RECORD_LOST, 0).U64(1).U64(2).Fill(48, 0).Build(),
      RecordBuilder(PERF_RECORD_LOST_SAMPLES, 0).U64(2).Fill(48, 0).Build(),
  };
  RecordDecoder decoder(FullLayout());
  for (const auto& whole : records) {
    EXPECT_FALSE(std::holds_alternative<MalformedRecord>(decoder.Decode(whole)));
    for (size_t size = 0; size < whole.size(); size += 4) {
      std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      if (size >= 8) {
        const auto fixed = static_cast<uint16_t>(size);
        std::memcpy(cut.data() + 6, &fixed, 2);
      }
      EXPECT_TRUE(std::holds_alternative<MalformedRecord>(decoder.Decode(cut))) << size;
    }
  }
}

TEST(RecordDecoder, AHeaderThatLiesAboutItsSizeIsMalformed) {
  auto bytes = BaseSample().Build();
  bytes.insert(bytes.end(), 8, std::byte{0});
  EXPECT_TRUE(std::holds_alternative<MalformedRecord>(RecordDecoder(Layout()).Decode(bytes)));
}

TEST(RecordDecoder, Mappings) {
  RecordDecoder decoder(Layout());
  const auto make = [](uint16_t misc, bool build_id) {
    RecordBuilder b(PERF_RECORD_MMAP2, misc);
    b.U32(10).U32(11).U64(0x7f0000000000).U64(0x2000).U64(0x1000);
    if (build_id) {
      b.Fill(1, 20).Fill(3, 0).Fill(20, 0xcd);
    } else {
      b.U32(8).U32(1).U64(4711).U64(0);
    }
    return b.U32(5).U32(2).Text("/opt/my app").SampleId().Build();
  };
  const auto file = Expect<MappingEvent>(decoder.Decode(make(0, false)));
  EXPECT_EQ(file.pid, 10);
  EXPECT_EQ(file.start, 0x7f0000000000u);
  EXPECT_EQ(file.length, 0x2000u);
  EXPECT_EQ(file.file_offset, 0x1000u);
  EXPECT_EQ(file.device_major, 8u);
  EXPECT_EQ(file.device_minor, 1u);
  EXPECT_EQ(file.inode, 4711u);
  EXPECT_EQ(file.path, "/opt/my app");
  EXPECT_EQ(file.build_id, "");
  EXPECT_EQ(file.time_ns, 3u);
  const auto id = Expect<MappingEvent>(decoder.Decode(make(PERF_RECORD_MISC_MMAP_BUILD_ID, true)));
  EXPECT_EQ(id.build_id, std::string(20, '\xcd'));
  EXPECT_EQ(id.inode, 0u);
}

TEST(RecordDecoder, MappingsThatCannotBeAreMalformed) {
  RecordDecoder decoder(Layout());
  const auto make = [](uint64_t start, uint8_t id_size, size_t text) {
    return RecordBuilder(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID)
        .U32(1)
        .U32(1)
        .U64(start)
        .U64(0x1000)
        .U64(0)
        .Fill(1, id_size)
        .Fill(23, 0)
        .U32(5)
        .U32(2)
        .Fill(8, static_cast<uint8_t>(text))
        .SampleId()
        .Build();
  };
  EXPECT_TRUE(std::holds_alternative<MappingEvent>(decoder.Decode(make(0, 20, 0))));
  EXPECT_TRUE(std::holds_alternative<MalformedRecord>(decoder.Decode(make(0, 21, 0))));
  EXPECT_TRUE(std::holds_alternative<MalformedRecord>(decoder.Decode(make(0, 20, 'x'))))
      << "the trailer must not end the name";
  EXPECT_TRUE(std::holds_alternative<MalformedRecord>(decoder.Decode(make(UINT64_MAX - 5, 20, 0))));
}

TEST(RecordDecoder, Tasks) {
  RecordDecoder decoder(Layout());
  const auto task = [&](uint32_t type, uint32_t pid, uint32_t parent) {
    return Expect<TaskEvent>(decoder.Decode(
        RecordBuilder(type, 0).U32(pid).U32(parent).U32(12).U32(11).U64(9).SampleId().Build()));
  };
  EXPECT_EQ(task(PERF_RECORD_FORK, 10, 10).kind, TaskEvent::Kind::kThreadStarted);
  const TaskEvent forked = task(PERF_RECORD_FORK, 12, 10);
  EXPECT_EQ(forked.kind, TaskEvent::Kind::kProcessForked);
  EXPECT_EQ(forked.pid, 12);
  EXPECT_EQ(forked.tid, 12);
  EXPECT_EQ(forked.parent_pid, 10);
  EXPECT_EQ(forked.time_ns, 3u);
  EXPECT_EQ(task(PERF_RECORD_EXIT, 10, 1).kind, TaskEvent::Kind::kExited);
  const auto comm = [&](uint16_t misc) {
    return decoder.Decode(
        RecordBuilder(PERF_RECORD_COMM, misc).U32(10).U32(10).Text("app").SampleId().Build());
  };
  EXPECT_EQ(Expect<TaskEvent>(comm(PERF_RECORD_MISC_COMM_EXEC)).kind, TaskEvent::Kind::kExec);
  EXPECT_EQ(Expect<TaskEvent>(comm(PERF_RECORD_MISC_COMM_EXEC)).time_ns, 3u);
  EXPECT_EQ(Expect<TaskEvent>(comm(0)).kind, TaskEvent::Kind::kRenamed);
  EXPECT_EQ(Expect<TaskEvent>(comm(0)).name, "app");
}

TEST(RecordDecoder, LossAndThrottling) {
  RecordDecoder decoder(Layout());
  EXPECT_EQ(
      Expect<LostRecord>(
          decoder.Decode(RecordBuilder(PERF_RECORD_LOST, 0).U64(1).U64(33).SampleId().Build()))
          .count,
      33u);
  EXPECT_EQ(
      Expect<LostRecord>(
          decoder.Decode(RecordBuilder(PERF_RECORD_LOST_SAMPLES, 0).U64(7).SampleId().Build()))
          .count,
      7u);
  const auto throttle = [&](uint32_t type) {
    return Expect<ThrottleRecord>(
        decoder.Decode(RecordBuilder(type, 0).U64(1).U64(2).U64(3).SampleId().Build()));
  };
  EXPECT_TRUE(throttle(PERF_RECORD_THROTTLE).begin);
  EXPECT_FALSE(throttle(PERF_RECORD_UNTHROTTLE).begin);
}

TEST(RecordDecoder, UnknownKindsAreIgnoredWhateverTheyHold) {
  RecordDecoder decoder(Layout());
  for (const uint32_t type : {0u, 8u, 11u, 14u, 64u, 4'000'000'000u}) {
    EXPECT_TRUE(
        std::holds_alternative<IgnoredRecord>(decoder.Decode(RecordBuilder(type, 0).Build())))
        << type;
  }
}

}  // namespace
}  // namespace perfd
