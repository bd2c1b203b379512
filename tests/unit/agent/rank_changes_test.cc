#include "agent/pipeline/ranks/rank_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Severity = Notice::Severity;

class RankChangesTest : public testing::Test {
 protected:
  static RankInfo Rank(int32_t rank, int32_t pid) {
    RankInfo info;
    info.rank = rank;
    info.pid = pid;
    info.command = "app";
    return info;
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    for (const Notice& notice : notices_.Drain({})) texts.push_back(notice.text);
    return texts;
  }

  SessionNotices notices_{"node1"};
  RankChanges changes_{/*follows_job=*/false, &notices_};
  RankChanges of_job_{/*follows_job=*/true, &notices_};
};

TEST_F(RankChangesTest, SaysWhoJoinedAndWhen) {
  changes_.Began(Rank(0, 100));
  changes_.Joined(Rank(1, 101), 4.25);
  const std::vector<Notice> notices = notices_.Drain({});
  ASSERT_THAT(notices, SizeIs(1));
  EXPECT_EQ(notices[0].text, "rank 1 (app) joined 4.2 s after sampling began");
  EXPECT_EQ(notices[0].severity, Severity::kInfo);
  EXPECT_EQ(notices[0].pid, 101);
}

TEST_F(RankChangesTest, ANumberThatWasThereGoesOn) {
  changes_.Began(Rank(0, 100));
  changes_.Joined(Rank(0, 101), 4);
  changes_.Joined(Rank(1, 102), 4);
  changes_.Joined(Rank(1, 103), 5);
  EXPECT_THAT(
      Texts(),
      ElementsAre("rank 0 goes on as another process (app) 4.0 s after sampling began; both "
                  "count as rank 0",
                  HasSubstr("rank 1 (app) joined"), HasSubstr("rank 1 goes on")));
}

TEST_F(RankChangesTest, AnEndIsATroubleUnlessAJobIsFollowed) {
  changes_.Ended(Rank(0, 100), 1.2);
  of_job_.Ended(Rank(0, 100), 1.2);
  const std::vector<Notice> notices = notices_.Drain({});
  ASSERT_THAT(notices, SizeIs(2));
  EXPECT_EQ(notices[0].text, "rank 0 (app) ended 1.2 s after sampling began; its samples are kept");
  EXPECT_EQ(notices[1].text, notices[0].text);
  EXPECT_EQ(notices[0].severity, Severity::kWarning);
  EXPECT_EQ(notices[0].code, absl::StatusCode::kNotFound);
  EXPECT_EQ(notices[1].severity, Severity::kInfo);
  EXPECT_EQ(notices[1].code, absl::StatusCode::kOk);
}

// Two rings may tell of one exec, and a script may start itself anew again and again.
TEST_F(RankChangesTest, AProgramIsNamedOnce) {
  changes_.Replaced(Rank(0, 100), "/usr/bin/second", 1);
  changes_.Replaced(Rank(0, 100), "/usr/bin/second", 1.1);
  EXPECT_THAT(Texts(), ElementsAre("rank 0 replaced its program (exec) 1.0 s after sampling began: "
                                   "from then on it runs /usr/bin/second"));
  changes_.Replaced(Rank(0, 100), "/usr/bin/third", 2);
  changes_.Replaced(Rank(1, 101), "/usr/bin/third", 2);
  EXPECT_THAT(Texts(), SizeIs(2));
}

TEST_F(RankChangesTest, BeyondTheFirstTheyAreCounted) {
  const auto most = static_cast<int32_t>(RankChanges::kMaxTold);
  for (int32_t i = 0; i < most; ++i) of_job_.Joined(Rank(i, i), 1);
  EXPECT_THAT(Texts(), SizeIs(RankChanges::kMaxTold));
  of_job_.End();
  EXPECT_THAT(Texts(), IsEmpty());
  for (int32_t i = 0; i < most + 3; ++i) {
    of_job_.Ended(Rank(i, i), 1);
    of_job_.Joined(Rank(100 + i, 100 + i), 1);
  }
  notices_.Drain({});
  of_job_.End();
  EXPECT_THAT(Texts(), ElementsAre("3 more processes joined than are named here",
                                   "3 more ranks ended than are named here"));
  of_job_.End();
  EXPECT_THAT(Texts(), IsEmpty());
}

}  // namespace
}  // namespace perfd::agent
