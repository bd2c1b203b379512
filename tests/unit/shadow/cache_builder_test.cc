#include "agent/shadow/cache_builder.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "agent/shadow/payload_blob.h"
#include "agent/shadow/protocol.h"
#include "agent/variant/moved.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perfd::agent {
namespace {

constexpr uint64_t kText = 0x400000, kCache = 0x10000000, kSite = 0x20000040;

// addsd (%rdi),%xmm0; add $8,%rdi; dec %rsi; jne 0b; ret
const std::vector<uint8_t> kSum = {0xf2, 0x0f, 0x58, 0x07, 0x48, 0x83, 0xc7,
                                   0x08, 0x48, 0xff, 0xce, 0x75, 0xf3, 0xc3};

LoopToInject SumLoop() {
  LoopToInject loop;
  loop.loop_id = "sum";
  auto code =
      DecodeLoop({.function = {{kText, kSum}}, .header = kText, .body = {{kText, kText + 13}}});
  EXPECT_TRUE(code.ok()) << code.status();
  if (code.ok()) loop.code = *std::move(code);
  return loop;
}

uint64_t JumpTarget(const std::vector<uint8_t>& bytes, uint64_t base, uint64_t at) {
  EXPECT_EQ(bytes[at - base], 0xe9);
  int32_t distance;
  memcpy(&distance, &bytes[at - base + 1], 4);
  return at + 5 + static_cast<uint64_t>(int64_t{distance});
}

bool StandsAt(const CacheBuilder& builder, const CodeCopy& copy, uint64_t shift) {
  const auto at = builder.bytes().begin() +
                  static_cast<std::ptrdiff_t>(copy.address + shift - builder.address());
  const std::vector<uint8_t> moved = *MovedBytes(copy, shift);
  return std::equal(moved.begin(), moved.end(), at);
}

TEST(CacheBuilderTest, BeginsWithThePayloadAndAnEmptyCopy) {
  CacheBuilder builder(kCache, 1 << 20);
  std::span<const uint8_t> blob = PayloadBlob();
  ASSERT_GE(builder.bytes().size(), blob.size());
  EXPECT_TRUE(std::equal(blob.begin(), blob.end(), builder.bytes().begin()));
  EXPECT_EQ(JumpTarget(builder.bytes(), kCache, builder.empty_copy()), kCache + kPayloadExitStub);
}

TEST(CacheBuilderTest, LoopHasTrampolineLiveAndTimedCopyAndVariants) {
  LoopToInject loop = SumLoop();
  CacheBuilder builder(kCache, CacheBound({&loop}));
  BuiltLoop built = builder.Build(loop, {kSite, kSite + 0x1000});
  ASSERT_TRUE(built.installed.status.ok()) << built.installed.status;
  EXPECT_EQ(built.installed.names.size(), 3u);
  EXPECT_EQ(built.installed.names[1].Text(), "COUNT");
  EXPECT_EQ(built.patch.address, kText);
  std::vector<uint8_t> jump(built.jump.begin(), built.jump.end());
  EXPECT_EQ(JumpTarget(jump, kText, kText), built.trampoline);
  ASSERT_TRUE(built.timed.has_value()) << built.untimed;
  EXPECT_NE(built.timed->address, built.live.address);
  EXPECT_LE(builder.bytes().size(), CacheBound({&loop}));
  for (const CodeCopy& copy : built.installed.copies) EXPECT_EQ(copy.address % 64, kText % 64);
}

// 0: mov (%rdx),%rdi; mov $4,%esi; 8: the sum; 21: add $8,%rdx; dec %rcx; jne 0b; ret
TEST(CacheBuilderTest, TheLoopAroundIsInAllChainsAndInNoLiveCopy) {
  std::vector<uint8_t> text = {0x48, 0x8b, 0x3a, 0xbe, 0x04, 0x00, 0x00, 0x00};
  text.insert(text.end(), kSum.begin(), kSum.end() - 1);
  const std::vector<uint8_t> next = {0x48, 0x83, 0xc2, 0x08, 0x48, 0xff, 0xc9, 0x75, 0xe2, 0xc3};
  text.insert(text.end(), next.begin(), next.end());
  const uint64_t header = kText + 8, high = header + 13;
  LoopToInject loop;
  loop.variants = {SingleVariant(Change::kLs), SingleVariant(Change::kNoRed)};
  loop.code =
      *DecodeLoop({.function = {{kText, text}}, .header = header, .body = {{header, high}}});
  loop.batch = DecodeBatch(
      loop.code, {.function = {{kText, text}}, .header = kText, .body = {{kText, kText + 30}}});
  ASSERT_TRUE(loop.batch.ok()) << loop.batch.status();
  CacheBuilder builder(kCache, CacheBound({&loop}));
  const BuiltLoop built = builder.Build(loop, {kSite, kSite + 0x1000});
  const InstalledLoop& installed = built.installed;
  ASSERT_TRUE(installed.status.ok() && installed.batches.ok());
  ASSERT_EQ(installed.batched.size(), installed.names.size());
  EXPECT_LE(builder.bytes().size(), CacheBound({&loop}));
  const auto holds = [](const CodeCopy& copy, uint64_t original) {
    return std::any_of(copy.address_map.begin(), copy.address_map.end(),
                       [&](const AddressPair& pair) { return pair.original == original; });
  };
  for (size_t i = 0; i < installed.names.size(); ++i) {
    ASSERT_TRUE(installed.batched[i].ok()) << installed.names[i].Text();
    EXPECT_TRUE(holds(*installed.batched[i], kText + 21));
    EXPECT_EQ(installed.batched[i]->changed.size(), installed.copies[i].changed.size());
    EXPECT_EQ(installed.batched[i]->base, installed.copies[i].base);
    // How often each instance goes round is a branch, too; alone, the sum has none but its own.
    const bool timed = !Counts(installed.names[i]);
    EXPECT_EQ(installed.batched[i]->places.shifts.size(), timed ? size_t{kPlacements - 1} : 0);
    EXPECT_TRUE(installed.copies[i].places.shifts.empty());
    for (const uint64_t shift : installed.batched[i]->places.shifts)
      EXPECT_TRUE(StandsAt(builder, *installed.batched[i], shift)) << installed.names[i].Text();
  }
  EXPECT_FALSE(holds(built.live, kText));
  EXPECT_FALSE(holds(*built.timed, kText));
  ASSERT_TRUE(built.timed_batch.has_value());
  EXPECT_TRUE(holds(built.timed_batch->copy, kText));
  // Where its turns cannot be counted there is none.
  for (const uint64_t turns : {uint64_t{0}, kSite + (uint64_t{1} << 32)}) {
    CacheBuilder other(kCache, CacheBound({&loop}));
    EXPECT_FALSE(other.Build(loop, {kSite, turns}).timed_batch.has_value()) << turns;
  }
}

TEST(CacheBuilderTest, ChainsNeedAHeaderThatEveryInstanceComesBy) {
  // The same with the sum's own header in place of the loop around: nothing lies between.
  LoopToInject loop = SumLoop();
  const auto batch = DecodeBatch(
      loop.code, {.function = {{kText, kSum}}, .header = kText, .body = {{kText, kText + 13}}});
  EXPECT_FALSE(batch.ok());
}

// 0: comisd (%rdi),%xmm1; jbe 10; addsd (%rdi),%xmm0; 10: add $8,%rdi; dec %rsi; jne 0b; ret
TEST(CacheBuilderTest, WhatDecidesByDataStandsAtSeveralPlaces) {
  const std::vector<uint8_t> text = {0x66, 0x0f, 0x2f, 0x0f, 0x76, 0x04, 0xf2, 0x0f, 0x58, 0x07,
                                     0x48, 0x83, 0xc7, 0x08, 0x48, 0xff, 0xce, 0x75, 0xed, 0xc3};
  LoopToInject loop;
  loop.variants = {SingleVariant(Change::kLs), SingleVariant(Change::kDl1)};
  loop.code =
      *DecodeLoop({.function = {{kText, text}}, .header = kText, .body = {{kText, kText + 19}}});
  CacheBuilder builder(kCache, CacheBound({&loop}));
  const BuiltLoop built = builder.Build(loop, {kSite, kSite + 0x1000});
  ASSERT_TRUE(built.installed.status.ok()) << built.installed.status;
  EXPECT_LE(builder.bytes().size(), CacheBound({&loop}));
  for (size_t i = 0; i < built.installed.names.size(); ++i) {
    const VariantName& name = built.installed.names[i];
    const CodeCopy& copy = built.installed.copies[i];
    if (name.Has(Change::kCount) || name.Has(Change::kTrace)) {
      EXPECT_TRUE(copy.places.shifts.empty()) << name.Text() << " is not timed";
      continue;
    }
    ASSERT_EQ(copy.places.shifts.size(), size_t{kPlacements - 1}) << name.Text();
    std::set<uint64_t> places(copy.places.shifts.begin(), copy.places.shifts.end());
    EXPECT_EQ(places.size(), copy.places.shifts.size());
    for (const uint64_t shift : copy.places.shifts)
      EXPECT_TRUE(StandsAt(builder, copy, shift)) << name.Text();
  }
  EXPECT_TRUE(built.live.places.shifts.empty());
  CacheBuilder trim(kCache, CacheBound({&loop}, 1), 1);
  const BuiltLoop alone = trim.Build(loop, {kSite, kSite + 0x1000});
  ASSERT_TRUE(alone.installed.status.ok()) << alone.installed.status;
  EXPECT_LE(trim.bytes().size(), CacheBound({&loop}, 1));
  EXPECT_TRUE(alone.installed.copies[0].places.shifts.empty());
  LoopToInject plain = SumLoop();
  CacheBuilder other(kCache, CacheBound({&plain}));
  EXPECT_TRUE(
      other.Build(plain, {kSite, kSite + 0x1000}).installed.copies[0].places.shifts.empty());
}

TEST(CacheBuilderTest, RefusedLoopLeavesNoTrace) {
  LoopToInject loop = SumLoop();
  loop.code.instructions.resize(1);  // shorter than a jump
  CacheBuilder builder(kCache, 1 << 20);
  const std::vector<uint8_t> before = builder.bytes();
  EXPECT_FALSE(builder.Build(loop, {kSite, kSite + 0x1000}).installed.status.ok());
  EXPECT_EQ(builder.bytes(), before);
}

TEST(RedirectExitsTest, OnlyExitsAreLedElsewhere) {
  CodeCopy copy;
  copy.address = kCache;
  // 0: je 0x400100 (near); 6: jmp 0 (short, stays); 8: jmp 0x400200
  copy.bytes = {0x0f, 0x84, 0, 0, 0, 0, 0xeb, 0xf8, 0xe9, 0, 0, 0, 0};
  auto set = [&](size_t at, uint64_t end, uint64_t target) {
    auto distance = static_cast<int32_t>(target - end);
    memcpy(&copy.bytes[at], &distance, 4);
  };
  set(2, kCache + 6, 0x400100);
  set(9, kCache + 13, 0x400200);
  CodeCopy missing = copy;
  EXPECT_FALSE(RedirectExits(&missing, {{0x400100, kCache + 0x1000}}).ok());
  ASSERT_TRUE(
      RedirectExits(&copy, {{0x400100, kCache + 0x1000}, {0x400200, kCache + 0x2000}}).ok());
  int32_t distance;
  memcpy(&distance, &copy.bytes[2], 4);
  EXPECT_EQ(kCache + 6 + static_cast<uint64_t>(distance), kCache + 0x1000);
  EXPECT_EQ(JumpTarget(copy.bytes, kCache, kCache + 8), kCache + 0x2000);
  EXPECT_EQ(copy.bytes[7], 0xf8);
}

}  // namespace
}  // namespace perfd::agent
