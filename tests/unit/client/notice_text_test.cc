#include "client/render/notices/notice_text.h"

#include <gtest/gtest.h>

namespace perfd::client {
namespace {

Notice Refused() {
  Notice notice;
  notice.severity = Notice::Severity::kError;
  notice.pid = 4711;
  notice.text = "for older clients";
  notice.launchers = LauncherNote{
      .launchers = {{4711, "timeout"}}, .launcher_count = 1, .working = {}, .working_count = 0};
  return notice;
}

TEST(NoticeTextTest, ALauncherThatIsRefusedNamesTheChildThatWorks) {
  Notice notice = Refused();
  notice.launchers->working = {{4713, "lulesh2.0"}};
  notice.launchers->working_count = 1;
  EXPECT_EQ(NoticeText(notice),
            "4711 (timeout) only waits for its children; 4713 (lulesh2.0) works: perfctl submit "
            "--pid 4713, or --pid 4711 --tree for all that run below it");
  EXPECT_TRUE(NamesProcess(notice));
}

TEST(NoticeTextTest, SomeOfManyAreNamed) {
  Notice notice = Refused();
  notice.launchers->working = {{2, "heat"}, {3, "heat"}};
  notice.launchers->working_count = 2;
  EXPECT_EQ(NoticeText(notice),
            "4711 (timeout) only waits for its children; 2 (heat), 3 (heat) work: perfctl submit "
            "--pid 2,3, or --pid 4711 --tree for all that run below it");
  notice.launchers->working_count = 64;
  EXPECT_EQ(NoticeText(notice),
            "4711 (timeout) only waits for its children; 2 (heat), 3 (heat) and 62 more work: "
            "perfctl submit --pid 4711 --tree for all that run below it");
}

TEST(NoticeTextTest, NothingWorksYet) {
  EXPECT_EQ(NoticeText(Refused()),
            "4711 (timeout) only waits for its children, and none of them works yet: try again "
            "when they do");
}

TEST(NoticeTextTest, LeftOutOfATree) {
  Notice notice = Refused();
  notice.launchers->disposition = LauncherNote::Disposition::kLeftOut;
  EXPECT_EQ(NoticeText(notice), "4711 (timeout) only waits for its children and is left out");
  notice.launchers->launchers.push_back({4712, "sh"});
  notice.launchers->launcher_count = 9;
  EXPECT_EQ(NoticeText(notice),
            "4711 (timeout), 4712 (sh) and 7 more only wait for their children and are left out");
}

TEST(NoticeTextTest, OthersSayWhatCameWithThem) {
  Notice notice = Refused();
  notice.launchers.reset();
  EXPECT_EQ(NoticeText(notice), "for older clients");
  EXPECT_FALSE(NamesProcess(notice));
  notice.text = "rank 1 (pid 4711) ended";
  EXPECT_TRUE(NamesProcess(notice));
  notice.text = "rank 1 (pid 47110) ended";
  EXPECT_FALSE(NamesProcess(notice));
}

}  // namespace
}  // namespace perfd::client
