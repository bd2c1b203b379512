// Sessions of processes that only wait for their children, and of the trees below them.
#include "tests/unit/agent/session_fixture.h"

namespace perfd::agent {
namespace {

using Phase = NodeProgress::Phase;

class SessionTreeTest : public SessionTest {
 protected:
  static constexpr int32_t kChild = kPid + 1;

  SessionTreeTest() {
    proc_.Remove(kPid);
    AddProcess(kPid, 0, "/usr/bin/timeout");
    AddProcess(kChild, kPid, "/usr/bin/app");
    on_probe_ = [this] {
      proc_.Write(absl::StrCat(kChild, "/task/", kChild, "/schedstat"), "923456789 5 6\n");
    };
  }
  void AddProcess(int32_t pid, int32_t parent, const std::string& executable) {
    FakeProcess process;
    process.pid = pid;
    process.parent_pid = parent;
    process.executable = executable;
    process.state = 'S';
    process.user_ticks = 0;
    proc_.AddProcess(process);
    proc_.Write(std::to_string(pid) + "/maps",
                "00400000-00500000 r-xp 00000000 08:01 77 /usr/bin/app\n");
  }
  std::vector<Notice> LauncherNotices() const {
    std::vector<Notice> found;
    for (const SessionUpdate& update : output_.update) {
      for (const Notice& notice : update.notices) {
        if (notice.launchers.has_value()) found.push_back(notice);
      }
    }
    return found;
  }
};

TEST_F(SessionTreeTest, ALauncherIsRefusedBeforeAnythingIsSampled) {
  Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFailed);
  EXPECT_TRUE(output_.windows.empty());
  const std::vector<Notice> notices = LauncherNotices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].severity, Notice::Severity::kError);
  EXPECT_EQ(notices[0].code, absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(notices[0].pid, kPid);
  EXPECT_EQ(notices[0].launchers->working, (std::vector<NamedProcess>{{kChild, "app"}}));
}

TEST_F(SessionTreeTest, BesideWhatWorksItIsLeftOutWithAWarning) {
  request_.spec.target.pids = {kPid, kChild};
  Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished);
  const std::vector<Notice> notices = LauncherNotices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].severity, Notice::Severity::kWarning);
  EXPECT_EQ(notices[0].code, absl::StatusCode::kOk) << "nothing is missing from the result";
}

TEST_F(SessionTreeTest, ATreeGoesOnAsLongAsAnythingOfItLives) {
  request_.spec.target.tree = true;
  request_.spec.duration_ns = request_.remaining_ns = 20 * kNsPerSecond;
  script_.on_drain = [this](SampleSink&, int drain) {
    if (drain == 10) proc_.Remove(kChild);
    if (drain == 50) AddProcess(kChild + 1, kPid, "/usr/bin/next");
    if (drain == 100) proc_.Remove(kChild + 1);
    if (drain == 100) proc_.Remove(kPid);
  };
  Run();
  EXPECT_EQ(output_.update.back().phase, Phase::kFinished) << output_.AllNotices();
  EXPECT_EQ(script_.added, (std::vector<int32_t>{kChild, kChild + 1}));
  EXPECT_LT(clock_.now_ns, 17 * kNsPerSecond) << "nothing of it lives any more";
  const std::vector<Notice> notices = LauncherNotices();
  ASSERT_EQ(notices.size(), 1u) << "told once";
  EXPECT_EQ(notices[0].severity, Notice::Severity::kInfo);
  for (const SessionUpdate& update : output_.update) {
    for (const Notice& notice : update.notices)
      EXPECT_EQ(notice.severity, Notice::Severity::kInfo) << notice.text;
  }
}

}  // namespace
}  // namespace perfd::agent
