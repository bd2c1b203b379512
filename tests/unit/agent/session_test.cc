#include <map>

#include "tests/unit/agent/session_fixture.h"

namespace perfd::agent {
namespace {

using Phase = NodeProgress::Phase;
using testing::HasSubstr;

uint64_t LivedNs(const RecordingOutput& output) {
  uint64_t lived_ns = 0;
  for (const Window& window : output.windows) lived_ns += window.overhead.rank_wall_ns;
  return lived_ns;
}

TEST_F(SessionTest, ARankIsCountedAsLongAsItLives) {
  AddRank(kPid + 1);
  request_.spec.target.pids = {kPid, kPid + 1};
  script_.on_drain = [this](SampleSink&, int drain) {
    if (drain == 12) proc_.Remove(kPid + 1);
  };
  Run();
  const auto whole = static_cast<uint64_t>(request_.remaining_ns);
  EXPECT_GE(LivedNs(output_), whole + 500'000'000);
  EXPECT_LE(LivedNs(output_), whole + 1'200'000'000) << "it ended after 1.2 s of the 3";
}

TEST_F(SessionTest, SamplesUntilTheTimeIsOverAndHandsOverAllWindows) {
  script_.on_drain = [](SampleSink& sink, int) { sink.OnSample(At(0x400144)); };
  Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished) << output_.AllNotices();
  EXPECT_EQ(output_.update.back().last_sequence, output_.windows.size());
  EXPECT_TRUE(output_.update.back().first_sample);
  EXPECT_GE(output_.windows.size(), 3u);
  int64_t covered_ns = 0;
  for (const Window& window : output_.windows) {
    covered_ns += window.duration_ns;
    EXPECT_EQ(window.profile_id, "p-000001");
    ASSERT_EQ(window.locations.size(), 1u);
    EXPECT_EQ(window.locations[0].category, Category::kLoop);
  }
  EXPECT_EQ(covered_ns, request_.remaining_ns);
  EXPECT_EQ(LivedNs(output_), static_cast<uint64_t>(covered_ns)) << "one rank, all the time";
  EXPECT_TRUE(output_.Total().Balanced());
  EXPECT_GE(output_.Total().kept, 30u);  // ten drains a second
}

TEST_F(SessionTest, SaysThatTheClockOfItsNodeIsOff) {
  Run();
  EXPECT_THAT(output_.AllNotices(), testing::Not(HasSubstr("clock")));
  for (const auto& [ahead_ns, words] :
       std::map<int64_t, std::string>{{3600 * kNsPerSecond, "3600 s ahead of perfd's"},
                                      {-90 * kNsPerSecond, "90 s behind perfd's"}}) {
    output_.update.clear();
    request_.clock_ahead_ns = ahead_ns;
    Run();
    EXPECT_THAT(output_.AllNotices(), HasSubstr(words));
    ASSERT_FALSE(output_.update.front().notices.empty());
    EXPECT_EQ(output_.update.front().notices[0].severity, Notice::Severity::kInfo);
  }
}

// Of a rank that waits for no CPU the agent takes nothing, once it has begun; of one whose threads nobody sees all may be lost.
TEST_F(SessionTest, WindowsTellWhatRanksCanHaveLostToTheAgent) {
  bool starts_threads = false;
  script_.on_drain = [&](SampleSink& sink, int drain) {
    AddRank(kPid, 150 + static_cast<uint64_t>(10 * drain));
    if (starts_threads) {
      TaskEvent event{};
      event.kind = TaskEvent::Kind::kThreadStarted;
      event.pid = kPid;
      event.tid = 5000 + drain;
      sink.OnTask(event);
    }
  };
  const auto lost = [&](bool starts) {
    starts_threads = starts;
    output_.windows.clear();
    Run();
    OverheadFigures all;
    for (const Window& window : output_.windows) all += window.overhead;
    EXPECT_LE(all.lost_to_agent_ns, all.agent_cpu_ns);
    EXPECT_GT(all.agent_cpu_ns, 0u);
    return static_cast<double>(all.lost_to_agent_ns) / static_cast<double>(all.agent_cpu_ns);
  };
  const double unseen = lost(true);
  EXPECT_GT(unseen, 0.8);
  EXPECT_LT(lost(false), unseen);
}

TEST_F(SessionTest, CountsWhatIsNotItsOwnAndWhatWasLost) {
  script_.on_drain = [](SampleSink& sink, int drain) {
    if (drain != 2) return;
    sink.OnSample(At(0x400144, 9999));
    sink.OnSample(At(0xdead0000));
    sink.OnLost(7);
    sink.OnThrottled();
    sink.OnMalformed();
    sink.OnLateThread(kPid, 4712, 55);
    sink.OnLateThread(9999, 9999, 55);  // not ours
  };
  Run();
  const Accounting total = output_.Total();
  EXPECT_EQ(total.seen, 3u);
  EXPECT_EQ(total.kept, 1u);
  EXPECT_EQ(total.dropped[static_cast<size_t>(DropReason::kForeignProcess)], 1u);
  EXPECT_EQ(total.dropped[static_cast<size_t>(DropReason::kMalformed)], 1u);
  EXPECT_EQ(total.lost, 7u);
  EXPECT_EQ(total.throttled, 1u);
  EXPECT_EQ(total.late_threads, 1u);
  EXPECT_EQ(total.late_thread_cpu_ns, 55u);
  EXPECT_TRUE(total.Balanced());
}

TEST_F(SessionTest, AccessesAreCountedByPlaceAndStandForNoTime) {
  accesses_ = {{"loads", 30}};
  script_.on_drain = [](SampleSink& sink, int drain) {
    if (drain != 2) return;
    const auto access = [&](uint64_t ip, int32_t pid, uint64_t address) {
      Sample sample = At(ip, pid);
      sample.access = MemoryAccess{.address = address, .latency_cycles = 90};
      sample.access->source = {
          .operation = MemoryOperation::kLoad, .level = MemoryLevel::kL3, .tlb = TlbResult::kWalk};
      sink.OnAccess(sample);
    };
    access(0x400144, kPid, 0x1000);
    access(0x400144, kPid, 0x2000);
    access(0x400144, 9999, 0x1000);  // not ours
    sink.OnAccess(At(0x400144));     // tells of none
    sink.OnLostAccesses(7);
    sink.OnSample(At(0x400144));
  };
  const auto run = [this] {
    output_.windows.clear();
    Run();
    MemoryProfile all;
    for (const Window& window : output_.windows) {
      for (const MemoryRow& row : window.findings.memory.rows) {
        EXPECT_EQ(row.pid, kPid);
        all.Merge(row.profile);
      }
    }
    return all;
  };
  const MemoryProfile all = run();
  EXPECT_EQ(all.loads[static_cast<size_t>(MemoryLevel::kL3)].samples, 2u);
  EXPECT_EQ(all.tlb[static_cast<size_t>(TlbResult::kWalk)].samples, 2u);
  EXPECT_EQ(all.without_latency, 0u);
  EXPECT_EQ(output_.Total().kept, 1u) << "samples of time alone";
  uint64_t lost = 0;
  for (const Window& window : output_.windows) lost += window.findings.memory.lost;
  EXPECT_EQ(lost, 7u);
  EXPECT_EQ(output_.Total().lost, 0u);
  EXPECT_EQ(output_.windows.front().findings.memory.events, accesses_);
  request_.spec.memory.dtlb = false;
  EXPECT_EQ(run().tlb[static_cast<size_t>(TlbResult::kWalk)].samples, 0u);
}

TEST_F(SessionTest, ARankThatEndsEndsTheSessionAndIsSaid) {
  script_.on_drain = [this](SampleSink& sink, int drain) {
    sink.OnSample(At(0x400144));
    if (drain == 12) proc_.Remove(kPid);
  };
  Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished);
  EXPECT_THAT(output_.AllNotices(), HasSubstr("rank 0 (app) ended "));
  EXPECT_THAT(script_.removed, testing::Contains(kPid));
  EXPECT_GE(output_.Total().kept, 12u);
  EXPECT_LT(clock_.now_ns, request_.remaining_ns);
}

TEST_F(SessionTest, TheNumberOfAProcessThatEndedIsFreeForOthers) {
  AddRank(kPid + 1);
  request_.spec.target.pids = {kPid, kPid + 1};
  std::vector<int32_t> claimed, released;
  tools_.claim_pids = [&](const std::vector<int32_t>& pids) {
    claimed.insert(claimed.end(), pids.begin(), pids.end());
    return std::vector<int32_t>();
  };
  tools_.release_pid = [&](int32_t pid) { released.push_back(pid); };
  script_.on_drain = [this](SampleSink&, int drain) {
    if (drain == 12) proc_.Remove(kPid + 1);
  };
  Run();
  EXPECT_EQ(claimed, (std::vector<int32_t>{kPid, kPid + 1}));
  EXPECT_EQ(released, std::vector<int32_t>{kPid + 1});
}

TEST_F(SessionTest, SoIsThatOfOneThatHasAnotherOwnerNow) {
  std::vector<int32_t> released;
  tools_.release_pid = [&](int32_t pid) { released.push_back(pid); };
  script_.on_drain = [this](SampleSink&, int drain) {
    if (drain == 12) proc_.AddProcess({.pid = kPid, .effective_uid = 0});
  };
  Run();
  EXPECT_THAT(output_.AllNotices(), HasSubstr("has got the rights of root"));
  EXPECT_EQ(released, std::vector<int32_t>{kPid});
}

TEST_F(SessionTest, ARankThatComesLateAndIsGoneAtOnceIsNoTrouble) {
  request_.spec.target.pids.clear();
  request_.spec.target.command = "app";
  request_.spec.duration_ns = request_.remaining_ns = 6 * kNsPerSecond;
  script_.on_drain = [this](SampleSink&, int drain) {
    if (drain != 5) return;
    script_.add_status = absl::NotFoundError("no such process");
    AddRank(kPid + 1);
  };
  tools_.claim_pids = [this](const std::vector<int32_t>& pids) {
    if (pids == std::vector<int32_t>{kPid + 1}) proc_.Remove(kPid + 1);
    return std::vector<int32_t>();
  };
  Run();
  EXPECT_THAT(script_.added, testing::ElementsAre(kPid, kPid + 1));
  EXPECT_EQ(output_.AllNotices(), "");
}

// As with a ring per thread: the exec is told by the ring of one thread, the samples of the others come after it.
TEST_F(SessionTest, SamplesOfBeforeAnExecBelongToTheProgramOfTheirTime) {
  const auto at = [](uint64_t ip, uint64_t time_ns) {
    Sample sample = At(ip);
    sample.time_ns = time_ns;
    return sample;
  };
  script_.on_drain = [&, this](SampleSink& sink, int drain) {
    if (drain != 2) return;
    proc_.Write(std::to_string(kPid) + "/maps",
                "00400000-00500000 r-xp 00000000 08:01 78 /usr/bin/second\n");
    sink.OnTask({.kind = TaskEvent::Kind::kExec, .pid = kPid, .tid = kPid, .time_ns = 1000});
    for (int i = 0; i < 3; ++i) sink.OnSample(at(0x400144, 999));
    sink.OnSample(at(0x400144, 1000));
    sink.OnSample(
        at(0x600000, 999));  // never mapped: the new maps do not say what was there before
  };
  Run();
  std::map<std::string, uint64_t> samples;
  for (const Window& window : output_.windows) {
    for (const WindowRow& row : window.rows)
      samples[window.locations[row.location].module_path] += row.samples;
  }
  EXPECT_EQ(samples["/usr/bin/app"], 3u);
  EXPECT_EQ(samples["/usr/bin/second"], 1u);
  EXPECT_EQ(samples[""], 1u) << "[unmapped]";
}

TEST_F(SessionTest, ASuspendedSessionTellsWhatItLost) {
  output_.refuse = true;
  Session session(request_, tools_);
  script_.on_drain = [&](SampleSink& sink, int drain) {
    sink.OnSample(At(0x400144));
    if (drain == 3) session.Suspend();
  };
  session.Run();
  EXPECT_THAT(output_.AllNotices(), HasSubstr("samples of node node1 are in no window"));
  EXPECT_FALSE(output_.update.back().notices.empty());
  EXPECT_EQ(output_.update.back().phase, Phase::kSampling) << "another agent goes on";
}

TEST_F(SessionTest, ARankOfAnotherProfileIsRefused) {
  tools_.claim_pids = [](const std::vector<int32_t>& pids) { return pids; };
  Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFailed);
  EXPECT_THAT(output_.AllNotices(), HasSubstr("already measured by another profile"));
  EXPECT_TRUE(script_.added.empty());
}

TEST_F(SessionTest, ARankOfAnotherUserIsRefused) {
  request_.requester.uid = 1001;
  Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFailed);
  EXPECT_TRUE(script_.added.empty());
  EXPECT_TRUE(output_.windows.empty());
}

TEST_F(SessionTest, PerfForbiddenIsSaidWithTheRemedyOfTheSource) {
  script_.add_status = absl::PermissionDeniedError("set kernel.perf_event_paranoid to 2");
  Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFailed);
  EXPECT_THAT(output_.AllNotices(), HasSubstr("kernel.perf_event_paranoid"));
}

TEST_F(SessionTest, ASuspendedSessionHandsOverWindowsButTellsNoEnd) {
  Session session(request_, tools_);
  script_.on_drain = [&](SampleSink& sink, int drain) {
    sink.OnSample(At(0x400144));
    if (drain == 8) session.Suspend();
  };
  session.Run();
  EXPECT_GE(output_.Total().kept, 9u);
  for (const SessionUpdate& update : output_.update) EXPECT_LT(update.phase, Phase::kAnalyzing);
}

}  // namespace
}  // namespace perfd::agent
