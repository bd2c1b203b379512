// Second entries of loops in long functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/escaping.h"
#include "agent/variant/decode.h"
#include "agent/variant/loop_code.h"

namespace perfd::agent {
namespace {

using testing::HasSubstr;

constexpr uint64_t kHot = 0x401000;

std::vector<uint8_t> Code(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  return {bytes.begin(), bytes.end()};
}

// What stands around a loop, by the words of CheckEntries: every instruction of it, decoded one after the other.
bool EnteredByDefinition(const LoopBytes& bytes, const CodeRange& body) {
  const CodeText& text = bytes.function[0];
  for (const CodeRange& stretch :
       {CodeRange{text.address, body.low}, CodeRange{body.high, text.end()}}) {
    for (uint64_t at = stretch.low; at < stretch.high;) {
      const auto step = DecodeFlow(std::span(text.bytes).subspan(at - text.address), at);
      const bool jumps = step && (step->flow == LoopFlow::kBranch || step->flow == LoopFlow::kJump);
      if (jumps && step->target != bytes.header && body.Contains(step->target)) return true;
      at += step ? step->length : 1;
    }
  }
  return false;
}

// Long functions are not decoded whole where no byte can lead into the loop: nothing is missed by that, and nothing is invented.
TEST(EntriesTest, AsByDefinition) {
  const std::vector<uint8_t> loop =
      Code("48ffc048ffc00f1f44000048ffc975f0");  // inc; inc; nopl; dec; jnz
  std::mt19937_64 random(11);
  size_t refused = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    LoopBytes bytes;
    std::vector<uint8_t> text;
    const auto fill = [&](size_t least) {
      while (text.size() < least) {
        const auto kind = random() % 8;
        const auto byte = static_cast<uint8_t>(random());
        if (kind == 0) text.insert(text.end(), {0x75, byte});
        if (kind == 1) text.insert(text.end(), {0xeb, byte});
        if (kind == 2)
          text.insert(text.end(),
                      {0x0f, 0x84, byte, static_cast<uint8_t>(random() % 2 * 0xff), 0, 0});
        if (kind == 3) text.insert(text.end(), {0xe9, byte, 0, 0, 0});
        if (kind == 4) text.insert(text.end(), {0xe9, byte, 0xff, 0xff, 0xff});
        if (kind == 5) text.push_back(byte);
        if (kind > 5) text.insert(text.end(), {0x48, 0x89, 0xc8});
      }
      text.insert(text.end(), 16,
                  0x90);  // whatever stood before, the next byte begins an instruction
    };
    fill(random() % 60);
    const uint64_t low = kHot + text.size();
    text.insert(text.end(), loop.begin(), loop.end());
    fill(text.size() + random() % 60);
    bytes.header = low;
    bytes.function = {{kHot, text}};
    bytes.body = {{low, low + loop.size()}};
    const bool entered = EnteredByDefinition(bytes, bytes.body[0]);
    EXPECT_EQ(DecodeLoop(bytes).ok(), !entered) << round;
    refused += entered ? 1 : 0;
  }
  EXPECT_GT(refused, size_t{kRounds / 20});
  EXPECT_LT(refused, size_t{kRounds * 9 / 10});
}

// Whatever they are: they are not decoded.
TEST(EntriesTest, ABodyOfTooManyBytesHasTooManyInstructions) {
  LoopBytes bytes;
  bytes.header = kHot;
  bytes.function = {
      {kHot, std::vector<uint8_t>(15 * kMaxLoopInstructions + 1, 0x06)}};  // no instruction
  bytes.body = {{kHot, bytes.function[0].end()}};
  EXPECT_THAT(std::string(DecodeLoop(bytes).status().message()),
              HasSubstr("more than 2048 instructions"));
  bytes.body[0].high -= 1;
  EXPECT_THAT(std::string(DecodeLoop(bytes).status().message()), HasSubstr("no known instruction"));
}

}  // namespace
}  // namespace perfd::agent
