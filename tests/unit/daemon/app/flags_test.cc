#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "core/base/clock.h"
#include "core/service/config_file.h"
#include "daemon/live_settings.h"
#include "daemon/perfd_config.h"
#include "daemon/perfd_flags.h"
#include "tests/unit/core/service/flags_fixture.h"

namespace perfd::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FlagsTest : public FlagsFixture<PerfdFlags> {
 protected:
  FlagsTest() : FlagsFixture("perfd", ParsePerfdFlags, ParsePerfdFlagsAgain) {}
};

TEST_F(FlagsTest, TheCommandLineWinsOverTheFileOverTheDefaults) {
  Write("store: {retention_days: 7, retention_mib: 100}\naccess: {tls_admins: [ann, bob]}\n");
  ASSERT_EQ(Parse({"--retention-days", "8", "--config", path_}), -1) << err_;
  EXPECT_EQ(flags_.retention.days, 8);
  EXPECT_EQ(flags_.retention.mib, 100);
  EXPECT_EQ(flags_.store_dir, "/var/lib/perfd");
  EXPECT_THAT(flags_.tls_admins, ElementsAre("ann", "bob"));
  ASSERT_EQ(Parse({"--config", path_, "--tls-admin", "eve"}), -1);
  EXPECT_THAT(flags_.tls_admins, ElementsAre("eve"));
}

TEST_F(FlagsTest, TheAuditLogHasRoomOfItsOwnAndMetricsNameNobody) {
  ASSERT_EQ(Parse({}), -1);
  EXPECT_EQ(flags_.retention.audit_days, 365);
  EXPECT_EQ(flags_.retention.audit_mib, 64);
  EXPECT_FALSE(flags_.metrics_names);
  const RetentionPolicy usual = RetentionOf(flags_);
  EXPECT_EQ(usual.audit.user_bytes, 64 << 20);
  EXPECT_EQ(usual.max_bytes, 0);
  Write("store: {audit_days: 3, audit_mib: 5}\nmetrics: {names: true}\n");
  ASSERT_EQ(Parse({"--audit-mib", "6", "--config", path_}), -1) << err_;
  EXPECT_TRUE(flags_.metrics_names);
  const RetentionPolicy policy = RetentionOf(flags_);
  EXPECT_EQ(policy.audit.keep_ns, 3 * 86'400 * kNsPerSecond);
  EXPECT_EQ(policy.audit.user_bytes, 6 << 20);
}

TEST_F(FlagsTest, WithoutAFileNothingIsRead) {
  ASSERT_EQ(Parse({}), -1);
  EXPECT_EQ(flags_.config, "");
  EXPECT_EQ(flags_.retention.days, 90);
}

TEST_F(FlagsTest, ABrokenFileIsExplained) {
  Write("store:\n  retention_dayz: 7\n");
  EXPECT_EQ(Parse({"--config", path_}), 5);
  EXPECT_THAT(
      err_,
      HasSubstr(path_ + ": line 2, column 3: unknown key 'retention_dayz' in store; did you mean "
                        "'retention_days'?"));
  EXPECT_EQ(Parse({"--config", path_ + ".missing"}), 5);
  EXPECT_THAT(err_, HasSubstr("No such file"));
  EXPECT_EQ(Parse({"--retention-days", "-1"}), 2);
  EXPECT_EQ(Parse({"--retention-days", "36501"}), 2);
  EXPECT_EQ(Parse({"--retention-days", "36500"}), -1);
  EXPECT_EQ(Parse({"--log-level", "loud"}), 2);
}

TEST_F(FlagsTest, TheConfigurationIsPrintedAndReadsTheSame) {
  Write("log: {level: debug}\n");
  EXPECT_EQ(Parse({"--config", path_, "--store-dir", "/srv/perfd", "--check-config"}), 0);
  EXPECT_THAT(out_, AllOf(HasSubstr("directory: \"/srv/perfd\""), HasSubstr("level: \"debug\"")));
  const std::string printed = out_;
  Write(printed);
  EXPECT_EQ(Parse({"--config", path_, "--check-config"}), 0);
  EXPECT_EQ(out_, printed);
}

TEST_F(FlagsTest, AReloadSeesTheFileAsItIsNow) {
  Write("log: {level: debug}\n");
  ASSERT_EQ(Parse({"--config", path_, "--retention-days", "8"}), -1);
  Write("log: {level: error}\nstore: {retention_days: 9}\n");
  const auto again = Again();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->log_level, "error");
  EXPECT_EQ(again->retention.days, 8);
  Write("log: [");
  EXPECT_FALSE(Again().ok());
}

TEST_F(FlagsTest, KeysAreNamedOnce) {
  std::set<absl::string_view> paths;
  for (const ConfigKey& key : PerfdConfig(flags_).keys)
    EXPECT_TRUE(paths.insert(key.path).second) << key.path;
}

// The example is what people start from: it must be the defaults, word for word.
TEST_F(FlagsTest, TheExampleFileHoldsTheDefaults) {
  PerfdFlags example;
  example.store_dir = example.socket = "changed";
  std::ifstream in("deploy/config/perfd.yaml");
  std::stringstream text;
  text << in.rdbuf();
  const absl::Status read = ReadConfig(text.str(), PerfdConfig(example));
  ASSERT_TRUE(read.ok()) << read;
  PerfdFlags defaults;
  EXPECT_EQ(FormatConfig(PerfdConfig(example)), FormatConfig(PerfdConfig(defaults)));
  EXPECT_THAT(NotShown("deploy/config/perfd.yaml", PerfdConfig(defaults)), IsEmpty());
}

}  // namespace
}  // namespace perfd::daemon
