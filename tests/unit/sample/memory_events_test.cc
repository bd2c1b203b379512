// Processors as the kernel describes them in sysfs: what is chosen of each, and why nothing is.
// Source: arch/x86/events/intel/core.c (skl_format_attr, EVENT_ATTR_STR of mem-loads, mem-stores and mem-loads-aux for Skylake,
// Golden Cove and Gracemont, intel_pmu_hw_config), arch/x86/events/amd/ibs.c (cnt_ctl, l3missonly of Zen 4, ldlat and swfilt).
#include "agent/sample/memory/memory_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "agent/sample/memory/sysfs_pmu.h"
#include "tests/unit/procfs/fake_proc.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;

class MemoryEventsTest : public testing::Test {
 protected:
  void Pmu(const std::string& name, int type,
           const std::vector<std::pair<std::string, std::string>>& files) {
    const std::string folder = "bus/event_source/devices/" + name + "/";
    sys_.Write(folder + "type", std::to_string(type) + "\n");
    for (const auto& [file, text] : files) sys_.Write(folder + file, text + "\n");
  }
  void IntelCore(const std::string& name, int type, const std::string& loads,
                 const std::string& stores, const std::string& aux = "") {
    Pmu(name, type,
        {{"format/event", "config:0-7"},
         {"format/umask", "config:8-15"},
         {"format/ldlat", "config1:0-15"},
         {"events/mem-loads", loads},
         {"events/mem-stores", stores},
         {"events/cpu-cycles", "event=0x3c"}});
    if (!aux.empty())
      sys_.Write("bus/event_source/devices/" + name + "/events/mem-loads-aux", aux + "\n");
  }
  // Every attr that is tried, and the answer to it.
  MemoryEventPlan Plan(uint64_t threshold = 30) {
    return PlanMemoryEvents(sys_.root(), threshold, [this](const perf_event_attr& attr) {
      tried_.push_back(attr);
      return answer_(attr);
    });
  }

  FakeProc sys_;
  std::vector<perf_event_attr> tried_;
  std::function<int(const perf_event_attr&)> answer_ = [](const perf_event_attr&) { return 0; };
};

TEST_F(MemoryEventsTest, Skylake) {
  IntelCore("cpu", 4, "event=0xcd,umask=0x1,ldlat=3", "event=0xd0,umask=0x82");
  const MemoryEventPlan plan = Plan(64);
  EXPECT_EQ(plan.method, MemoryMethod::kPebs);
  EXPECT_EQ(plan.obstacle, MemoryObstacle::kNone);
  EXPECT_EQ(plan.lowest_threshold, 3u);
  ASSERT_EQ(plan.events.size(), 2u);
  EXPECT_EQ(plan.events[0].event.name, "cpu/mem-loads/");
  EXPECT_EQ(plan.events[0].event.type, 4u);
  EXPECT_EQ(plan.events[0].event.config, 0x1cdu);
  EXPECT_EQ(plan.events[0].event.config1, 64u);
  EXPECT_FALSE(plan.events[0].leader.has_value());
  EXPECT_EQ(plan.events[0].latency_threshold, 64u);
  EXPECT_EQ(plan.events[1].event.config, 0x82d0u);
  EXPECT_EQ(plan.events[1].latency_threshold, 0u) << "of stores";
  ASSERT_EQ(tried_.size(), 2u);
  EXPECT_EQ(tried_[0].precise_ip, 2u);
  EXPECT_EQ(tried_[0].exclude_kernel, 1u);
  EXPECT_TRUE((tried_[0].sample_type & PERF_SAMPLE_DATA_SRC) != 0);
}

TEST_F(MemoryEventsTest, SapphireRapidsNeedsAnAuxiliaryLeader) {
  IntelCore("cpu", 4, "event=0xcd,umask=0x1,ldlat=3", "event=0xcd,umask=0x2",
            "event=0x03,umask=0x82");
  // Alone it is refused so.
  answer_ = [](const perf_event_attr& attr) { return attr.config == 0x1cd ? ENODATA : 0; };
  const MemoryEventPlan plan = Plan();
  EXPECT_EQ(plan.obstacle, MemoryObstacle::kNone);
  ASSERT_EQ(plan.events.size(), 2u);
  ASSERT_TRUE(plan.events[0].leader.has_value());
  EXPECT_EQ(plan.events[0].leader->config, 0x8203u);
  EXPECT_EQ(plan.events[1].event.config, 0x2cdu);
  EXPECT_FALSE(plan.events[1].leader.has_value()) << "stores need none";
}

TEST_F(MemoryEventsTest, AlderLakeHasTwoKindsOfCores) {
  IntelCore("cpu_core", 4, "event=0xcd,umask=0x1,ldlat=3", "event=0xcd,umask=0x2",
            "event=0x03,umask=0x82");
  IntelCore("cpu_atom", 10, "event=0xd0,umask=0x5,ldlat=3", "event=0xd0,umask=0x6");
  const MemoryEventPlan plan = Plan();
  EXPECT_EQ(plan.method, MemoryMethod::kPebs);
  std::vector<std::string> names;
  for (const AccessEvent& event : plan.events) names.push_back(event.event.name);
  EXPECT_THAT(names, ElementsAre("cpu_core/mem-loads/", "cpu_core/mem-stores/",
                                 "cpu_atom/mem-loads/", "cpu_atom/mem-stores/"));
  EXPECT_EQ(plan.events[2].event.type, 10u);
  EXPECT_EQ(plan.events[2].event.config, 0x5d0u);
  EXPECT_FALSE(plan.events[2].leader.has_value());
}

TEST_F(MemoryEventsTest, Zen2HasNoThreshold) {
  Pmu("cpu", 4, {{"format/event", "config:0-7,32-35"}, {"events/cpu-cycles", "event=0x76"}});
  Pmu("ibs_op", 9, {{"format/cnt_ctl", "config:19"}});
  const MemoryEventPlan plan = Plan(64);
  EXPECT_EQ(plan.method, MemoryMethod::kIbs);
  EXPECT_EQ(plan.lowest_threshold, 0u);
  ASSERT_EQ(plan.events.size(), 1u);
  EXPECT_EQ(plan.events[0].event.type, 9u);
  EXPECT_EQ(plan.events[0].event.config, 1u << 19);
  EXPECT_EQ(tried_[0].exclude_kernel, 0u) << "IBS refuses who asks for user space alone";
  EXPECT_EQ(tried_[0].precise_ip, 0u);
}

TEST_F(MemoryEventsTest, Zen4AndANewerKernel) {
  Pmu("ibs_op", 9,
      {{"format/cnt_ctl", "config:19"},
       {"format/l3missonly", "config:16"},
       {"format/swfilt", "config2:0"}});
  const MemoryEventPlan plan = Plan();
  ASSERT_EQ(plan.events.size(), 1u);
  EXPECT_EQ(plan.events[0].event.config, 1u << 19) << "all accesses, not only misses of L3";
  EXPECT_EQ(plan.events[0].event.config2, 1u);
  EXPECT_EQ(tried_[0].exclude_kernel, 1u) << "the kernel's driver filters";
}

TEST_F(MemoryEventsTest, Zen5FiltersInSteps) {
  Pmu("ibs_op", 9, {{"format/cnt_ctl", "config:19"}, {"format/ldlat", "config1:0-11"}});
  EXPECT_EQ(Plan(3).events[0].event.config1, 0u) << "every load: no filter";
  EXPECT_EQ(Plan(64).events[0].event.config1, 128u);
  EXPECT_EQ(Plan(129).events[0].event.config1, 256u);
  EXPECT_EQ(Plan(129).events[0].latency_threshold, 256u);
  EXPECT_EQ(Plan(3).events[0].latency_threshold, 0u);
  EXPECT_EQ(Plan(100'000).events[0].event.config1, 2048u);
  EXPECT_EQ(Plan().lowest_threshold, 128u);
}

TEST_F(MemoryEventsTest, WhatDoesNotOpenIsLeftOut) {
  IntelCore("cpu", 4, "event=0xcd,umask=0x1,ldlat=3", "event=0xd0,umask=0x82");
  answer_ = [](const perf_event_attr& attr) { return attr.config == 0x82d0 ? EINVAL : 0; };
  const MemoryEventPlan plan = Plan();
  EXPECT_EQ(plan.obstacle, MemoryObstacle::kNone);
  ASSERT_EQ(plan.events.size(), 1u);
  EXPECT_EQ(plan.events[0].event.name, "cpu/mem-loads/");
  EXPECT_EQ(plan.error, EINVAL);
}

TEST_F(MemoryEventsTest, WhyNothingIsSampled) {
  EXPECT_EQ(Plan().obstacle, MemoryObstacle::kNoPmu);
  Pmu("cpu", 4, {{"format/event", "config:0-7"}, {"events/cpu-cycles", "event=0x3c"}});
  EXPECT_EQ(Plan().obstacle, MemoryObstacle::kNoEvents) << "a guest without PEBS";
  EXPECT_TRUE(tried_.empty());
  IntelCore("cpu", 4, "event=0xcd,umask=0x1,ldlat=3", "event=0xd0,umask=0x82");
  for (const auto& [error, obstacle] :
       {std::pair(EACCES, MemoryObstacle::kNotPermitted),
        std::pair(EPERM, MemoryObstacle::kNotPermitted), std::pair(EBUSY, MemoryObstacle::kInUse),
        std::pair(EOPNOTSUPP, MemoryObstacle::kDoesNotOpen),
        std::pair(ENODATA, MemoryObstacle::kDoesNotOpen)}) {
    answer_ = [error = error](const perf_event_attr&) { return error; };
    const MemoryEventPlan plan = Plan();
    EXPECT_EQ(plan.obstacle, obstacle) << error;
    EXPECT_EQ(plan.error, error);
  }
}

TEST_F(MemoryEventsTest, FormatsOfSeveralRanges) {
  Pmu("cpu", 4,
      {{"format/event", "config:0-7,32-35"},
       {"format/inv", "config:23"},
       {"format/odd", "config3:0-7"},
       {"format/broken", "config:9-3"}});
  const auto pmu = SysfsPmu::Read(sys_.root(), "cpu");
  ASSERT_TRUE(pmu.ok()) << pmu.status();
  EXPECT_EQ(pmu->Encode({{"event", 0x5a2}, {"inv", 1}}, "x")->config,
            0xa2u | uint64_t{5} << 32 | 1u << 23);
  EXPECT_TRUE(absl::IsInvalidArgument(pmu->Encode({{"event", 0x1000}}, "x").status()));
  EXPECT_TRUE(absl::IsUnimplemented(pmu->Encode({{"odd", 1}}, "x").status()));
  EXPECT_TRUE(absl::IsUnimplemented(pmu->Encode({{"broken", 1}}, "x").status()));
  EXPECT_TRUE(absl::IsNotFound(SysfsPmu::Read(sys_.root(), "none").status()));
  EXPECT_FALSE(ParseTerms("event=zz").ok());
  EXPECT_EQ((*ParseTerms("edge,event=0x10")).at("edge"), 1u);
}

}  // namespace
}  // namespace perfd::agent
