// Passes that wait for each other through memory: what variants cut of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "agent/variant/loop_code.h"
#include "agent/variant/roles.h"

namespace perfd::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// movslq (%rsi,%rax,4), %rcx; movsd (%rdx,%rax,8), %xmm0; addsd (%rdi,%rcx,8), %xmm0; movsd %xmm0, (%rdi,%rcx,8); inc; cmp; jb
constexpr char kIndirect[] = "48630c86f20f1004c2f20f5804cff20f1104cf48ffc04c39c072e5";
// movsd (%rdx,%rax,8), %xmm0; addsd (%rdi,%rax,8), %xmm0; movsd %xmm0, (%rdi,%rax,8); inc; cmp; jb
constexpr char kInPlace[] = "f20f1004c2f20f5804c7f20f1104c748ffc04c39c072e9";
// movslq (%rsi,%rax,4), %rcx; incl (%rdi,%rcx,4); inc; cmp; jb
constexpr char kHistogram[] = "48630c86ff048f48ffc04c39c072f1";
// movsd (%rdi), %xmm0; addsd (%rsi,%rax,8), %xmm0; movsd %xmm0, (%rdi); inc; cmp; jb
constexpr char kSumInMemory[] = "f20f1007f20f5804c6f20f110748ffc04c39c072eb";
// As kIndirect, but what is loaded from there is not what is stored: addsd (%rdi,%rcx,8), %xmm1.
constexpr char kNoWayBack[] = "48630c86f20f1004c2f20f580ccff20f1104cf48ffc04c39c072e5";

// kIndirect with -8(%rdi,%rcx,8), as Fortran counts.
constexpr char kFromOne[] = "48630c86f20f1004c2f20f5844cff8f20f1144cff848ffc04c39c072e3";
// movsd (%rdx,%rax,8), %xmm0; movsd %xmm0, -16(%rsp); mulsd %xmm0, %xmm0; addsd -16(%rsp), %xmm0; movsd %xmm0, -16(%rsp); inc; ...
constexpr char kRefilled[] =
    "f20f1004c2f20f114424f0f20f59c0f20f584424f0f20f114424f048ffc04c39c072dd";
// kInPlace behind mov 0x20(%rsp), %rdi
constexpr char kReloaded[] = "488b7c2420f20f1004c2f20f5804c7f20f1104c748ffc04c39c072e4";

// kIndirect behind movsd %xmm2, 8(%rdi,%rcx,8), its neighbour, as complex numbers have it.
constexpr char kNeighbour[] = "48630c86f20f1154cf08f20f1004c2f20f5804cff20f1104cf48ffc04c39c072df";

LoopCode Decoded(const char* hex) {
  const std::string code = absl::HexStringToBytes(hex);
  LoopBytes bytes;
  bytes.function = {{0x1000, {code.begin(), code.end()}}};
  bytes.header = 0x1000;
  bytes.body = {{0x1000, 0x1000 + code.size()}};
  const auto loop = DecodeLoop(bytes);
  EXPECT_TRUE(loop.ok()) << loop.status();
  return loop.ok() ? *loop : LoopCode();
}

std::vector<AccessPair> Cut(const char* hex, const std::vector<size_t>& changed) {
  const LoopCode loop = Decoded(hex);
  std::vector<bool> flags(loop.instructions.size());
  for (const size_t at : changed) flags.at(at) = true;
  return MemoryChainsCut(loop, flags);
}

TEST(MemoryChain, FromTheLoadByArithmeticToTheStore) {
  const AccessPair pair{0x100e, 0x1009};
  for (const size_t part : {2u, 3u}) EXPECT_THAT(Cut(kIndirect, {part}), ElementsAre(pair)) << part;
  EXPECT_THAT(Cut(kIndirect, {0, 1, 4, 5}), IsEmpty()) << "the index, and what is added";
  EXPECT_THAT(Cut(kIndirect, {}), IsEmpty());
}

TEST(MemoryChain, DisplacementsBelowZeroWrapAround) {
  EXPECT_THAT(Cut(kFromOne, {2}), ElementsAre(AccessPair{0x100f, 0x1009}));
}

TEST(MemoryChain, AStoreBesideItFillsNothingIn) {
  EXPECT_THAT(Cut(kNeighbour, {3}), ElementsAre(AccessPair{0x1014, 0x100f}));
}

TEST(MemoryChain, OneInstructionMayBeAllOfIt) {
  EXPECT_THAT(Cut(kHistogram, {1}), ElementsAre(AccessPair{0x1004, 0x1004}));
  EXPECT_THAT(Cut(kHistogram, {0}), IsEmpty());
}

TEST(MemoryChain, AnAddressThatStaysIsTheShortestOne) {
  EXPECT_THAT(Cut(kSumInMemory, {1}), ElementsAre(AccessPair{0x1009, 0x1000}));
}

TEST(MemoryChain, WhereEachPassGoesOnOrNothingComesBackThereIsNone) {
  EXPECT_THAT(Cut(kInPlace, {0, 1, 2}), IsEmpty());
  EXPECT_THAT(Cut(kNoWayBack, {0, 1, 2, 3}), IsEmpty());
  EXPECT_THAT(Cut(kRefilled, {0, 1, 2, 3, 4}), IsEmpty()) << "what is loaded is of the same pass";
  EXPECT_THAT(Cut(kReloaded, {1, 2, 3}), IsEmpty()) << "an address that is read anew is the same";
}

}  // namespace
}  // namespace perfd::agent
