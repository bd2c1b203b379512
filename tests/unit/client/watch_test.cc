#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/client/command_runner.h"

namespace perfd::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

WatchEvent Event(ProfileState state, double progress) {
  WatchEvent event{SampleReport().status, SampleReport().loops};
  event.status.state = state;
  event.status.course.progress_ratio = progress;
  return event;
}

TEST(WatchTest, PlainLogHasALinePerChange) {
  CommandRunner perfctl;
  perfctl.daemon.events = {Event(ProfileState::kSampling, 0), Event(ProfileState::kSampling, 0.05),
                           Event(ProfileState::kSampling, 0.1), Event(ProfileState::kDone, 1)};
  EXPECT_EQ(perfctl.Run({"watch", "last"}), 0);
  EXPECT_EQ(std::count(perfctl.out.begin(), perfctl.out.end(), '\n'), 3);
  EXPECT_THAT(perfctl.out, Not(HasSubstr("\x1b")));
  EXPECT_EQ(perfctl.daemon.ids, (std::vector<std::string>{"last"}));
}

TEST(WatchTest, TerminalsAreRedrawn) {
  CommandRunner perfctl;
  perfctl.tty = true;
  perfctl.daemon.events = {Event(ProfileState::kSampling, 0), Event(ProfileState::kDone, 1)};
  EXPECT_EQ(perfctl.Run({"watch", "last"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("\x1b[4A"));  // head, one node, two loops
}

TEST(WatchTest, FinalStatesDecideTheExitCode) {
  CommandRunner perfctl;
  perfctl.daemon.events = {Event(ProfileState::kPartial, 1)};
  EXPECT_EQ(perfctl.Run({"watch", "p-000042"}), 8);
  perfctl.daemon.events = {Event(ProfileState::kFailed, 0)};
  perfctl.daemon.events[0].status.notices = {
      {Notice::Severity::kError, absl::StatusCode::kNotFound, "node1", 0, "no matching rank"}};
  EXPECT_EQ(perfctl.Run({"watch", "p-000042", "--json"}), 3);
  const json error = json::parse(perfctl.err);
  EXPECT_EQ(error["error"]["code"], "not_found");
  EXPECT_EQ(error["error"]["details"][1], "node1: no matching rank");
}

TEST(WatchTest, TimeoutsAndInterrupts) {
  CommandRunner perfctl;
  perfctl.daemon.events = {Event(ProfileState::kSampling, 0.5)};
  perfctl.daemon.watch_result = absl::DeadlineExceededError("not over");
  EXPECT_EQ(perfctl.Run({"watch", "last", "--timeout", "10s"}), 124);
  EXPECT_EQ(perfctl.daemon.watch_timeout, absl::Seconds(10));
  perfctl.interrupted = true;
  EXPECT_EQ(perfctl.Run({"watch", "p-000042"}), 1);
  EXPECT_THAT(perfctl.err, HasSubstr("Profile p-000042 goes on"));
}

TEST(WatchTest, AReportAtTheEndIfAsked) {
  CommandRunner perfctl;
  perfctl.daemon.events = {Event(ProfileState::kDone, 1)};
  EXPECT_EQ(perfctl.Run({"watch", "last", "--report"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("Where the time went"));
  // The report is that of the profile watched, whatever `last` means by then.
  EXPECT_EQ(perfctl.daemon.ids.back(), "p-000042");
}

}  // namespace
}  // namespace perfd::client
