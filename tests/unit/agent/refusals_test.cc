#include "agent/pipeline/ranks/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Status kSetuid = absl::PermissionDeniedError("setuid");
const absl::Status kStuck = absl::UnavailableError("state D");

class RefusalsTest : public testing::Test {
 protected:
  static std::vector<int32_t> Pids(const std::vector<RejectedProcess>& processes) {
    std::vector<int32_t> pids;
    for (const RejectedProcess& process : processes) pids.push_back(process.pid);
    return pids;
  }
  std::vector<int32_t> Update(const std::vector<RejectedProcess>& rejected) {
    return Pids(refusals_.Update(rejected));
  }

  Refusals refusals_;
};

TEST_F(RefusalsTest, ARefusalOfTwoLooksInARowIsToldOnce) {
  EXPECT_THAT(Update({{7, kSetuid}}), IsEmpty());
  EXPECT_FALSE(refusals_.told());
  EXPECT_THAT(Update({{7, kSetuid}, {8, kSetuid}}), ElementsAre(7));
  EXPECT_TRUE(refusals_.told());
  EXPECT_THAT(Update({{7, kSetuid}}), IsEmpty());
  EXPECT_THAT(Update({{7, kSetuid}, {8, kSetuid}}), IsEmpty()) << "8 has been away";
  EXPECT_THAT(Pids(refusals_.End()), IsEmpty());
}

TEST_F(RefusalsTest, AnotherReasonIsAnotherRefusal) {
  Update({{7, kSetuid}});
  EXPECT_THAT(Update({{7, absl::UnimplementedError("32 bits")}}), IsEmpty());
  EXPECT_THAT(Update({{7, absl::UnimplementedError("32 bits")}}), ElementsAre(7));
}

TEST_F(RefusalsTest, AtOnceIsToldOnceAndNotAgain) {
  EXPECT_THAT(Pids(refusals_.AtOnce({{7, kSetuid}, {7, kSetuid}, {8, kStuck}})), ElementsAre(7, 8));
  Update({{7, kSetuid}});
  EXPECT_THAT(Update({{7, kSetuid}}), IsEmpty());
}

TEST_F(RefusalsTest, WhatMayPassIsToldAtTheEnd) {
  for (int look = 0; look < 3; ++look) EXPECT_THAT(Update({{7, kStuck}, {8, kStuck}}), IsEmpty());
  EXPECT_THAT(Update({{7, kStuck}, {9, kStuck}}), IsEmpty());
  EXPECT_THAT(Pids(refusals_.End()), ElementsAre(7)) << "8 has passed, 9 was seen once";
  EXPECT_THAT(Pids(refusals_.End()), IsEmpty());
}

TEST_F(RefusalsTest, WhatHasEndedWasNotRefused) {
  const absl::Status ended = absl::NotFoundError("ended");
  for (int look = 0; look < 3; ++look) EXPECT_THAT(Update({{7, ended}}), IsEmpty());
  EXPECT_THAT(Pids(refusals_.End()), IsEmpty());
}

TEST_F(RefusalsTest, ManyAreNotAllNamed) {
  std::vector<RejectedProcess> many;
  for (int32_t pid = 1; pid <= static_cast<int32_t>(Refusals::kMaxTold); ++pid)
    many.push_back({pid, kSetuid});
  EXPECT_EQ(refusals_.AtOnce(many).size(), Refusals::kMaxTold);
  const auto more = refusals_.AtOnce({{5000, kSetuid}, {5001, kSetuid}});
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more[0].pid, 0);
  EXPECT_TRUE(absl::IsResourceExhausted(more[0].reason));
  EXPECT_THAT(refusals_.AtOnce({{5002, kSetuid}}), IsEmpty());
}

}  // namespace
}  // namespace perfd::agent
