// Sessions that follow a job: they wait for its first program, and go on until they are stopped.
#include <elf.h>

#include <algorithm>

#include "tests/unit/agent/session_fixture.h"

namespace perfd {
namespace {

using Phase = NodeProgress::Phase;
using testing::HasSubstr;

class SessionWaitTest : public SessionTest {
 protected:
  SessionWaitTest() {
    proc_.Remove(kPid);
    request_.spec.target.pids.clear();
    request_.spec.target.slurm_job = 4711;
    request_.wait_ns = 60 * kNsPerSecond;
    tools_.sleep = [this](int64_t ns) {
      clock_.now_ns += ns;
      if (on_rest_) on_rest_(++rests_);
    };
  }

  void AddJobProcess(int32_t pid, const std::string& executable = "/usr/bin/app") {
    FakeProcess process;
    process.pid = pid;
    process.executable = executable;
    process.arguments = {executable.substr(executable.rfind('/') + 1)};
    process.environment = {{"SLURM_JOB_ID", "4711"}, {"SLURM_PROCID", "0"}};
    proc_.AddProcess(process);
    proc_.Write(std::to_string(pid) + "/maps",
                "00400000-00500000 r-xp 00000000 08:01 77 /usr/bin/app\n");
  }

  // One that cannot be sampled.
  void AddOldProgram(int32_t pid) {
    AddJobProcess(pid);
    proc_.SetExecutableHead(pid, ELFCLASS32, EM_386);
  }
  // How often a notice says this.
  int Told(const std::string& text) const {
    int count = 0;
    for (const SessionNews& news : output_.news) {
      for (const Notice& notice : news.notices)
        count += notice.text.find(text) != std::string::npos ? 1 : 0;
    }
    return count;
  }
  bool AnyFailure() const {
    return std::any_of(output_.news.begin(), output_.news.end(), [](const SessionNews& news) {
      return std::any_of(news.notices.begin(), news.notices.end(), [](const Notice& notice) {
        return notice.severity != Notice::Severity::kInfo;
      });
    });
  }

  std::function<void(int rest)> on_rest_;
  int rests_ = 0;
};

TEST_F(SessionWaitTest, SamplesFromTheFirstProgramOn) {
  on_rest_ = [this](int rest) {
    if (rest == 20) AddJobProcess(kPid);
  };
  script_.on_drain = [](SampleSink& sink, int) { sink.OnSample(At(0x400144)); };
  Run();
  EXPECT_EQ(output_.news.front().phase, Phase::kDiscovering);
  EXPECT_EQ(output_.news.back().phase, Phase::kFinished) << output_.AllNotices();
  int64_t covered_ns = 0;
  for (const Window& window : output_.windows) covered_ns += window.duration_ns;
  EXPECT_EQ(covered_ns, request_.remaining_ns);  // waiting does not count
  EXPECT_GE(output_.Total().kept, 20u);
}

TEST_F(SessionWaitTest, TheShellOfABatchScriptIsNotWhatIsWaitedFor) {
  AddJobProcess(100, "/bin/bash");
  on_rest_ = [this](int rest) {
    if (rest == 20) AddJobProcess(kPid);
  };
  Run();
  ASSERT_FALSE(script_.added.empty());
  EXPECT_EQ(script_.added.front(), kPid);
}

TEST_F(SessionWaitTest, NorIsAProgramThatEndsAtOnce) {
  on_rest_ = [this](int rest) {
    if (rest < 20 && rest % 2 == 1) AddJobProcess(100 + rest, "/usr/bin/sed");
    if (rest < 21 && rest % 2 == 0) proc_.Remove(100 + rest - 1);
    if (rest == 30) AddJobProcess(kPid);
  };
  Run();
  EXPECT_EQ(script_.added, std::vector<int32_t>{kPid});
}

TEST_F(SessionWaitTest, WhenTheTimeIsOverNothingWasFound) {
  Run();
  EXPECT_EQ(output_.news.back().phase, Phase::kFinished);
  EXPECT_EQ(output_.news.back().last_sequence, 0u);
  EXPECT_TRUE(output_.news.back().ranks.empty());
  EXPECT_TRUE(output_.windows.empty());
  EXPECT_GE(clock_.now_ns, request_.wait_ns);
}

TEST_F(SessionWaitTest, TheEndOfTheJobEndsTheWaiting) {
  Session session(request_, tools_);
  on_rest_ = [&](int rest) {
    if (rest == 8) session.Stop();
  };
  session.Run();
  EXPECT_EQ(output_.news.back().phase, Phase::kFinished);
  EXPECT_EQ(rests_, 8);
}

TEST_F(SessionWaitTest, ASessionThatIsSuspendedSaysNoEnd) {
  Session session(request_, tools_);
  on_rest_ = [&](int rest) {
    if (rest == 8) session.Suspend();
  };
  session.Run();
  EXPECT_EQ(output_.news.back().phase, Phase::kDiscovering);
}

TEST_F(SessionWaitTest, BetweenTwoStepsOfTheJobItGoesOn) {
  AddJobProcess(kPid);
  script_.on_drain = [this](SampleSink& sink, int drain) {
    if (drain < 5) sink.OnSample(At(0x400144));
    if (drain == 5) proc_.Remove(kPid);
    if (drain == 12) AddJobProcess(5000);
    if (drain > 12) sink.OnSample(At(0x400144, 5000));
  };
  request_.remaining_ns = request_.spec.duration_ns = 10 * kNsPerSecond;
  Run();
  EXPECT_EQ(script_.added, (std::vector<int32_t>{kPid, 5000}));
  int64_t covered_ns = 0;
  for (const Window& window : output_.windows) covered_ns += window.duration_ns;
  EXPECT_EQ(covered_ns, request_.remaining_ns);
  EXPECT_EQ(Told("rank 0 (app) ended"), 1);
  EXPECT_EQ(Told("rank 0 goes on as another process (app)"), 1);
  EXPECT_FALSE(AnyFailure()) << output_.AllNotices();
}

TEST_F(SessionWaitTest, TheShellBetweenTwoStepsIsNoRank) {
  AddJobProcess(100, "/bin/bash");
  AddJobProcess(kPid);
  script_.on_drain = [this](SampleSink&, int drain) {
    if (drain == 5) proc_.Remove(kPid);
    if (drain == 60) AddJobProcess(5000);
  };
  request_.remaining_ns = request_.spec.duration_ns = 15 * kNsPerSecond;
  Run();
  EXPECT_EQ(script_.added, (std::vector<int32_t>{kPid, 5000}));
}

TEST_F(SessionWaitTest, AProgramThatEndsWhileItIsAddedIsWaitedOver) {
  AddJobProcess(100);
  int opened = 0;
  const auto open = tools_.open_source;
  tools_.open_source = [&](const ProfileSpec& spec, const Discovery& discovery) {
    script_.add_status = ++opened == 1 ? absl::NotFoundError("gone") : absl::OkStatus();
    if (opened == 1) {
      proc_.Remove(100);
      AddJobProcess(kPid);
    }
    return open(spec, discovery);
  };
  Run();
  EXPECT_EQ(opened, 2);
  EXPECT_EQ(output_.news.back().phase, Phase::kFinished) << output_.AllNotices();
  EXPECT_FALSE(output_.windows.empty());
  EXPECT_EQ(output_.AllNotices().find("cannot be sampled"), std::string::npos);
}

TEST_F(SessionWaitTest, SoIsOneThatEndsBeforeTheSourceIsOpen) {
  AddJobProcess(100);
  int opened = 0;
  const auto open = tools_.open_source;
  tools_.open_source = [&](const ProfileSpec& spec,
                           const Discovery& discovery) -> absl::StatusOr<OpenedSource> {
    if (++opened > 1) return open(spec, discovery);
    proc_.Remove(100);
    AddJobProcess(kPid);
    return absl::NotFoundError("no such process");
  };
  Run();
  EXPECT_EQ(opened, 2);
  EXPECT_EQ(output_.news.back().phase, Phase::kFinished) << output_.AllNotices();
  EXPECT_FALSE(output_.windows.empty());
  EXPECT_EQ(Told("no such process"), 0);
}

TEST_F(SessionWaitTest, WhatCannotBeOpenedForAProgramThatLivesIsSaidAfterThreeTries) {
  AddJobProcess(kPid);
  int opened = 0;
  tools_.open_source = [&](const ProfileSpec&, const Discovery&) -> absl::StatusOr<OpenedSource> {
    ++opened;
    return absl::NotFoundError("no such event");
  };
  Run();
  EXPECT_EQ(opened, 3);
  EXPECT_EQ(output_.news.back().phase, Phase::kFailed);
  EXPECT_EQ(Told("no such event"), 1);
  EXPECT_LT(clock_.now_ns, 10 * kNsPerSecond);
}

TEST_F(SessionWaitTest, WhatIsRefusedWhileItWaitsIsToldOnceAndAtOnce) {
  AddOldProgram(200);
  on_rest_ = [this](int rest) {
    if (rest == 20) AddJobProcess(kPid);
  };
  request_.remaining_ns = request_.spec.duration_ns = 10 * kNsPerSecond;
  Run();
  EXPECT_EQ(Told("process 200 (app) is a 32-bit program"), 1);
  const auto told = std::find_if(output_.news.begin(), output_.news.end(),
                                 [](const SessionNews& news) { return !news.notices.empty(); });
  ASSERT_NE(told, output_.news.end());
  EXPECT_EQ(told->phase, Phase::kDiscovering);
  EXPECT_EQ(told->notices[0].severity, Notice::Severity::kError);
  EXPECT_EQ(told->notices[0].pid, 200);
  EXPECT_EQ(output_.news.back().phase, Phase::kFinished);
}

TEST_F(SessionWaitTest, WhatIsRefusedWhileItSamplesToo) {
  AddJobProcess(kPid);
  script_.on_drain = [this](SampleSink&, int drain) {
    if (drain == 5) AddOldProgram(200);
  };
  request_.remaining_ns = request_.spec.duration_ns = 10 * kNsPerSecond;
  Run();
  EXPECT_EQ(Told("process 200 (app) is a 32-bit program"), 1);
}

TEST_F(SessionWaitTest, WhatIsRefusedForAMomentIsNot) {
  on_rest_ = [this](int rest) {
    if (rest < 20 && rest % 2 == 1) AddOldProgram(100 + rest);
    if (rest < 21 && rest % 2 == 0) proc_.Remove(100 + rest - 1);
    if (rest == 30) AddJobProcess(kPid);
  };
  Run();
  EXPECT_EQ(output_.news.back().phase, Phase::kFinished);
  EXPECT_FALSE(output_.windows.empty());
  EXPECT_FALSE(AnyFailure()) << output_.AllNotices();
}

// As the process that Slurm keeps in the cgroup of every job (PrologFlags=contain).
TEST_F(SessionWaitTest, NorIsAProcessOfTheSiteInsideTheJob) {
  proc_.AddProcess({.pid = 200,
                    .uid = 0,
                    .executable = "/usr/bin/sleep",
                    .arguments = {"sleep"},
                    .cgroup = "0::/slurm/job_4711/step_extern\n"});
  AddJobProcess(kPid);
  Run();
  EXPECT_FALSE(output_.windows.empty());
  EXPECT_FALSE(AnyFailure()) << output_.AllNotices();
}

TEST_F(SessionWaitTest, NothingButRefusalsIsAFailure) {
  AddOldProgram(200);
  Run();
  EXPECT_EQ(output_.news.back().phase, Phase::kFailed);
  EXPECT_EQ(Told("32-bit"), 1);
  EXPECT_GE(clock_.now_ns, request_.wait_ns);
}

// A node of many processes is looked at more rarely; a stop does not wait for that.
TEST_F(SessionWaitTest, AStopEndsALongRest) {
  for (int32_t pid = 1000; pid < 1100; ++pid) {
    FakeProcess other;
    other.pid = pid;
    proc_.AddProcess(other);
  }
  Session session(request_, tools_);
  on_rest_ = [&](int rest) {
    if (rest == 1) session.Stop();
  };
  session.Run();
  EXPECT_EQ(rests_, 1);
  EXPECT_LE(clock_.now_ns, 1 + 250 * kNsPerMs);
}

TEST_F(SessionWaitTest, WhatMayNotBeSampledIsNotTriedForEver) {
  AddJobProcess(kPid);
  script_.add_status = absl::PermissionDeniedError("perf_event_paranoid");
  Run();
  EXPECT_EQ(output_.news.back().phase, Phase::kFailed);
  EXPECT_THAT(output_.AllNotices(), HasSubstr("perf_event_paranoid"));
  EXPECT_LT(clock_.now_ns, 10 * kNsPerSecond);
}

}  // namespace
}  // namespace perfd
