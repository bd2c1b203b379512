// Sessions that follow a job: they wait for its first program, and go on until they are stopped.
#include <elf.h>

#include <algorithm>

#include "tests/unit/agent/session_fixture.h"

namespace perfd::agent {
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
    // A look that costs nothing is followed by one rest: rests count looks, whatever the machine.
    tools_.cpu_ns = [this] { return cpu_ns_ += probe_cost_ns_; };
  }

  // Of a job without MPI that Slurm does not run.
  void AddSerialProcess(int32_t pid, const std::string& executable = "/usr/bin/app") {
    AddJobProcess(pid, executable);
    proc_.Write(std::to_string(pid) + "/environ", std::string("PBS_JOBID=4711.server\0", 22));
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
    for (const SessionUpdate& update : output_.update) {
      for (const Notice& notice : update.notices)
        count += notice.text.find(text) != std::string::npos ? 1 : 0;
    }
    return count;
  }
  bool AnyFailure() const {
    return std::any_of(
        output_.update.begin(), output_.update.end(), [](const SessionUpdate& update) {
          return std::any_of(
              update.notices.begin(), update.notices.end(),
              [](const Notice& notice) { return notice.severity != Notice::Severity::kInfo; });
        });
  }

  std::function<void(int rest)> on_rest_;
  int rests_ = 0;
  uint64_t cpu_ns_ = 0;
  uint64_t probe_cost_ns_ = 0;
};

TEST_F(SessionWaitTest, SamplesFromTheFirstProgramOn) {
  on_rest_ = [this](int rest) {
    if (rest == 20) AddJobProcess(kPid);
  };
  script_.on_drain = [](SampleSink& sink, int) { sink.OnSample(At(0x400144)); };
  Run();
  EXPECT_EQ(output_.update.front().phase, Phase::kDiscovering);
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished) << output_.AllNotices();
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

// Each look sees another one.
TEST_F(SessionWaitTest, NorIsAProgramThatEndsAtOnce) {
  on_rest_ = [this](int rest) {
    proc_.Remove(100 + rest - 1);
    if (rest < 20) AddJobProcess(100 + rest, "/usr/bin/sed");
    if (rest == 30) AddJobProcess(kPid);
  };
  Run();
  EXPECT_EQ(script_.added, std::vector<int32_t>{kPid});
}

// As after a restart of the agent: the wait that the daemon asks for is over, all but a second.
TEST_F(SessionWaitTest, AProgramIsLookedForTwiceHoweverLittleTimeIsLeft) {
  AddJobProcess(kPid);
  request_.wait_ns = kNsPerSecond;
  probe_cost_ns_ = 30 * kNsPerMs;  // the rest after it is the longest: 5 s
  Run();
  EXPECT_EQ(script_.added, std::vector<int32_t>{kPid});
  EXPECT_FALSE(output_.windows.empty());
}

TEST_F(SessionWaitTest, AndNoMoreThanTwice) {
  request_.wait_ns = kNsPerSecond;
  probe_cost_ns_ = 30 * kNsPerMs;
  Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished);
  EXPECT_EQ(cpu_ns_, 4 * probe_cost_ns_) << "the CPU is read before and after each";
}

TEST_F(SessionWaitTest, WhenTheTimeIsOverNothingWasFound) {
  Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished);
  EXPECT_EQ(output_.update.back().last_sequence, 0u);
  EXPECT_TRUE(output_.update.back().ranks.empty());
  EXPECT_TRUE(output_.windows.empty());
  EXPECT_GE(clock_.now_ns, request_.wait_ns);
}

TEST_F(SessionWaitTest, TheEndOfTheJobEndsTheWaiting) {
  Session session(request_, tools_);
  on_rest_ = [&](int rest) {
    if (rest == 8) session.Stop();
  };
  session.Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished);
  EXPECT_EQ(rests_, 8);
}

TEST_F(SessionWaitTest, ASessionThatIsSuspendedSaysNoEnd) {
  Session session(request_, tools_);
  on_rest_ = [&](int rest) {
    if (rest == 8) session.Suspend();
  };
  session.Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kDiscovering);
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

TEST_F(SessionWaitTest, WithoutMpiTheNextProgramHasTheNumberOfTheLast) {
  AddSerialProcess(100, "/bin/bash");
  AddSerialProcess(kPid);
  script_.on_drain = [this](SampleSink&, int drain) {
    if (drain == 5) proc_.Remove(kPid);
    if (drain == 60) AddSerialProcess(5000);
  };
  request_.spec.ranks = {{0, 0}};
  request_.remaining_ns = request_.spec.duration_ns = 15 * kNsPerSecond;
  Run();
  EXPECT_EQ(script_.added, (std::vector<int32_t>{kPid, 5000}));
  EXPECT_EQ(Told("rank 0 goes on as another process (app)"), 1);
  EXPECT_FALSE(AnyFailure()) << output_.AllNotices();
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
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished) << output_.AllNotices();
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
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished) << output_.AllNotices();
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
  EXPECT_EQ(output_.update.back().phase, Phase::kFailed);
  EXPECT_EQ(Told("no such event"), 1);
  EXPECT_LT(clock_.now_ns, 10 * kNsPerSecond);
}

// They keep their pid until their parent has waited for them.
TEST_F(SessionWaitTest, ProgramsThatHaveEndedAreNoSuchTries) {
  AddJobProcess(100);
  int opened = 0;
  const auto open = tools_.open_source;
  tools_.open_source = [&](const ProfileSpec& spec,
                           const Discovery& discovery) -> absl::StatusOr<OpenedSource> {
    if (++opened > 5) return open(spec, discovery);
    const int32_t pid = discovery.ranks.front().pid;
    proc_.AddProcess({.pid = pid, .executable = "", .arguments = {}, .state = 'Z'});
    AddJobProcess(pid + 1);
    return absl::NotFoundError("no such process");
  };
  Run();
  EXPECT_EQ(script_.added, std::vector<int32_t>{105});
  EXPECT_FALSE(AnyFailure()) << output_.AllNotices();
}

class LateProgramTest : public SessionWaitTest {
 protected:
  static constexpr int32_t kLate = 5000;

  LateProgramTest() {
    AddJobProcess(kPid);
    script_.on_drain = [this](SampleSink&, int drain) {
      if (drain == 5) AddJobProcess(kLate);
    };
    tools_.claim_pids = [this](const std::vector<int32_t>& pids) {
      if (pids == std::vector<int32_t>{kLate}) {
        script_.add_status = Answer(++tries_);
        if (gone_) proc_.Remove(kLate);
      }
      return std::vector<int32_t>();
    };
    tools_.release_pid = [this](int32_t pid) { released_.push_back(pid); };
    request_.remaining_ns = request_.spec.duration_ns = 15 * kNsPerSecond;
  }

  // To the try to add it.
  absl::Status Answer(int tries) const { return tries < succeeds_ ? failure_ : absl::OkStatus(); }

  absl::Status failure_ = absl::NotFoundError("no such event");
  int succeeds_ = 1'000;  // that try
  bool gone_ = false;
  int tries_ = 0;
  std::vector<int32_t> released_;
};

TEST_F(LateProgramTest, WhatCannotBeSampledIsFreeForOthers) {
  failure_ = absl::PermissionDeniedError("no right");
  Run();
  EXPECT_EQ(tries_, 1);
  EXPECT_EQ(released_, std::vector<int32_t>{kLate});
  EXPECT_EQ(Told("rank 0 (pid 5000) cannot be sampled: no right"), 1);
}

TEST_F(LateProgramTest, SoIsWhatHasEndedBeforeItWasAdded) {
  gone_ = true;
  Run();
  EXPECT_EQ(tries_, 1);
  EXPECT_EQ(released_, std::vector<int32_t>{kLate});
  EXPECT_FALSE(AnyFailure()) << output_.AllNotices();
}

TEST_F(LateProgramTest, WhatIsNotFoundAlthoughItLivesIsTriedAgain) {
  succeeds_ = 3;
  Run();
  EXPECT_EQ(tries_, 3);
  EXPECT_EQ(released_, (std::vector<int32_t>{kLate, kLate}));
  EXPECT_EQ(Told("rank 0 goes on as another process (app)"), 1);
  EXPECT_FALSE(AnyFailure()) << output_.AllNotices();
}

TEST_F(LateProgramTest, ThreeTimesThenItIsSaid) {
  Run();
  EXPECT_EQ(tries_, 3);
  EXPECT_EQ(released_, (std::vector<int32_t>{kLate, kLate, kLate}));
  EXPECT_EQ(Told("rank 0 (pid 5000) cannot be sampled: no such event"), 1);
}

TEST_F(SessionWaitTest, WhatIsRefusedWhileItWaitsIsToldOnceAndAtOnce) {
  AddOldProgram(200);
  on_rest_ = [this](int rest) {
    if (rest == 20) AddJobProcess(kPid);
  };
  request_.remaining_ns = request_.spec.duration_ns = 10 * kNsPerSecond;
  Run();
  EXPECT_EQ(Told("process 200 (app) is a 32-bit program"), 1);
  const auto told =
      std::find_if(output_.update.begin(), output_.update.end(),
                   [](const SessionUpdate& update) { return !update.notices.empty(); });
  ASSERT_NE(told, output_.update.end());
  EXPECT_EQ(told->phase, Phase::kDiscovering);
  EXPECT_EQ(told->notices[0].severity, Notice::Severity::kError);
  EXPECT_EQ(told->notices[0].pid, 200);
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished);
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
    proc_.Remove(100 + rest - 1);
    if (rest < 20) AddOldProgram(100 + rest);
    if (rest == 30) AddJobProcess(kPid);
  };
  Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished);
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
  EXPECT_EQ(output_.update.back().phase, Phase::kFailed);
  EXPECT_EQ(Told("32-bit"), 1);
  EXPECT_GE(clock_.now_ns, request_.wait_ns);
}

// A node of many processes is looked at more rarely; a stop does not wait for that.
TEST_F(SessionWaitTest, AStopEndsALongRest) {
  probe_cost_ns_ = 30 * kNsPerMs;
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
  EXPECT_EQ(output_.update.back().phase, Phase::kFailed);
  EXPECT_THAT(output_.AllNotices(), HasSubstr("perf_event_paranoid"));
  EXPECT_LT(clock_.now_ns, 10 * kNsPerSecond);
}

}  // namespace
}  // namespace perfd::agent
