#include "core/wire/hook_wire.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

HookJob Job() {
  return {.cluster = "c",
          .job = "4711.server",
          .restart = 3,
          .uid = 1000,
          .user = "alice",
          .account = "physics",
          .partition = "batch",
          .nodes = "n[1-4]",
          .node = "n1",
          .preference = HookPreference::kOptIn,
          .preset = "deep",
          .scheduler = "PBS"};
}

TEST(HookWireTest, JobsAndAnswersComeBack) {
  const auto job = wire::FromProto(wire::ToProto(Job()));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(*job, Job());
  for (int i = 0; i < kHookDecisionCount; ++i) {
    const HookAnswer answer{static_cast<HookDecision>(i), "why", "p-000001"};
    EXPECT_EQ(*wire::FromProto(wire::ToProto(answer)), answer);
  }
}

TEST(HookWireTest, OverviewsComeBack) {
  HookOverview overview;
  HookRecord record;
  record.job = Job();
  record.answer = {HookDecision::kQuota, "why", ""};
  record.number = 6;
  record.seen_unix_ns = 100;
  record.ended_unix_ns = 200;
  overview.records = {record, record};
  overview.counts = {{HookDecision::kProfile, 3}, {HookDecision::kNever, 4}};
  overview.policy = "every job";
  overview.policy_error = "line 1";
  overview.active = 2;
  overview.today = 5;
  const auto back = wire::FromProto(wire::ToProto(overview));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, overview);
}

// The user's own word must not keep a job from being decided about.
TEST(HookWireTest, APresetOfAnyLengthIsCutAndNotRefused) {
  v1::HookJob job = wire::ToProto(Job());
  for (const size_t bytes : {size_t{255}, size_t{256}, size_t{100'000}}) {
    job.set_preset(std::string(bytes, 'p'));
    const auto read = wire::FromProto(job);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->preset, std::string(255, 'p'));
  }
  job.set_preset(std::string(254, 'p') + "\xc3\xa4");  // cut in the middle of a character
  EXPECT_EQ(wire::FromProto(job)->preset, std::string(254, 'p') + "?");
}

TEST(HookWireTest, HostileMessagesAreRefused) {
  const v1::HookJob good = wire::ToProto(Job());
  v1::HookJob job = good;
  job.clear_job();
  EXPECT_FALSE(wire::FromProto(job).ok());
  job = good;
  job.set_preference(v1::HOOK_PREFERENCE_UNSPECIFIED);
  EXPECT_FALSE(wire::FromProto(job).ok());
  job = good;
  job.set_preference(static_cast<v1::HookPreference>(17));
  EXPECT_FALSE(wire::FromProto(job).ok());
  job = good;
  job.set_restart(-1);
  EXPECT_FALSE(wire::FromProto(job).ok());
  job = good;
  job.set_nodes(std::string(64 * 1024, 'n'));
  EXPECT_TRUE(wire::FromProto(job).ok());
  job.set_nodes(std::string(64 * 1024 + 1, 'n'));
  EXPECT_FALSE(wire::FromProto(job).ok());
  job = good;
  job.set_scheduler(std::string(32, 's'));
  EXPECT_TRUE(wire::FromProto(job).ok());
  job.set_scheduler(std::string(33, 's'));
  EXPECT_FALSE(wire::FromProto(job).ok());
  v1::HookResponse answer;
  EXPECT_FALSE(wire::FromProto(answer).ok());
  v1::HookListResponse list;
  for (int i = 0; i < 1001; ++i) *list.add_records()->mutable_job() = good;
  EXPECT_FALSE(wire::FromProto(list).ok());
}

}  // namespace
}  // namespace perfd
