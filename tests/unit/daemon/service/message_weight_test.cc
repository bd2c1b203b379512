#include "core/wire/weight/message_weight.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <string>

#include "perfd/v1/agent.pb.h"

namespace perfd::daemon {
namespace {

constexpr size_t kMost = 64 << 20;

size_t Weight(const std::string& bytes, size_t most = kMost) {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  return wire::MessageWeight(in, *v1::AgentMessage::descriptor(), most);
}

std::string Repeated(const std::string& part, size_t times) {
  std::string bytes;
  for (size_t i = 0; i < times; ++i) bytes += part;
  return bytes;
}

TEST(MessageWeightTest, AWindowWeighsNoLessThanItTakes) {
  v1::AgentMessage message;
  v1::Window& window = *message.mutable_window();
  for (int i = 0; i < 10'000; ++i) {
    window.add_ranks()->set_command("a command of some length, longer than a short string");
    window.add_stacks();
    window.add_threads();
  }
  const std::string bytes = message.SerializeAsString();
  v1::AgentMessage parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  const size_t takes = parsed.SpaceUsedLong();
  EXPECT_GE(Weight(bytes), takes / 2);
  EXPECT_LE(Weight(bytes), 3 * takes);
}

TEST(MessageWeightTest, SmallThingsThatBecomeLargeAreFoundAndReadNoFurther) {
  for (const std::string& part : {std::string("\x7a\x00", 2), std::string("\x78\x00", 2)}) {
    const size_t weight = Weight(Repeated(part, 4 << 20));
    EXPECT_GT(weight, kMost) << "unknown fields";
    EXPECT_LT(weight, kMost + 1000);
  }
  EXPECT_GT(Weight("\x7b\x7c"), kMost) << "a group";
  v1::AgentMessage message;
  for (int i = 0; i < 1'000'000; ++i) message.mutable_session()->add_notices();
  EXPECT_GT(Weight(message.SerializeAsString()), kMost / 2) << "empty texts";
}

TEST(MessageWeightTest, WhatIsNoMessageIsReadToItsFault) {
  EXPECT_LT(Weight("\x0a\xff\xff\xff\xff\x0fgarbage"), 1000u);
  EXPECT_LT(Weight(Repeated("\xff", 100)), 1000u);
  EXPECT_EQ(Weight(""), 0u);
  std::string deep;
  for (int i = 0; i < 200; ++i) deep.insert(0, {'\x0a', static_cast<char>(deep.size() % 100)});
  EXPECT_LT(Weight(deep), 100'000u);
}

}  // namespace
}  // namespace perfd::daemon
