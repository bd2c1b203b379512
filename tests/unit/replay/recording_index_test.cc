#include "agent/replay/recording_index.h"

#include <gtest/gtest.h>

#include "agent/replay/replayed_processes.h"
#include "tests/unit/replay/replayed_recording.h"

namespace perfd::agent {
namespace {

TEST(RecordingIndex, TellsProcessesEventsAndTime) {
  ReplayedRecording recording;
  recording.Process(10, "solver");
  recording.Process(20, "helper");
  for (uint64_t i = 1; i <= 5; ++i) recording.Sample(kCycles, 10, i * kSecond, 0x1000);
  recording.Sample(kCycles, 20, 2 * kSecond, 0x1000);
  for (int i = 0; i < 9; ++i) recording.Sample(kLoads, 20, 3 * kSecond, 0x1000, 40);
  const auto index = IndexRecording(recording.Write());
  ASSERT_TRUE(index.ok()) << index.status();
  ASSERT_EQ(index->processes.size(), 2u);
  EXPECT_EQ(index->processes[0].command, "helper") << "most samples first";
  EXPECT_EQ(index->processes[1].samples, 5u);
  EXPECT_EQ(index->first_ns, kSecond);
  EXPECT_EQ(index->last_ns, 5 * kSecond);
  // The event that tells of no access says where time went, though it has fewer samples.
  EXPECT_EQ(index->TimeEvent(), 0u);
  ASSERT_EQ(index->MemoryEvents().size(), 1u);
  EXPECT_EQ(index->MemoryEvents()[0].name, "event 2");
}

TEST(RecordingIndex, OfAccessesAloneTheEventWithMostSaysWhereTimeWent) {
  RecordingIndex index;
  index.events = {{"dummy", {}, 0, 0}, {"loads", {}, 5, 5}, {"stores", {}, 9, 9}};
  EXPECT_EQ(index.TimeEvent(), 2u);
  EXPECT_EQ(index.MemoryEvents().size(), 2u);
}

TEST(RecordingIndex, AFewSamplesOfAnotherEventDoNotSayWhereTimeWent) {
  RecordingIndex index;
  index.events = {{"page-faults", {}, 20, 0}, {"loads", {}, 100'000, 100'000}};
  EXPECT_EQ(index.TimeEvent(), 1u);
}

TEST(RecordingIndex, TimesThatCannotBeAreRefused) {
  ReplayedRecording none, far;
  none.Sample(kCycles, 10, 0, 0x1000);
  EXPECT_EQ(IndexRecording(none.Write()).status().code(), absl::StatusCode::kUnimplemented);
  far.Sample(kCycles, 10, uint64_t{1} << 62, 0x1000);
  EXPECT_EQ(IndexRecording(far.Write()).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(RecordingIndex, WithoutSamplesThereIsNothingToReplay) {
  ReplayedRecording recording;
  recording.Process(10, "solver");
  EXPECT_EQ(IndexRecording(recording.Write()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(IndexRecording("/nonexistent").status().code(), absl::StatusCode::kNotFound);
}

MappingEvent Mapping(int32_t pid, uint64_t start, const std::string& path, uint64_t time_ns = 0) {
  MappingEvent event;
  event.pid = pid;
  event.start = start;
  event.length = 0x1000;
  event.path = path;
  event.time_ns = time_ns;
  return event;
}

TEST(ReplayedProcesses, MappingsFollowTime) {
  ReplayedProcesses processes;
  processes.OnMapping(Mapping(10, 0x1000, "/app"));
  processes.OnMapping(Mapping(10, 0x5000, "/lib.so"));
  ASSERT_TRUE(processes.Find(10, 0x1234, 5).has_value());
  EXPECT_EQ(processes.Find(10, 0x1234, 5)->module.kind, ModuleKind::kProgram);
  EXPECT_EQ(processes.Find(10, 0x1234, 5)->offset, FileOffset(0x234));
  EXPECT_EQ(processes.Find(10, 0x5000, 5)->module.kind, ModuleKind::kLibrary);
  EXPECT_FALSE(processes.Find(10, 0x9000, 5).has_value());
  EXPECT_FALSE(processes.Find(11, 0x1234, 5).has_value());
  TaskEvent fork;
  fork.kind = TaskEvent::Kind::kProcessForked;
  fork.pid = 11;
  fork.parent_pid = 10;
  processes.OnTask(fork);
  EXPECT_TRUE(processes.Find(11, 0x1234, 5).has_value()) << "a child has what its parent had";
  TaskEvent exec;
  exec.kind = TaskEvent::Kind::kExec;
  exec.pid = exec.tid = 10;
  exec.time_ns = 10;
  processes.OnTask(exec);
  EXPECT_FALSE(processes.Find(10, 0x1234, 11).has_value());
  processes.OnMapping(Mapping(10, 0x1000, "/other", 12));
  EXPECT_EQ(processes.Find(10, 0x1234, 13)->module.key.path, "/other");
  EXPECT_EQ(processes.Find(10, 0x1234, 13)->module.kind, ModuleKind::kProgram);
  processes.OnMapping(Mapping(-1, 0x7000, "[kernel]"));
  EXPECT_FALSE(processes.Find(-1, 0x7000, 13).has_value());
}

TEST(ReplayedProcesses, ForksDoNotFillTheMemory) {
  ReplayedProcesses processes;
  constexpr uint64_t kMappings = 4096;
  for (uint64_t i = 0; i < kMappings; ++i)
    processes.OnMapping(Mapping(1, 0x10000 + i * 0x2000, "/app"));
  TaskEvent fork;
  fork.kind = TaskEvent::Kind::kProcessForked;
  fork.parent_pid = 1;
  for (int32_t pid = 2; pid < 500; ++pid) {
    fork.pid = pid;
    processes.OnTask(fork);
  }
  EXPECT_EQ(processes.left_out(), 498 + 1 - ReplayedProcesses::kMostMappings / kMappings);
  TaskEvent exit;
  exit.kind = TaskEvent::Kind::kExited;
  exit.pid = exit.tid = 2;
  processes.OnTask(exit);
  fork.pid = 600;
  processes.OnTask(fork);
  EXPECT_TRUE(processes.Find(600, 0x10000, 1).has_value()) << "in the place of one that has ended";
  EXPECT_FALSE(processes.Find(2, 0x10000, 1).has_value());
}

}  // namespace
}  // namespace perfd::agent
