#include "agent/link/refused_windows.h"

#include <gtest/gtest.h>

namespace perfd::agent {
namespace {

constexpr uint64_t kUsual = 32;
const absl::Status kBadMessage = absl::InvalidArgumentError("cannot be parsed");
const absl::Status kTooLarge = absl::ResourceExhaustedError("over the limit");

TEST(RefusedWindows, GivesTheWindowUpThatWasAloneThreeTimes) {
  RefusedWindows refused;
  EXPECT_FALSE(refused.Ended(kBadMessage, {.oldest = 5, .sent = 20}).has_value());  // any of 16
  EXPECT_EQ(refused.Ahead(0, kUsual), 1u);
  EXPECT_EQ(refused.Ahead(20, kUsual), 1u) << "20 itself must be alone too";
  EXPECT_EQ(refused.Ahead(21, kUsual), kUsual);
  EXPECT_FALSE(
      refused.Ended(kBadMessage, {.oldest = 7, .sent = 7}).has_value());  // 5 and 6 were fine
  EXPECT_FALSE(refused.Ended(kBadMessage, {.oldest = 7, .sent = 7}).has_value());
  EXPECT_EQ(refused.Ended(kBadMessage, {.oldest = 7, .sent = 7}), 7u);
}

TEST(RefusedWindows, AnotherWindowBeginsAnew) {
  RefusedWindows refused;
  for (int i = 0; i < 2; ++i)
    EXPECT_FALSE(refused.Ended(kBadMessage, {.oldest = 7, .sent = 7}).has_value());
  for (int i = 0; i < 2; ++i)
    EXPECT_FALSE(refused.Ended(kBadMessage, {.oldest = 8, .sent = 8}).has_value());
  EXPECT_EQ(refused.Ended(kBadMessage, {.oldest = 8, .sent = 8}), 8u);
}

TEST(RefusedWindows, APerfdThatHasNoMemoryJustNowCostsNoWindow) {
  RefusedWindows refused;
  for (int i = 1; i < RefusedWindows::kTriesForSize; ++i)
    ASSERT_FALSE(refused.Ended(kTooLarge, {.oldest = 7, .sent = 7}).has_value()) << i;
  EXPECT_FALSE(refused.Ended(kBadMessage, {.oldest = 7, .sent = 7}).has_value())
      << "the first time that it cannot be read";
  EXPECT_EQ(refused.Ended(kTooLarge, {.oldest = 7, .sent = 7}), 7u) << "the others must go on";
}

TEST(RefusedWindows, OtherEndsBlameNobody) {
  RefusedWindows refused;
  for (int i = 0; i < 100; ++i) {
    for (const absl::Status& why :
         {absl::UnavailableError(""), absl::AbortedError(""), absl::OkStatus(),
          absl::PermissionDeniedError(""), absl::DeadlineExceededError("")}) {
      EXPECT_FALSE(refused.Ended(why, {.oldest = 7, .sent = 7}).has_value());
    }
    EXPECT_FALSE(
        refused.Ended(kTooLarge, {.oldest = 7, .sent = 0}).has_value());  // refused at the door
    EXPECT_FALSE(
        refused.Ended(kBadMessage, {.oldest = 0, .sent = 9}).has_value());  // the spool is empty
    EXPECT_FALSE(refused.Ended(kBadMessage, {.oldest = 7, .sent = 7, .stored = 7}).has_value());
  }
  EXPECT_EQ(refused.Ahead(1, kUsual), kUsual);
}

}  // namespace
}  // namespace perfd::agent
