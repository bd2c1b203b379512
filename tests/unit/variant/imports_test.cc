// Loops of a compiled library that call into others: copies with the callees' code give the same bits, also where they leave it, and
// also its errno.
#include <gmock/gmock.h>
#include <gnu/libc-version.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <limits>

#include "agent/attach/memory.h"
#include "agent/experiment/text_scan.h"
#include "agent/procfs/procfs.h"
#include "agent/shadow/install/jumps.h"
#include "agent/variant/flow/leaf_calls.h"
#include "agent/variant/flow/leaf_pool.h"
#include "tests/unit/variant/compiled_library.h"
#include "tests/unit/variant/fixtures.h"

namespace perfd::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Loop = void (*)(double* q, const double* p, long n);

constexpr const char* kFar[] = {"far_leaf", "far_chain", "far_branch", "far_frame"};
constexpr const char* kMath[] = {"log",  "log2", "logf", "expf", "powf", "two",
                                 "exp",  "exp2", "pow",  "cbrt", "sin",  "cos",
                                 "tanh", "atan", "erf",  "sinf", "hypot"};

// Of all kinds that a mathematical function tells apart.
std::vector<double> Usual() {
  std::vector<double> values;
  for (int i = 0; i < 200; ++i) values.push_back(0.01 + i * 0.0173);
  return values;
}

std::vector<double> Rare() {
  const double infinity = std::numeric_limits<double>::infinity();
  return {-1,  0,    -0.0, infinity, -infinity, std::nan(""), 5e-324, 1e-310,
          1.0, 1e30, -50,  1e308,    3.5,       1e-45,        -104,   2};
}

struct Outcome {
  std::vector<uint64_t> bits;
  int error = 0;
  bool operator==(const Outcome&) const = default;
};

Outcome RunLoop(Loop loop, const std::vector<double>& values) {
  std::vector<double> sums(values.size(), 0.25);
  errno = 0;
  loop(sums.data(), values.data(), static_cast<long>(values.size()));
  Outcome outcome{std::vector<uint64_t>(values.size()), errno};
  std::memcpy(outcome.bits.data(), sums.data(), 8 * sums.size());
  return outcome;
}

class ImportsTest : public testing::TestWithParam<const char*> {
 protected:
  ImportsTest() : library_(PathOf(GetParam())), memory_(OwnMemory()) {}

  static Memory OwnMemory() {
    return Memory::Open(getpid(), *ProcFs().StartTicks(getpid())).value();
  }
  Loop Find(const std::string& name) const {
    return reinterpret_cast<Loop>(library_.Symbol(absl::StrCat("loop_", name)));
  }
  LoopBytes BytesOf(const std::string& name) {
    std::vector<LoopBytes> loops =
        library_.Loops(reinterpret_cast<Kernel>(library_.Symbol(absl::StrCat("loop_", name))));
    EXPECT_THAT(loops, SizeIs(1)) << name;
    return loops.at(0);
  }
  absl::StatusOr<LoopCode> Decode(const std::string& name) {
    LoopBytes bytes = BytesOf(name);
    ReadCalledCode(memory_, &bytes);
    EXPECT_TRUE(WantedBy(bytes).empty());
    return DecodeLoop(bytes);
  }
  // Its copies may be made from here on.
  uint64_t Prepare(LoopCode* code) const {
    const std::vector<uint8_t> pool = UseLeafPool(library_.cache(), code);
    std::copy(pool.begin(), pool.end(), Bytes(library_.cache()));
    return library_.cache() + pool.size();
  }
  // The original and a copy of it that must keep results, on the same values.
  void Compare(const std::string& name, Change change, const std::vector<double>& values) {
    absl::StatusOr<LoopCode> code = Decode(name);
    ASSERT_TRUE(code.ok()) << name << ": " << code.status();
    const uint64_t at = Prepare(&*code);
    const Block block;
    const auto copy = MakeCopy(*code, SingleVariant(change), {at, Exits::kOriginalText, 0});
    ASSERT_TRUE(copy.ok()) << name << ": " << copy.status();
    block.Prepare(*copy);
    block.Word(kBlockIterationLimit) = ~uint64_t{0};
    const Outcome original = RunLoop(Find(name), values);
    std::copy(copy->bytes.begin(), copy->bytes.end(), Bytes(copy->address));
    const absl::StatusOr<PatchPlan> plan = PlanPatch(*code);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const Installed installed(*plan, copy->entry);
    EXPECT_EQ(RunLoop(Find(name), values), original) << name << " " << ChangeName(change);
  }
  // Functions of libm are what its makers made them: where one is no leaf, there is nothing to compare.
  bool IsTakenIn(const std::string& name) {
    const absl::StatusOr<LoopCode> code = Decode(name);
    return code.ok() && code->calls.empty();
  }
  std::string ReasonOf(const std::string& name) {
    const absl::StatusOr<LoopCode> code = Decode(name);
    return code.ok() ? code->leaves.refusals.at(0).second : std::string(code.status().message());
  }
  // Whether or not the page may be written.
  void WriteWord(uint64_t address, uint64_t value) const {
    std::vector<uint8_t> bytes(sizeof(value));
    std::memcpy(bytes.data(), &value, sizeof(value));
    EXPECT_TRUE(memory_.Write(address, bytes).ok());
  }
  int64_t& Word(const char* name) const { return *static_cast<int64_t*>(library_.Symbol(name)); }

  static inline Loop stopped_ = nullptr;

  Library library_;
  Memory memory_;
};

TEST_P(ImportsTest, AFunctionOfAnotherModuleBecomesPartOfTheLoop) {
  for (const char* name : kFar) {
    const absl::StatusOr<LoopCode> code = Decode(name);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_THAT(code->calls, IsEmpty()) << name;
    EXPECT_FALSE(code->leaves.far.empty());
    EXPECT_THAT(code->leaves.exits, SizeIs(1));
    EXPECT_THAT(code->excluded.texts, testing::ElementsAre(HasSubstr(" of imports_callee.so")));
    EXPECT_EQ(code->leaves.slots.size(), name == std::string("far_chain") ? 2u : 1u);
  }
}

// Otherwise the comparisons below compare nothing.
TEST_P(ImportsTest, FunctionsOfLibmAreTakenIn) {
  EXPECT_TRUE(IsTakenIn("log")) << ReasonOf("log");
  EXPECT_TRUE(IsTakenIn("expf"));
  EXPECT_TRUE(IsTakenIn("logf"));
  for (const char* name : kMath)
    if (!IsTakenIn(name)) printf("%s stays a call: %s\n", name, ReasonOf(name).c_str());
  // With frames, and functions that they call.
  EXPECT_TRUE(IsTakenIn("exp")) << ReasonOf("exp");
  EXPECT_TRUE(IsTakenIn("pow")) << ReasonOf("pow");
  EXPECT_TRUE(IsTakenIn("cbrt")) << ReasonOf("cbrt");
  // As glibc 2.36 has them.
  if (gnu_get_libc_version() == std::string("2.36")) {
    for (const char* name : {"sin", "cos", "erf", "hypot"})
      EXPECT_TRUE(IsTakenIn(name)) << name << ": " << ReasonOf(name);
  }
}

TEST_P(ImportsTest, WhatMayChangeOrHasNoPlaceInACopyStaysACall) {
  const auto reason = [this](const char* name) {
    const absl::StatusOr<LoopCode> code = Decode(name);
    EXPECT_TRUE(code.ok()) << code.status();
    EXPECT_THAT(code->calls, SizeIs(1)) << name;
    const auto copy = MakeCopy(*code, SingleVariant(Change::kRef), FixturePlace());
    return std::string(copy.status().message());
  };
  EXPECT_THAT(reason("far_writable"), HasSubstr("stays a call: 0x"));
  EXPECT_THAT(reason("far_writable"), HasSubstr("`mulsd"));
  EXPECT_THAT(reason("far_large"), HasSubstr("`sub $0x88, %rsp`"));
  EXPECT_THAT(reason("far_flags"), HasSubstr("flags of its stack pointer"));
  EXPECT_THAT(reason("far_caller"), HasSubstr("`mov (%rsp), %rax`"));
  EXPECT_THAT(reason("far_value"), HasSubstr("`cvtsi2sd"));
  EXPECT_THAT(reason("far_depths"), HasSubstr("stack pointer"));
  EXPECT_THAT(reason("far_endless"), HasSubstr("`call"));
}

TEST_P(ImportsTest, ASlotThatIsNotBoundLeadsNowhere) {
  LoopBytes bytes = BytesOf("far_leaf");
  ReadCalledCode(memory_, &bytes);
  ASSERT_FALSE(bytes.called.slots.empty());
  const uint64_t address = bytes.called.slots[0].address;
  const uint64_t bound = bytes.called.slots[0].value;
  for (const uint64_t elsewhere : {library_.cache(), address, uint64_t{0}, uint64_t{1} << 40}) {
    WriteWord(address, elsewhere);
    const absl::StatusOr<LoopCode> code = Decode("far_leaf");
    EXPECT_TRUE(code.ok()) << code.status();
    EXPECT_THAT(code->calls, SizeIs(1)) << elsewhere;
  }
  WriteWord(address, bound);
  EXPECT_THAT(Decode("far_leaf")->calls, IsEmpty());
}

TEST_P(ImportsTest, WhatThePartsWereIsLookedAtAgain) {
  const absl::StatusOr<LoopCode> code = Decode("far_leaf");
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_TRUE(Holds(memory_, CodeOf(*code)));
  const ImportSlot slot = code->leaves.slots.at(0);
  WriteWord(slot.address, slot.value + 1);
  EXPECT_FALSE(Holds(memory_, CodeOf(*code))) << "another function, since it was decoded";
  WriteWord(slot.address, slot.value);
  EXPECT_TRUE(Holds(memory_, CodeOf(*code)));
  const Constant constant = code->leaves.constants.at(0);
  std::vector<uint8_t> other = constant.bytes;
  other.back() ^= 1;
  ASSERT_TRUE(memory_.Write(constant.range.low, other).ok());
  EXPECT_FALSE(Holds(memory_, CodeOf(*code))) << "another constant";
  ASSERT_TRUE(memory_.Write(constant.range.low, constant.bytes).ok());
}

// It may lead elsewhere the next time that the loop is entered.
TEST_P(ImportsTest, APointerOfTheProgramIsNoWordOfTheLinkers) {
  for (const char* name : {"chosen", "through_chosen"}) {
    const absl::StatusOr<LoopCode> code = Decode(name);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_THAT(code->calls, SizeIs(1)) << name;
    EXPECT_THAT(code->leaves.slots, IsEmpty());
  }
}

TEST_P(ImportsTest, CopiesGiveTheSameBits) {
  for (const Change change : {Change::kRef, Change::kCount, Change::kTrace}) {
    for (const char* name : kFar) Compare(name, change, Usual());
    Compare("far_pushes", change, Usual());
    for (const char* name : kMath)
      if (IsTakenIn(name)) Compare(name, change, Usual());
  }
}

TEST_P(ImportsTest, RarePathsGiveTheSameBitsAndErrors) {
  for (const char* name : kFar) Compare(name, Change::kRef, Rare());
  for (const char* name : kMath)
    if (IsTakenIn(name)) Compare(name, Change::kRef, Rare());
}

// One value at a time, so that no error hides another.
TEST_P(ImportsTest, EachRareValueAlone) {
  for (const char* name : kMath) {
    if (!IsTakenIn(name)) continue;
    for (const double value : Rare()) Compare(name, Change::kRef, {2.5, value, 2.5});
  }
}

TEST_P(ImportsTest, WhoLeavesIsSeenToHaveBeenCalledByTheLoop) {
  for (const char* name : kFar) {
    absl::StatusOr<LoopCode> code = Decode(name);
    ASSERT_TRUE(code.ok()) << code.status();
    const uint64_t back = code->leaves.exits.at(0).returns.at(0).back;
    const uint64_t at = Prepare(&*code);
    const auto copy = MakeCopy(*code, SingleVariant(Change::kRef), {at, Exits::kOriginalText, 0});
    ASSERT_TRUE(copy.ok()) << copy.status();
    std::copy(copy->bytes.begin(), copy->bytes.end(), Bytes(copy->address));
    for (const AddressPair& pair : copy->address_map)
      EXPECT_FALSE(pair.original >= library_.cache() && pair.original < at)
          << "nobody is sent there";
    const Installed installed(*PlanPatch(*code), copy->entry);
    Word("far_left") = Word("far_back") = 0;
    RunLoop(Find(name), {1, 2, 9, 3, 7.5, -7});
    EXPECT_EQ(Word("far_left"), 2) << name;
    EXPECT_EQ(static_cast<uint64_t>(Word("far_back")), back);
  }
}

// In a shadow it ends the run, and is noted.
TEST_P(ImportsTest, ShadowsEndWhereALeafIsLeft) {
  for (const char* name : kFar) {
    absl::StatusOr<LoopCode> code = Decode(name);
    ASSERT_TRUE(code.ok()) << code.status();
    const uint64_t at = Prepare(&*code);
    const Block block;
    const ExitStub stub(library_.stub());
    const auto count =
        MakeCopy(*code, SingleVariant(Change::kCount), {at, Exits::kStub, stub.address()});
    ASSERT_TRUE(count.ok()) << count.status();
    block.Prepare(*count);
    block.Word(kBlockIterationLimit) = ~uint64_t{0};
    std::copy(count->bytes.begin(), count->bytes.end(), Bytes(count->address));
    const Installed installed(*PlanPatch(*code), count->entry);
    Word("far_left") = 0;
    stopped_ = Find(name);
    ExitStub::Run([](Arrays* /*arrays*/, long /*trips*/) -> double {
      RunLoop(stopped_, {1, 2, 9, 3});
      return 0;
    });
    EXPECT_EQ(block.Word(kBlockIterations), 3u) << name;
    EXPECT_EQ(block.Word(kBlockExcludedPath), 1u);
    EXPECT_EQ(Word("far_left"), 0);
  }
}

// What the function writes on a rare path, errno, no trace would show to be apart from what the loop reads: it is left there. And
// nothing that the loop stores is a constant of another module.
TEST_P(ImportsTest, ArithmeticOfAFunctionIsFreeOnceAccessesAreApart) {
  const absl::StatusOr<LoopCode> code = Decode("log");
  ASSERT_TRUE(code.ok()) << code.status();
  const std::optional<LoopCode> apart = TakeApart(*code);
  ASSERT_TRUE(apart.has_value());
  EXPECT_THAT(*apart->taken_apart, SizeIs(1)) << "the loop's own store and load";
  for (size_t n = 0; n < apart->roles.size(); ++n) {
    const LoopInstruction& i = apart->instructions[n];
    const bool fused = i.Is(kFloating) && i.mnemonic.find("fm") != std::string::npos;
    EXPECT_FALSE(fused && apart->roles[n].fixed()) << i.text;
  }
}

// Passes are those of the loop, and shadows note that a leaf was left.
TEST_P(ImportsTest, VariantsMakeAsManyPasses) {
  std::vector<std::string> names(std::begin(kFar), std::end(kFar));
  for (const char* name : kMath)
    if (IsTakenIn(name)) names.emplace_back(name);
  for (const std::string& name : names) {
    absl::StatusOr<LoopCode> code = Decode(name);
    ASSERT_TRUE(code.ok()) << code.status();
    const uint64_t at = Prepare(&*code);
    const Block block;
    for (const char* text : kVariants) {
      VariantName variant = *ParseVariantName(text);
      variant.parts.push_back({Change::kCount});
      const auto copy = MakeCopy(*code, variant, {at, Exits::kOriginalText, 0});
      if (!copy.ok()) continue;
      block.Prepare(*copy);
      block.Word(kBlockIterationLimit) = ~uint64_t{0};
      std::copy(copy->bytes.begin(), copy->bytes.end(), Bytes(copy->address));
      const Installed installed(*PlanPatch(*code), copy->entry);
      RunLoop(Find(name), Usual());
      EXPECT_EQ(block.Word(kBlockIterations), Usual().size()) << name << " " << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compilers, ImportsTest, testing::ValuesIn({PERFD_IMPORTS_LIBRARIES}),
                         LibraryTestName);

}  // namespace
}  // namespace perfd::agent
