#include "daemon/http/landing_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace perfd::daemon {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LandingPageTest, ClosedItNamesNoProfile) {
  EXPECT_THAT(ClosedLandingPage(), HasSubstr("href=\"/metrics\""));
  EXPECT_THAT(ClosedLandingPage(), Not(HasSubstr("/profiles/")));
}

TEST(LandingPageTest, OpenItLeadsToTheNewest) {
  ProfileStatus status;
  status.id = "p-000042";
  status.name = "<script>window.harm = 1</script>\"'&";
  status.state = ProfileState::kDone;
  status.requester.name = "alice";
  status.spec.target.command = "app\n<b>";
  status.submitted_unix_ns = 1'700'000'000'000'000'000;
  ProfileStatus of_job = status;
  of_job.id = "p-000041";
  of_job.spec.target = {};
  of_job.spec.target.slurm_job = 4711;
  const std::string page = OpenLandingPage({status, of_job});
  EXPECT_THAT(page, HasSubstr("<a href=\"/profiles/p-000042\">p-000042</a>"));
  EXPECT_THAT(page, HasSubstr("<td>job 4711</td>"));
  EXPECT_THAT(page, HasSubstr("<td>2023-11-14 22:13 UTC</td>"));
  EXPECT_THAT(page, HasSubstr("<td>app?&#60;b&#62;</td>"));
  EXPECT_THAT(page, HasSubstr("&#60;script&#62;window.harm = 1&#60;/script&#62;&#34;&#39;&#38;"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(OpenLandingPage({}), HasSubstr("No profiles yet"));
}

}  // namespace
}  // namespace perfd::daemon
