#include "core/service/spine_watch.h"

#include <gtest/gtest.h>

namespace perfd {
namespace {

TEST(SpineWatchTest, AHangingSpineIsNotToldToBeAlive) {
  SpineWatch watch(absl::Seconds(30));
  EXPECT_TRUE(watch.Moved(1));
  EXPECT_FALSE(watch.Moved(1));
  EXPECT_FALSE(watch.Moved(1));
  EXPECT_TRUE(watch.Moved(2));
}

TEST(SpineWatchTest, ASpineThatNeverTurnedIsNotAlive) {
  SpineWatch watch(absl::Seconds(30));
  EXPECT_FALSE(watch.Moved(0));
}

TEST(SpineWatchTest, LooksOftenEnough) {
  // Twice within the time at least, with the wait of one look missed.
  EXPECT_LE(SpineWatch(absl::Seconds(30)).pause(), absl::Seconds(30) / 3);
  EXPECT_EQ(SpineWatch(absl::ZeroDuration()).pause(), absl::InfiniteDuration());
}

}  // namespace
}  // namespace perfd
