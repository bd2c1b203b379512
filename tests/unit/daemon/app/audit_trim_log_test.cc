#include "daemon/audit_trim_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace perfd::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HandClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return now_ns; }
  int64_t UnixNs() const override { return now_ns; }
  int64_t now_ns = 1;
};

class AuditTrimLogTest : public testing::Test {
 protected:
  HandClock clock_;
  std::vector<std::string> lines_;
  AuditTrimLog log_{clock_, [this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(AuditTrimLogTest, SaysHowManyWhoseAndWhy) {
  log_.Record({.trimmed = {{30001, "uid 30001", false, 7}, {-1, "", true, 2}}, .bytes = 99});
  EXPECT_THAT(
      lines_,
      ElementsAre("audit log: 7 entries of uid 30001, brought by uid 30001, are deleted, the "
                  "oldest first: that user has more than store.audit_mib",
                  "audit log: 2 entries of profiles that are gone, brought by an agent that "
                  "is not known any more, are deleted: older than store.audit_days"));
  EXPECT_EQ(log_.Figure().bytes, 99u);
  EXPECT_EQ(log_.Figure().trimmed_for_size, 7u);
  EXPECT_EQ(log_.Figure().trimmed_for_age, 2u);
}

TEST_F(AuditTrimLogTest, ManyTrimsAreOneLineAMinuteAndNoneIsForgotten) {
  for (int i = 0; i < 1000; ++i) log_.Record({.trimmed = {{1, "uid 1", false, 3}}, .bytes = {}});
  EXPECT_THAT(lines_, ElementsAre(HasSubstr(" 3 entries")));
  clock_.now_ns += AuditTrimLog::kEveryNs - 1;
  log_.Record({.trimmed = {}, .bytes = 5});
  EXPECT_EQ(lines_.size(), 1u);
  clock_.now_ns += 1;
  log_.Record({.trimmed = {}, .bytes = 5});  // as every retention does
  EXPECT_THAT(lines_, ElementsAre(HasSubstr(" 3 entries"), HasSubstr(" 2997 entries")));
  EXPECT_EQ(log_.Figure().trimmed_for_size, 3000u);
  clock_.now_ns += AuditTrimLog::kEveryNs;
  log_.Record({.trimmed = {}, .bytes = 5});
  EXPECT_EQ(lines_.size(), 2u) << "there is nothing to say";
}

TEST_F(AuditTrimLogTest, LinesAreBounded) {
  AuditChange change;
  for (int64_t uid = 0; uid < 1000; ++uid)
    change.trimmed.push_back({uid, absl::StrCat("uid ", uid), false, 1});
  log_.Record(change);
  EXPECT_EQ(lines_.size(), AuditTrimLog::kMostKeys + 1);
  EXPECT_EQ(lines_.back(), absl::StrCat("audit log: ", 1000 - AuditTrimLog::kMostKeys,
                                        " entries of others are deleted"));
}

TEST_F(AuditTrimLogTest, NothingIsSaidOfNothing) {
  log_.Record({.trimmed = {}, .bytes = 0});
  EXPECT_THAT(lines_, IsEmpty());
}

}  // namespace
}  // namespace perfd::daemon
