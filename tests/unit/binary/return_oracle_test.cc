#include "agent/binary/return_oracle.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace perfd::agent {
namespace {

constexpr uint64_t kBase = 0x1000;

class ReturnOracleTest : public ::testing::Test {
 protected:
  bool NeverReturns(std::vector<int> code, uint64_t callee = kBase) {
    bytes_.clear();
    for (const int b : code) bytes_.push_back(static_cast<std::byte>(b));
    ReturnOracle oracle(
        [this](uint64_t address) -> std::span<const std::byte> {
          if (address < kBase || address - kBase >= bytes_.size()) return {};
          return std::span(bytes_).subspan(address - kBase);
        },
        [](uint64_t address) { return address == 0x9000 ? "abort" : ""; },
        [this](uint64_t call) {
          const auto found = pads_.find(call);
          return found == pads_.end() ? std::nullopt : std::optional(found->second);
        });
    return oracle.NeverReturns(callee);
  }

  std::vector<std::byte> bytes_;
  std::map<uint64_t, uint64_t> pads_;  // by call
};

TEST_F(ReturnOracleTest, Ends) {
  EXPECT_TRUE(NeverReturns({}, 0x9000));                            // by name
  EXPECT_FALSE(NeverReturns({0xC3}));                               // ret
  EXPECT_TRUE(NeverReturns({0x0F, 0x0B}));                          // ud2
  EXPECT_TRUE(NeverReturns({0xEB, 0xFE}));                          // jmp .
  EXPECT_FALSE(NeverReturns({0xFF, 0xE0}));                         // jmp *%rax
  EXPECT_FALSE(NeverReturns({0x90}));                               // runs out of the code
  EXPECT_FALSE(NeverReturns({0x74, 0x02, 0x0F, 0x0B, 0xC3}));       // je to a ret
  EXPECT_TRUE(NeverReturns({0x74, 0x02, 0x0F, 0x0B, 0x0F, 0x0B}));  // je to another ud2
}

TEST_F(ReturnOracleTest, Calls) {
  EXPECT_TRUE(NeverReturns({0xE8, 0xFB, 0x7F, 0, 0, 0xC3}));   // call 0x9000; ret
  EXPECT_FALSE(NeverReturns({0xE8, 1, 0, 0, 0, 0xC3, 0xC3}));  // call of a function that returns
  EXPECT_FALSE(NeverReturns({0xE8, 0xFB, 0xFF, 0xFF, 0xFF, 0xC3}));  // calls itself, then returns
}

TEST_F(ReturnOracleTest, WhatCatchesIsAPath) {
  const std::vector<int> throws_then_ret = {0xE8, 0xFB, 0x7F, 0, 0, 0xC3};
  pads_ = {{kBase, kBase + 5}};
  EXPECT_FALSE(NeverReturns(throws_then_ret));
  pads_ = {{kBase + 5, kBase + 5}};  // of nothing that is called
  EXPECT_TRUE(NeverReturns(throws_then_ret));
  pads_ = {{kBase, kBase + 5}};  // a handler that throws again
  EXPECT_TRUE(NeverReturns({0xE8, 0xFB, 0x7F, 0, 0, 0xE8, 0xF6, 0x7F, 0, 0}));
}

TEST_F(ReturnOracleTest, LongFunctionsAreTakenToReturn) {
  std::vector<int> code(ReturnOracle::kMaxInstructionsFollowed - 2, 0x90);
  code.insert(code.end(), {0x0F, 0x0B});
  EXPECT_TRUE(NeverReturns(code));
  code.insert(code.begin(), 0x90);
  EXPECT_FALSE(NeverReturns(code));
}

}  // namespace
}  // namespace perfd::agent
