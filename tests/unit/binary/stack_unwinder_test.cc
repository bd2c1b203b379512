#include "agent/binary/stack_unwinder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/binary/stack_dump.h"

namespace perfd::agent {
namespace {

using ::testing::ElementsAreArray;

// The names from the innermost frame to `main`; what lies beyond is the C library's and _start.
std::vector<std::string> UpToMain(std::vector<std::string> names) {
  const auto main = std::find(names.begin(), names.end(), "main");
  if (main != names.end()) names.erase(main + 1, names.end());
  return names;
}

CallPath PathOf(const StackDump& dump) {
  auto unwinder = StackUnwinder::Create(ModulesOf(dump));
  EXPECT_TRUE(unwinder.ok()) << unwinder.status();
  return unwinder.ok() ? (*unwinder)->Unwind(dump.copy) : CallPath{};
}

class StackUnwinderTest : public testing::TestWithParam<const char*> {};

TEST_P(StackUnwinderTest, RecursionHasItsDepth) {
  for (const int depth : {0, 1, 7, 150}) {
    const StackDump dump = DumpOf(GetParam(), "recurse " + std::to_string(depth));
    const CallPath path = PathOf(dump);
    std::vector<std::string> expected = {"leaf"};
    expected.insert(expected.end(), static_cast<size_t>(depth) + 1, "recurse");
    expected.push_back("main");
    EXPECT_THAT(UpToMain(dump.Names(path)), ElementsAreArray(expected)) << "depth " << depth;
    EXPECT_TRUE(path.complete);
    EXPECT_EQ(path.unknown_address, 0u);
  }
}

TEST_P(StackUnwinderTest, CallbackFromALibraryWithoutFramePointers) {
  const StackDump dump = DumpOf(GetParam(), "qsort");
  const CallPath path = PathOf(dump);
  std::vector<std::string> names = UpToMain(dump.Names(path));
  EXPECT_TRUE(path.complete);
  ASSERT_GE(names.size(), 5u);
  EXPECT_EQ(names[0], "leaf");
  EXPECT_EQ(names[1], "compare");
  EXPECT_EQ(names.back(), "main");
  EXPECT_EQ(names[names.size() - 2], "sorter");
  for (size_t i = 2; i + 2 < names.size(); ++i)
    EXPECT_EQ(names[i].rfind("libc", 0), 0u) << names[i];
}

TEST_P(StackUnwinderTest, ASignalHandlerIsFollowedToWhatItInterrupted) {
  const StackDump dump = DumpOf(GetParam(), "signal");
  const std::vector<std::string> names = UpToMain(dump.Names(PathOf(dump)));
  ASSERT_GE(names.size(), 4u);
  EXPECT_EQ(names[0], "leaf");
  EXPECT_EQ(names[1], "on_signal");
  EXPECT_EQ(names.back(), "main");
  EXPECT_EQ(names[names.size() - 2], "interrupted");
}

// However little of the stack was copied, what is found is the beginning of the whole path.
TEST_P(StackUnwinderTest, ACutCopyGivesABeginningOfThePath) {
  StackDump dump = DumpOf(GetParam(), "recurse 20");
  auto unwinder = StackUnwinder::Create(ModulesOf(dump));
  ASSERT_TRUE(unwinder.ok()) << unwinder.status();
  const CallPath whole = (*unwinder)->Unwind(dump.copy);
  ASSERT_TRUE(whole.complete);
  const std::vector<std::byte> bytes = dump.copy.bytes;
  size_t before = 0;
  size_t cuts = 0;
  for (size_t size = 0; size < bytes.size() && before < whole.addresses.size(); size += 8) {
    dump.copy.bytes.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const CallPath cut = (*unwinder)->Unwind(dump.copy);
    ASSERT_GE(cut.addresses.size(), before) << size;
    ASSERT_LE(cut.addresses.size(), whole.addresses.size()) << size;
    ASSERT_TRUE(std::equal(cut.addresses.begin(), cut.addresses.end(), whole.addresses.begin()))
        << size;
    ASSERT_EQ(cut.complete, cut == whole) << size;
    before = cut.addresses.size();
    cuts += cut.complete ? 0 : 1;
  }
  EXPECT_GT(cuts, 20u);
  EXPECT_EQ(before, whole.addresses.size());
}

INSTANTIATE_TEST_SUITE_P(Compilers, StackUnwinderTest,
                         testing::Values("stacks-gcc", "stacks-gcc-nopie", "stacks-clang"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(StackUnwinderLimits, CodeInNoMappingEndsThePathAndIsNamed) {
  const StackDump dump = DumpOf("stacks-gcc", "qsort");
  auto unwinder = StackUnwinder::Create(ModulesOf(dump, "libc"));
  ASSERT_TRUE(unwinder.ok()) << unwinder.status();
  const CallPath path = (*unwinder)->Unwind(dump.copy);
  EXPECT_FALSE(path.complete);
  EXPECT_EQ(dump.Names(path), (std::vector<std::string>{"leaf", "compare"}));
  EXPECT_EQ(dump.NameOf(path.unknown_address.value()).rfind("libc", 0), 0u);
}

TEST(StackUnwinderLimits, AnInstructionInNoMappingIsThePath) {
  StackDump dump = DumpOf("stacks-gcc", "recurse 1");
  dump.copy.registers[kInstructionPointerIndex] = 0x1234;
  const CallPath path = PathOf(dump);
  EXPECT_EQ(path.addresses, std::vector<RuntimeAddress>{0x1234});
  EXPECT_EQ(path.unknown_address, 0x1234u);
  EXPECT_FALSE(path.complete);
}

TEST(StackUnwinderLimits, AnEndlessStackIsCut) {
  StackDump dump = DumpOf("stacks-gcc", "recurse 2");
  const CallPath path = PathOf(dump);
  ASSERT_GE(path.addresses.size(), 3u);
  // A stack full of return addresses into recurse() looks like a recursion without end.
  const uint64_t into_recurse = (path.addresses[2] + 1).value();
  dump.copy.registers[kInstructionPointerIndex] = into_recurse;
  dump.copy.bytes.resize(kMaxStackCopyBytes);
  for (size_t i = 0; i < dump.copy.bytes.size(); i += sizeof into_recurse)
    std::memcpy(dump.copy.bytes.data() + i, &into_recurse, sizeof into_recurse);
  const CallPath endless = PathOf(dump);
  EXPECT_EQ(endless.addresses.size(), kMaxCallPathFrames);
  EXPECT_FALSE(endless.complete);
}

TEST(StackUnwinderLimits, RandomStacksAndRegistersEnd) {
  const StackDump dump = DumpOf("stacks-gcc", "qsort");
  auto unwinder = StackUnwinder::Create(ModulesOf(dump));
  ASSERT_TRUE(unwinder.ok()) << unwinder.status();
  const CallPath right = (*unwinder)->Unwind(dump.copy);
  std::mt19937_64 random(5);
  for (int round = 0; round < 500; ++round) {
    StackCopy copy = dump.copy;
    for (uint64_t& value : copy.registers)
      if (random() % 4 == 0) value += random() >> (random() % 64);
    for (int change = 0; change < 20; ++change)
      copy.bytes[random() % copy.bytes.size()] = static_cast<std::byte>(random());
    const CallPath path = (*unwinder)->Unwind(copy);
    ASSERT_LE(path.addresses.size(), kMaxCallPathFrames);
    ASSERT_GE(path.addresses.size(), 1u);
    ASSERT_EQ(path.addresses[0], copy.registers[kInstructionPointerIndex]);
  }
  EXPECT_EQ((*unwinder)->Unwind(dump.copy), right) << "nothing is left of the bad ones";
}

TEST(StackUnwinderLimits, NothingToUnwindWith) {
  EXPECT_EQ(StackUnwinder::Create({}).status().code(), absl::StatusCode::kNotFound);
  std::vector<UnwindModule> script;
  script.push_back({OpenFile(PERFD_FIXTURE_SOURCES "/stacks.c"),
                    {.start = 0x1000, .end = 0x2000, .path = "/stacks.c"}});
  EXPECT_EQ(StackUnwinder::Create(std::move(script)).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace perfd::agent
