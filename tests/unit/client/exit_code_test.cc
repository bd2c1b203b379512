#include "client/commands/exit_code.h"

#include <gtest/gtest.h>

namespace perfd::client {
namespace {

TEST(ExitCodeTest, Requests) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), ExitCode::kNotFound);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), ExitCode::kPermission);
  EXPECT_EQ(ExitCodeOf(absl::UnauthenticatedError("")), ExitCode::kPermission);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("")), ExitCode::kTimeout);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), ExitCode::kFailure);
  EXPECT_EQ(ExitCodeOf(absl::FailedPreconditionError("")), ExitCode::kFailure);
}

TEST(ExitCodeTest, Submissions) {
  EXPECT_EQ(SubmitExitCodeOf(absl::InvalidArgumentError("")), ExitCode::kInvalidSpec);
  EXPECT_EQ(SubmitExitCodeOf(absl::FailedPreconditionError("")), ExitCode::kUnsafeTarget);
  EXPECT_EQ(SubmitExitCodeOf(absl::OutOfRangeError("")), ExitCode::kBudget);
  EXPECT_EQ(SubmitExitCodeOf(absl::ResourceExhaustedError("")), ExitCode::kFailure);
  EXPECT_EQ(SubmitExitCodeOf(absl::NotFoundError("")), ExitCode::kNotFound);
}

TEST(ExitCodeTest, NumbersAreThePublishedOnes) {
  EXPECT_EQ(static_cast<int>(ExitCode::kOk), 0);
  EXPECT_EQ(static_cast<int>(ExitCode::kFailure), 1);
  EXPECT_EQ(static_cast<int>(ExitCode::kUsage), 2);
  EXPECT_EQ(static_cast<int>(ExitCode::kNotFound), 3);
  EXPECT_EQ(static_cast<int>(ExitCode::kPermission), 4);
  EXPECT_EQ(static_cast<int>(ExitCode::kInvalidSpec), 5);
  EXPECT_EQ(static_cast<int>(ExitCode::kUnsafeTarget), 6);
  EXPECT_EQ(static_cast<int>(ExitCode::kBudget), 7);
  EXPECT_EQ(static_cast<int>(ExitCode::kPartial), 8);
  EXPECT_EQ(static_cast<int>(ExitCode::kTimeout), 124);
}

ExitCode Failed(std::vector<Notice> notices) {
  ProfileStatus status;
  status.state = ProfileState::kFailed;
  status.notices = std::move(notices);
  return ExitCodeOf(status);
}

TEST(ExitCodeTest, ALauncherThatIsRefusedIsNoTarget) {
  Notice notice{Notice::Severity::kError, absl::StatusCode::kFailedPrecondition, "", 7, ""};
  EXPECT_EQ(Failed({notice}), ExitCode::kFailure);
  notice.launchers = LauncherNote{};
  EXPECT_EQ(Failed({notice}), ExitCode::kUnsafeTarget);
  notice.launchers->disposition = LauncherNote::Disposition::kLeftOut;
  EXPECT_EQ(Failed({notice}), ExitCode::kFailure);
}

TEST(ExitCodeTest, FinalStates) {
  using Severity = Notice::Severity;
  ProfileStatus status;
  status.state = ProfileState::kDone;
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kOk);
  status.state = ProfileState::kPartial;
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kPartial);
  status.state = ProfileState::kCancelled;
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kPartial);
  EXPECT_EQ(Failed({}), ExitCode::kFailure);
  EXPECT_EQ(Failed({{Severity::kWarning, absl::StatusCode::kNotFound, "", 0, ""},
                    {Severity::kError, absl::StatusCode::kPermissionDenied, "", 0, ""}}),
            ExitCode::kPermission);
  EXPECT_EQ(Failed({{Severity::kError, absl::StatusCode::kNotFound, "", 0, ""}}),
            ExitCode::kNotFound);
  EXPECT_EQ(Failed({{Severity::kError, absl::StatusCode::kUnimplemented, "", 0, ""}}),
            ExitCode::kFailure);
}

}  // namespace
}  // namespace perfd::client
