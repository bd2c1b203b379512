// What is prepared before a rank is stopped: bytes that must be there, caches to protect, the journal's view; what the stop tells.
#include "agent/shadow/install/jumps.h"
#include "agent/shadow/install/loop_layout.h"
#include "agent/shadow/install/own_rights.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(LoopLayoutTest, TheJournalNamesWhatIsWritten) {
  InjectedCode code;
  code.sites.resize(2);
  code.sites[0].index = 0;
  code.sites[0].loop_id = "inner";
  code.sites[0].built.patch.address = 0x400000;
  code.sites[0].built.pairs = {{0x400000, 0x1100}, {0x400005, 0x1108}};
  code.sites[1].index = 1;
  code.sites[1].built.installed.status = absl::FailedPreconditionError("a call");
  RecordSites(0, &code);
  ASSERT_THAT(code.injection.sites, SizeIs(1));
  EXPECT_EQ(code.injection.sites[0].loop_id, "inner");
  EXPECT_EQ(code.injection.sites[0].header, 0x400000u);
  EXPECT_THAT(code.injection.sites[0].pairs, SizeIs(2));
  EXPECT_THAT(code.injection.sites[0].original, SizeIs(kJumpBytes));
  code.sites[0].built.pairs.push_back({0x400000, 0x1300});
  RecordSites(0, &code);
  EXPECT_THAT(code.injection.sites[1].pairs, SizeIs(3));
  RecordSites(1, &code);
  EXPECT_THAT(code.injection.sites, SizeIs(2));
}

TEST(JumpsTest, CodeIsCheckedInPiecesThatFollowEachOther) {
  LoopCode loop;
  loop.instructions.resize(3);
  loop.instructions[0].address = 0x10;
  loop.instructions[0].length = 2;
  loop.instructions[1].address = 0x12;
  loop.instructions[1].length = 3;
  loop.instructions[2].address = 0x20;
  loop.instructions[2].length = 1;
  const auto pieces = CodeOf(loop);
  ASSERT_THAT(pieces, SizeIs(2));
  EXPECT_EQ(pieces[0].address.number, 0x10u);
  EXPECT_THAT(pieces[0].bytes, SizeIs(5));
  EXPECT_EQ(pieces[1].address.number, 0x20u);
  EXPECT_THAT(pieces[1].bytes, SizeIs(1));
}

TEST(JumpsTest, OnlyNewCachesAreProtected) {
  std::vector<CodeCache> caches(3);
  caches[2].address = 0x7000;
  EXPECT_THAT(ProtectOps(caches, 0), SizeIs(3));
  EXPECT_THAT(ProtectOps(caches, 3), IsEmpty());
  const auto ops = ProtectOps(caches, 2);
  ASSERT_THAT(ops, SizeIs(1));
  EXPECT_EQ(std::get<CallOp>(ops[0]).arguments[0].number, 0x7000u);
}

TEST(OwnRightsTest, AShortReplyGivesNoRights) {
  HoldReply reply;
  reply.results.resize(2);
  reply.results[0].bytes = {1, 0, 0, 0};
  reply.results[1].value = 1;
  const OwnRights rights = OwnRightsOf(reply);
  EXPECT_EQ(rights.uids[0], 1u);
  EXPECT_EQ(rights.uids[1], 0u);
  EXPECT_EQ(rights.capabilities, 0u);
  EXPECT_EQ(rights.dumpable, 1u);
  reply.results.resize(1);
  EXPECT_EQ(OwnRightsOf(reply).uids[0], 0u);
}

}  // namespace
}  // namespace perfd::agent
