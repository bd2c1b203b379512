#include "agent/attach/hold_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace perfd::agent {
namespace {

HoldRequest EveryOp() {
  CallOp call;
  call.call = 9;
  call.arguments[0] = {7, kNoOp};
  call.expect = CallOp::Expect::kEqual;
  call.expected = 42;
  CallOp second = call;
  second.arguments[5] = {16, 0};
  HoldRequest request{123, 456, 789, {}};
  request.ops = {call,
                 second,
                 WriteOp{{8, 1}, {1, 2, 3}, true},
                 ExpectBytesOp{{9, kNoOp}, {4}},
                 ReadOp{{10, 1}, 11},
                 MoveThreadsOp{{{1, 2}, {3, 4}}, {{{5, 6}, 7}}, {{8, 9}}},
                 RequireOutsideOp{{{1, 2}, {3, 4}}},
                 ScanStacksOp{{5, 6}},
                 ReadThreadsOp{},
                 GiveBackOp{{{1, 2, 3, 4}, {5, 6, 7, 8}}, 9, 12, {{10, 11}}}};
  return request;
}

HoldReply FullReply() {
  HoldReply reply;
  reply.status = absl::UnavailableError("later");
  reply.results = {{1, {2, 3}, {}}, {4, {}, {{5, 6, 7, 8, 9, 10, true, {11, 12}}}}};
  reply.threads = 13;
  reply.repaired = 14;
  reply.stop_ns = 15;
  reply.tracer_ends = true;
  reply.call_lost = true;
  return reply;
}

TEST(HoldCodecTest, OtherVersionsAreRefusedByName) {
  std::string bytes = EncodeRequest(EveryOp());
  ++bytes[0];
  EXPECT_THAT(std::string(DecodeRequest(bytes).status().message()),
              testing::HasSubstr("another version"));
  // From before the format had a number: the pid came first.
  EXPECT_THAT(std::string(DecodeRequest(EncodeRequest(EveryOp()).substr(4)).status().message()),
              testing::HasSubstr("another version"));
}

TEST(HoldCodecTest, RequestsComeBackAsTheyWere) {
  const std::string bytes = EncodeRequest(EveryOp());
  const auto request = DecodeRequest(bytes);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(EncodeRequest(*request), bytes);
  EXPECT_EQ(request->pid, 123);
  EXPECT_EQ(request->start_ticks, 456U);
  EXPECT_EQ(request->max_stop_ns, 789);
  ASSERT_EQ(request->ops.size(), 10U);
  EXPECT_EQ(std::get<CallOp>(request->ops[1]).arguments[5].from_op, 0);
  EXPECT_EQ(std::get<CallOp>(request->ops[1]).expected, 42U);
  EXPECT_TRUE(std::get<WriteOp>(request->ops[2]).indivisible);
  EXPECT_EQ(std::get<MoveThreadsOp>(request->ops[5]).ranges[0].to, 7U);
  EXPECT_EQ(std::get<MoveThreadsOp>(request->ops[5]).pairs_only[0].end, 9U);
  EXPECT_EQ(std::get<GiveBackOp>(request->ops[9]).entries.at(1).own_mask, 8U);
  EXPECT_EQ(std::get<GiveBackOp>(request->ops[9]).either, 9U);
  EXPECT_EQ(std::get<GiveBackOp>(request->ops[9]).loose, 12U);
  EXPECT_EQ(std::get<GiveBackOp>(request->ops[9]).ranges.at(0).end, 11U);
}

TEST(HoldCodecTest, RepliesComeBackAsTheyWere) {
  const std::string bytes = EncodeReply(FullReply());
  const auto reply = DecodeReply(bytes);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(EncodeReply(*reply), bytes);
  EXPECT_EQ(reply->status, absl::UnavailableError("later"));
  EXPECT_EQ(reply->results.at(1).threads.at(0).cpus, (std::vector<uint64_t>{11, 12}));
  EXPECT_TRUE(reply->results[1].threads[0].in_call);
  EXPECT_EQ(reply->stop_ns, 15);
  EXPECT_TRUE(reply->tracer_ends);
  EXPECT_TRUE(reply->call_lost);
}

TEST(HoldCodecTest, EveryTruncationAndATrailingByteAreRefused) {
  const std::string request = EncodeRequest(EveryOp());
  for (size_t size = 0; size < request.size(); ++size)
    EXPECT_FALSE(DecodeRequest(request.substr(0, size)).ok()) << size;
  EXPECT_FALSE(DecodeRequest(request + '\0').ok());
  const std::string reply = EncodeReply(FullReply());
  for (size_t size = 0; size < reply.size(); ++size)
    EXPECT_FALSE(DecodeReply(reply.substr(0, size)).ok()) << size;
  EXPECT_FALSE(DecodeReply(reply + '\0').ok());
}

TEST(HoldCodecTest, ReferencesGoBackwardsOnly) {
  for (const int32_t from : {1, 2, -2, INT32_MAX}) {
    HoldRequest request{1, 2, 3, {ReadOp{}, ReadOp{{0, from}, 1}}};
    EXPECT_FALSE(DecodeRequest(EncodeRequest(request)).ok()) << from;
  }
  HoldRequest request{1, 2, 3, {ReadOp{}, ReadOp{{0, 0}, 1}}};
  EXPECT_TRUE(DecodeRequest(EncodeRequest(request)).ok());
}

TEST(HoldCodecTest, Limits) {
  HoldRequest request{1, 2, kMaxStopNs, std::vector<HoldOp>(kMaxHoldOps, ReadThreadsOp{})};
  EXPECT_TRUE(DecodeRequest(EncodeRequest(request)).ok());
  request.max_stop_ns = kMaxStopNs + 1;
  EXPECT_FALSE(DecodeRequest(EncodeRequest(request)).ok());
  request.max_stop_ns = 1;
  request.pid = 0;
  EXPECT_FALSE(DecodeRequest(EncodeRequest(request)).ok());
  request.pid = 1;
  request.ops.push_back(ReadThreadsOp{});
  EXPECT_FALSE(DecodeRequest(EncodeRequest(request)).ok());
}

TEST(HoldCodecTest, ChangedBytesNeverCrash) {
  std::mt19937 random(1);
  const std::string request = EncodeRequest(EveryOp()), reply = EncodeReply(FullReply());
  for (int i = 0; i < 20000; ++i) {
    std::string a = request, b = reply;
    a[random() % a.size()] = static_cast<char>(random());
    b[random() % b.size()] = static_cast<char>(random());
    const auto decoded = DecodeRequest(a);
    if (decoded.ok()) {
      EXPECT_TRUE(DecodeRequest(EncodeRequest(*decoded)).ok());
    }
    (void)DecodeReply(b);
  }
}

}  // namespace
}  // namespace perfd::agent
