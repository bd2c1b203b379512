#include "daemon/relay/request_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "daemon/relay/call_pace.h"
#include "tests/unit/daemon/relay/frames.h"

namespace perfd::daemon {
namespace {

using namespace testing_frames;  // NOLINT(google-build-using-namespace): a test's own words
using absl::StatusCode;
using testing::HasSubstr;

constexpr uint32_t kMost = 1 << 20;
constexpr uint32_t kLarge = 100'000;
constexpr uint32_t kUser = 1001;

// As Pass, with calls that need not wait.
size_t PassCalls(RequestMeter& meter, const std::string& bytes) {
  size_t passed = 0;
  do {
    meter.BeginCall({});
    passed += meter.Pass(absl::string_view(bytes).substr(passed));
  } while (meter.status().ok() && meter.call_waits());
  return meter.status().ok() ? passed : 0;
}

// So many bytes of a message that may come.
void PassPayload(RequestMeter& meter, uint32_t stream, size_t bytes) {
  for (size_t part = 0; bytes > 0; bytes -= part) {
    part = std::min<size_t>(bytes, 16384);
    const std::string frame = Frame(kData, kNone, stream, std::string(part, 'x'));
    ASSERT_EQ(PassCalls(meter, frame), frame.size());
  }
}

class RequestMeterTest : public testing::Test {
 protected:
  Share Room() { return limits_.Hold(Limit::kDoorMemory, kUser, kLarge); }
  int64_t Held() {
    for (const LimitUse& use : limits_.UsesOf({.uid = kUser, .name = "", .privileged = false}, 0)) {
      if (use.key == RowOf(Limit::kDoorMemory).key) return use.used.value_or(-1);
    }
    return -1;
  }

  Limits limits_;
  RequestMeter meter_{{.most = kMost, .most_question = kMost}};
};

TEST_F(RequestMeterTest, WhatQuestionsSendPassesHoweverItIsCut) {
  const std::string question = std::string(RequestMeter::kFreeBytes, 'q');
  const std::string bytes =
      Calls(2) +
      Frame(kData, kNone, 1,
            Prefix(static_cast<uint32_t>(question.size())) + question.substr(0, 100)) +
      Frame(kData, kNone, 3, Prefix(0)) + Frame(kData, kEnd, 1, question.substr(100)) +
      Frame(kData, kEnd, 3, Prefix(2) + "ab" + Prefix(1) + "c") + Frame(kReset, kNone, 3, "1234");
  for (const size_t step : {size_t{1}, size_t{2}, size_t{7}, size_t{1000}, bytes.size()}) {
    RequestMeter meter({.most = kMost, .most_question = kMost});
    for (size_t at = 0; at < bytes.size(); at += step) {
      const std::string piece = bytes.substr(at, step);
      ASSERT_EQ(PassCalls(meter, piece), piece.size()) << step << " at " << at;
    }
    EXPECT_TRUE(meter.status().ok());
    EXPECT_EQ(meter.needed(), 0u);
  }
}

TEST_F(RequestMeterTest, LargeMessagesAreForCallsThatAreAnswered) {
  RequestMeter meter({.most = kMost, .most_question = kLarge - 1});
  const std::string first = Calls() + Frame(kData, kNone, 1, Prefix(kLarge - 1));
  EXPECT_EQ(PassCalls(meter, first), first.size());
  meter.Admit(Room());
  PassPayload(meter, 1, kLarge - 1);
  meter.Answered(Frame(kSettings, kNone, 0) + Frame(kHeaders, kWhole, 1, "fields"));
  const std::string larger = Frame(kData, kNone, 1, Prefix(kLarge));
  EXPECT_EQ(PassCalls(meter, larger), larger.size());
  EXPECT_TRUE(meter.status().ok());
  const std::string other =
      Frame(kHeaders, kWhole, 3, "fields") + Frame(kData, kNone, 3, Prefix(kLarge));
  meter.Admit({});
  PassPayload(meter, 1, kLarge);
  EXPECT_EQ(PassCalls(meter, other), 0u);
  EXPECT_THAT(std::string(meter.status().message()), HasSubstr("over the limit of 99999"));
}

TEST_F(RequestMeterTest, FramesThatCarryNothingHaveANumber) {
  const std::string begin = Calls();
  ASSERT_EQ(PassCalls(meter_, begin), begin.size());
  const std::string ping = Frame(6, kNone, 0, "12345678");
  int pings = 0;
  while (meter_.status().ok() && pings < 10'000) {
    (void)meter_.Pass(ping);
    ++pings;
  }
  EXPECT_NEAR(pings, FrameBudget::kMost / FrameBudget::kPingCost, 5);
  RequestMeter other({.most = kMost, .most_question = kMost});
  ASSERT_EQ(PassCalls(other, begin), begin.size());
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_EQ(PassCalls(other, Frame(kData, kNone, 1, Prefix(100) + std::string(100, 'x'))), 114u);
    other.Answered(Frame(kData, kNone, 1, std::string(100, 'x')));
    ASSERT_EQ(PassCalls(other, Frame(8, kNone, 0, "1234")), 13u) << i << ": what clients do";
  }
  RequestMeter idle({.most = kMost, .most_question = kMost});
  ASSERT_EQ(PassCalls(idle, begin), begin.size());
  for (int64_t second = 1; second < 3000; ++second) {
    idle.frames().Tick(second * kNsPerSecond);
    ASSERT_EQ(PassCalls(idle, ping + Frame(6, 1, 0, "12345678")), 34u) << "keepalive";
  }
}

TEST_F(RequestMeterTest, EachCallWaitsUntilItMayBegin) {
  const std::string bytes = Calls(2);
  const size_t head = 9;
  const size_t call = head + std::string("fields").size();
  size_t passed = meter_.Pass(bytes);
  EXPECT_EQ(passed, bytes.size() - 2 * call + head) << "its head is known then";
  EXPECT_TRUE(meter_.call_waits());
  EXPECT_EQ(meter_.Pass(bytes.substr(passed)), 0u);
  meter_.BeginCall({});
  passed += meter_.Pass(bytes.substr(passed));
  EXPECT_EQ(passed, bytes.size() - call + head);
  EXPECT_TRUE(meter_.call_waits());
  meter_.BeginCall({});
  EXPECT_EQ(meter_.Pass(bytes.substr(passed)), call - head);
  EXPECT_FALSE(meter_.call_waits());
}

TEST_F(RequestMeterTest, ALargeMessageWaitsForRoomThatItsCallKeeps) {
  const std::string before =
      Calls() + Frame(kData, kNone, 1, Prefix(kLarge) + std::string(1000, 'x'));
  const size_t passes = before.size() - 1000;
  ASSERT_EQ(PassCalls(meter_, before), passes) << "all but the message";
  EXPECT_EQ(meter_.needed(), kLarge);
  EXPECT_EQ(meter_.call(), 1u);
  EXPECT_EQ(PassCalls(meter_, before.substr(passes)), 0u) << "as long as there is no room";
  meter_.Admit(Room());
  EXPECT_EQ(PassCalls(meter_, before.substr(passes)), 1000u);
  PassPayload(meter_, 1, kLarge - 1000);
  EXPECT_EQ(Held(), 1) << "MiB; gRPC still has it";
  const std::string small = Frame(kData, kNone, 1, Prefix(3) + "abc");
  EXPECT_EQ(PassCalls(meter_, small), small.size());
  EXPECT_EQ(Held(), 1) << "nobody need have read the large one yet";
  const std::string as_large = Frame(kData, kNone, 1, Prefix(kLarge));
  EXPECT_EQ(PassCalls(meter_, as_large), as_large.size());
  EXPECT_EQ(meter_.needed(), 0u) << "the same room";
  PassPayload(meter_, 1, kLarge);
  const std::string larger = Frame(kData, kNone, 1, Prefix(kLarge + 5));
  EXPECT_EQ(PassCalls(meter_, larger), larger.size());
  EXPECT_EQ(meter_.needed(), 5u);
  meter_.Admit(limits_.Hold(Limit::kDoorMemory, kUser, 1 << 20));
  EXPECT_EQ(Held(), 2) << "MiB, begun ones count";
  meter_.Answered(Frame(kHeaders, kEnd | kWhole, 1, "trailers"));
  EXPECT_EQ(Held(), 0);
}

TEST_F(RequestMeterTest, ACallThatEndsGivesItsRoomBackWhoeverEndsIt) {
  const std::string large = Calls() + Frame(kData, kNone, 1, Prefix(kLarge));
  const auto begin = [&](RequestMeter& meter) {
    ASSERT_EQ(PassCalls(meter, large), large.size());
    meter.Admit(Room());
    ASSERT_EQ(Held(), 1);
  };
  {
    RequestMeter meter({.most = kMost, .most_question = kMost});
    begin(meter);
    const std::string reset = Frame(kReset, kNone, 1, "1234");
    ASSERT_EQ(PassCalls(meter, reset.substr(0, 12)), 12u);
    EXPECT_EQ(Held(), 1) << "gRPC does not know it yet";
    ASSERT_EQ(PassCalls(meter, reset.substr(12)), 1u);
    EXPECT_EQ(Held(), 0) << "the client";
  }
  for (const std::string& end :
       {Frame(kHeaders, kEnd | kWhole, 1, "trailers"), Frame(kData, kEnd, 1, "last")}) {
    RequestMeter meter({.most = kMost, .most_question = kMost});
    begin(meter);
    meter.Answered(Frame(kSettings, kNone, 0));
    meter.Answered(Frame(kHeaders, kWhole, 1, "headers") + Frame(kData, kNone, 1, "part"));
    meter.Answered(Frame(kReset, kNone, 1, "1234"));
    EXPECT_EQ(Held(), 1) << "it goes on; gRPC's RST_STREAM may end one direction only";
    for (const char byte : end) meter.Answered(std::string(1, byte));
    EXPECT_EQ(Held(), 0) << "gRPC";
  }
  {
    RequestMeter meter({.most = kMost, .most_question = kMost});
    begin(meter);
  }
  EXPECT_EQ(Held(), 0) << "the connection";
}

TEST_F(RequestMeterTest, AMessageThatWaitsForRoomIsForgottenWithItsCall) {
  const std::string bytes =
      Calls() + Frame(kData, kNone, 1, Prefix(kLarge) + "xx") + Frame(kSettings, kNone, 0);
  const size_t passed = PassCalls(meter_, bytes);
  ASSERT_EQ(meter_.needed(), kLarge);
  meter_.Answered(Frame(kHeaders, kEnd | kWhole, 1, "trailers"));
  EXPECT_EQ(meter_.needed(), 0u);
  EXPECT_EQ(PassCalls(meter_, bytes.substr(passed)), bytes.size() - passed) << "gRPC drops it";
}

TEST_F(RequestMeterTest, WhatBreaksARuleIsRefusedForGood) {
  const struct {
    std::string bytes;
    StatusCode code;
    std::string words;
    uint32_t call;
  } cases[] = {
      {Calls() + Frame(kData, kNone, 1, Prefix(kMost + 1)), StatusCode::kResourceExhausted,
       "1048577 bytes is over the limit of 1048576", 1},
      {Calls() + Frame(kData, kNone, 1, Prefix(10, 1)), StatusCode::kInvalidArgument, "compressed",
       1},
      {Calls() + Frame(kData, kPad, 1, "xx"), StatusCode::kInvalidArgument, "flags", 0},
      {Calls() + Frame(kData, 2, 1, ""), StatusCode::kInvalidArgument, "flags", 0},
      {Calls() + Frame(kReset, kNone, 1, "12345"), StatusCode::kInvalidArgument, "RST_STREAM", 0},
      {Calls() + Frame(kSettings, kNone, 0, std::string(16385, 's')), StatusCode::kInvalidArgument,
       "a frame of 16385 bytes", 0},
      {Calls() + Frame(kHeaders, kWhole, 1, "trailers"), StatusCode::kInvalidArgument,
       "begin no call", 0},
      {Calls() + Frame(kHeaders, kWhole, 4, ""), StatusCode::kInvalidArgument, "begin no call", 0},
      {Calls() + Frame(kHeaders, kNone, 3, std::string(16000, 'h')) +
           Frame(kContinuation, kWhole, 3, std::string(400, 'h')),
       StatusCode::kResourceExhausted, "headers of more than 16384 bytes", 0},
      {Calls() + Frame(kHeaders, kNone, 3, "h") + Frame(kContinuation, kNone, 3, "h") +
           Frame(kContinuation, kNone, 3, "h") + Frame(kContinuation, kNone, 3, "h") +
           Frame(kContinuation, kWhole, 3, "h"),
       StatusCode::kResourceExhausted, "more than 4 frames", 0},
      {Calls(RequestMeter::kMostCalls + 1), StatusCode::kResourceExhausted, "128 calls", 0},
      {"GET / HTTP/1.1\r\n\r\n", StatusCode::kInvalidArgument, "not HTTP/2", 0},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.words);
    RequestMeter meter({.most = kMost, .most_question = kMost});
    EXPECT_EQ(PassCalls(meter, c.bytes), 0u);
    EXPECT_EQ(meter.status().code(), c.code);
    EXPECT_THAT(std::string(meter.status().message()), HasSubstr(c.words));
    EXPECT_EQ(meter.call(), c.call);
    EXPECT_EQ(PassCalls(meter, Frame(kSettings, kNone, 0)), 0u) << "for good";
  }
}

TEST_F(RequestMeterTest, ACallThatEndedMakesPlaceForAnother) {
  std::string bytes = Calls(RequestMeter::kMostCalls);
  ASSERT_EQ(PassCalls(meter_, bytes), bytes.size());
  meter_.Answered(Frame(kHeaders, kEnd | kWhole, 1, "trailers"));
  const std::string next = Frame(kHeaders, kWhole, 2 * RequestMeter::kMostCalls + 1, "fields");
  EXPECT_EQ(PassCalls(meter_, next), next.size());
}

TEST_F(RequestMeterTest, KnowsWhereAnAnswerMayBeCut) {
  EXPECT_FALSE(meter_.answers_may_be_cut()) << "SETTINGS come first";
  meter_.Answered(Frame(kSettings, kNone, 0));
  EXPECT_TRUE(meter_.answers_may_be_cut());
  const std::string head = Frame(kHeaders, kNone, 1, "fields");
  meter_.Answered(head.substr(0, 4));
  EXPECT_FALSE(meter_.answers_may_be_cut());
  meter_.Answered(head.substr(4));
  EXPECT_FALSE(meter_.answers_may_be_cut()) << "CONTINUATION must follow";
  meter_.Answered(Frame(kContinuation, kWhole, 1, "fields"));
  EXPECT_TRUE(meter_.answers_may_be_cut());
}

TEST(CallPaceTest, ASecondsCallsMayComeAtOnceAndTheRestAtThePace) {
  CallPace pace;
  constexpr int64_t kNow = 100 * kNsPerSecond;
  constexpr int64_t kPerMinute = 600;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(pace.Next(kUser, kPerMinute, kNow), kNow) << i;
  EXPECT_EQ(pace.Next(kUser, kPerMinute, kNow), kNow + kNsPerSecond / 10);
  EXPECT_EQ(pace.Next(kUser, kPerMinute, kNow), kNow + 2 * kNsPerSecond / 10);
  EXPECT_EQ(pace.Next(kUser + 1, kPerMinute, kNow), kNow) << "another user";
  EXPECT_EQ(pace.Next(kUser, kPerMinute, kNow + 3 * kNsPerSecond), kNow + 3 * kNsPerSecond);
}

TEST(CallPaceTest, ManyUsersAreForgottenWhenTheyAreGone) {
  CallPace pace;
  constexpr int64_t kNow = 100 * kNsPerSecond;
  for (uint32_t user = 0; user < 3 * CallPace::kMostUsers; ++user) {
    EXPECT_LT(pace.Next(user, 600, kNow + user), kNow + 300 * kNsPerSecond);
  }
  EXPECT_EQ(pace.Next(5000, 600, kNow + 900 * kNsPerSecond), kNow + 900 * kNsPerSecond);
}

}  // namespace
}  // namespace perfd::daemon
