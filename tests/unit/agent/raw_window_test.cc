#include "agent/pipeline/raw_window.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

RawLocation InModule(uint32_t module, uint64_t offset) {
  return {.kind = RawLocation::Kind::kModule, .module = module, .file_offset = offset};
}

TEST(WindowBuilder, CountsByThreadAndPlace) {
  WindowBuilder builder;
  RawModule module;
  module.key.path = "/app";
  const uint32_t index = builder.Module(module);
  EXPECT_EQ(builder.Module(module), index);
  builder.Count({0, 10, 10}, InModule(index, 0x100), 5);
  builder.Count({0, 10, 10}, InModule(index, 0x100), 7);
  builder.Count({0, 10, 11}, InModule(index, 0x100), 1);
  builder.Count({0, 10, 10}, {.kind = RawLocation::Kind::kKernel}, 3);
  const RawWindow window = builder.Drain();
  EXPECT_EQ(window.modules.size(), 1u);
  EXPECT_EQ(window.threads.size(), 2u);
  ASSERT_EQ(window.rows.size(), 3u);
  EXPECT_EQ(window.accounting.kept, 4u);
  uint64_t samples = 0, weight = 0;
  for (const RawRow& row : window.rows) samples += row.samples, weight += row.weight;
  EXPECT_EQ(samples, 4u);
  EXPECT_EQ(weight, 16u);
}

TEST(WindowBuilder, TakeStartsAnew) {
  WindowBuilder builder;
  builder.Count({0, 10, 10}, {}, 1);
  EXPECT_EQ(builder.Drain().rows.size(), 1u);
  const RawWindow second = builder.Drain();
  EXPECT_TRUE(second.rows.empty());
  EXPECT_TRUE(second.threads.empty());
  EXPECT_EQ(second.accounting, Accounting{});
}

TEST(WindowBuilder, DropsAreCountedAtTheBound) {
  WindowBuilder builder;
  for (uint64_t i = 0; i < kMaxRawRows + 3; ++i) {
    ++builder.accounting().seen;
    builder.Count({0, 1, 1}, InModule(0, i), 1);
  }
  builder.Count({0, 1, 1}, InModule(0, 0), 1);  // a known place still has room
  ++builder.accounting().seen;
  const RawWindow window = builder.Drain();
  EXPECT_EQ(window.rows.size(), kMaxRawRows);
  EXPECT_EQ(window.accounting.dropped[static_cast<size_t>(DropReason::kQueueFull)], 3u);
  EXPECT_TRUE(window.accounting.Balanced());
}

TEST(WindowBuilder, StacksBeyondTheBoundAreCounted) {
  WindowBuilder builder;
  for (uint64_t i = 0; i < kMaxRawStacks + 2; ++i) builder.CountStack(0, {InModule(0, i)});
  builder.CountStack(0, {InModule(0, 0)});
  builder.CountStack(0, {});
  const RawWindow window = builder.Drain();
  EXPECT_EQ(window.stacks.size(), kMaxRawStacks);
  EXPECT_EQ(window.accounting.stack_skipped, 2u);
}

TEST(WindowBuilder, ThreadsAreBounded) {
  WindowBuilder builder;
  const RawLocation kernel{.kind = RawLocation::Kind::kKernel};
  builder.accounting().seen = kMaxRawThreads + 2;
  for (size_t i = 0; i < kMaxRawThreads; ++i)
    builder.Count({0, 1, static_cast<int32_t>(i + 1)}, kernel, 1);
  builder.Count({0, 1, static_cast<int32_t>(kMaxRawThreads + 1)}, kernel, 1);  // one too many
  builder.Count({0, 1, 1}, kernel, 1);                                         // known
  const RawWindow window = builder.Drain();
  EXPECT_EQ(window.threads.size(), kMaxRawThreads);
  EXPECT_EQ(window.accounting.kept, kMaxRawThreads + 1);
  EXPECT_TRUE(window.accounting.Balanced());
}

}  // namespace
}  // namespace perfd::agent
