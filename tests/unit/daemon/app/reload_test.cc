#include "daemon/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/log.h"

namespace perfd::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ReloadTest : public testing::Test {
 protected:
  ReloadTest() { InitLog("perfd", LogLevel::kInfo); }

  int Reload(const std::vector<LiveSetting>& settings) {
    Reloader reloader(
        running_, [this] { return wanted_; }, settings);
    testing::internal::CaptureStderr();
    const int wrong = reloader.Reload();
    err_ = testing::internal::GetCapturedStderr();
    running_ = reloader.running();
    return wrong;
  }
  LiveSetting Remember(const char* name) {
    return {name, [this](const PerfdFlags& flags) {
              applied_.push_back(flags.log_level);
              return absl::OkStatus();
            }};
  }

  PerfdFlags running_;
  absl::StatusOr<PerfdFlags> wanted_ = PerfdFlags();
  std::vector<std::string> applied_;
  std::string err_;
};

TEST_F(ReloadTest, LiveKeysChangeAndOthersAreNamed) {
  wanted_->log_level = "debug";
  wanted_->retention.days = 7;
  wanted_->store_dir = "/elsewhere";
  wanted_->tls.listen = "0.0.0.0:1";
  wanted_->tls.key = "/new.key";
  EXPECT_EQ(Reload({Remember("log")}), 2);
  EXPECT_EQ(running_.log_level, "debug");
  EXPECT_EQ(running_.retention.days, 7);
  EXPECT_EQ(running_.store_dir, PerfdFlags().store_dir);
  EXPECT_EQ(running_.tls.key, "/new.key");
  EXPECT_EQ(running_.tls.listen, "");
  EXPECT_THAT(applied_, testing::ElementsAre("debug"));
  EXPECT_THAT(
      err_,
      AllOf(HasSubstr("store.directory: \"/var/lib/perfd\" -> \"/elsewhere\" needs a restart"),
            HasSubstr("listen.tcp"), HasSubstr("store.retention_days: 90 -> 7")));
}

TEST_F(ReloadTest, ABrokenFileKeepsTheOldConfigurationAndStillOpensTheLog) {
  running_.log_level = "warning";
  wanted_ = absl::InvalidArgumentError("x.yaml: line 3, column 1: unknown key");
  EXPECT_EQ(Reload({Remember("log")}), 1);
  EXPECT_THAT(applied_, testing::ElementsAre("warning"));
  EXPECT_THAT(err_, HasSubstr("stays as it was: x.yaml: line 3"));
}

TEST_F(ReloadTest, OneSettingThatFailsDoesNotHoldUpTheOthers) {
  const LiveSetting bad{"policy",
                        [](const PerfdFlags&) { return absl::InvalidArgumentError("line 2: no"); }};
  EXPECT_EQ(Reload({bad, Remember("log")}), 1);
  EXPECT_EQ(applied_.size(), 1u);
  EXPECT_THAT(
      err_, AllOf(HasSubstr("the policy stays as it was: line 2: no"), Not(HasSubstr("reloaded"))));
}

TEST_F(ReloadTest, ASettingThatWasTakenInPartSaysSo) {
  const LiveSetting part{
      "access", [](const PerfdFlags&) { return absl::NotFoundError("no user 'x'"); }, true};
  EXPECT_EQ(Reload({part}), 1);
  EXPECT_THAT(err_, AllOf(HasSubstr("the rest of access is new: no user 'x'"),
                          Not(HasSubstr("stays as it was"))));
}

TEST_F(ReloadTest, NothingNewIsFine) {
  EXPECT_EQ(Reload({Remember("log")}), 0);
  EXPECT_THAT(err_, HasSubstr("reloaded"));
}

TEST_F(ReloadTest, WithoutFilesSighupIsNoReload) {
  EXPECT_FALSE(Reloader({}, {}, {}).HasFiles());
  PerfdFlags flags;
  flags.log_file = "/x";
  EXPECT_TRUE(Reloader(flags, {}, {}).HasFiles());
  flags = PerfdFlags();
  flags.policy = "/x";
  EXPECT_TRUE(Reloader(flags, {}, {}).HasFiles());
  flags = PerfdFlags();
  flags.config = "/x";
  EXPECT_TRUE(Reloader(flags, {}, {}).HasFiles());
}

}  // namespace
}  // namespace perfd::daemon
