// Loops as gcc and clang write them: found in the library's own ELF file, copied, installed over their headers and run.
// Oracles: REF gives the same bits; every variant goes round as often as the original.
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "tests/unit/variant/compiled_library.h"

namespace perfd::agent {
namespace {

struct Tally {
  int loops = 0;
  int refused_loops = 0;
  int repeated = 0;  // loops inside went round more often than the loop
  int copies = 0;
  int refused_copies = 0;
  std::map<std::string, int> reasons;
};

class CompiledTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string name = GetParam();
    runs_ = !absl::StrContains(name, "avx512") ||
            (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"));
    runs_ = runs_ && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  }

  void CheckRef(const LoopCode& code, const PatchPlan& plan, Kernel kernel, uint64_t target) {
    const auto ref = MakeCopy(code, SingleVariant(Change::kRef), {target, Exits::kOriginalText, 0});
    ASSERT_TRUE(ref.ok()) << ref.status();
    EXPECT_TRUE(ref->same_layout);
    if (!runs_) return;
    const Result original = RunKernel(kernel);
    std::copy(ref->bytes.begin(), ref->bytes.end(), Bytes(ref->address));
    const Installed installed(plan, ref->entry);
    EXPECT_EQ(RunKernel(kernel), original);
  }

  // Passes through the header of a counted copy, and through those of loops inside.
  std::pair<uint64_t, uint64_t> Passes(const CodeCopy& copy, const PatchPlan& plan, Kernel kernel,
                                       const Block& block) {
    block.Prepare(copy);
    block.Word(kBlockIterationLimit) = ~uint64_t{0};
    std::copy(copy.bytes.begin(), copy.bytes.end(), Bytes(copy.address));
    const Installed installed(plan, copy.entry);
    stub_ ? ExitStub::Run(kernel) : static_cast<void>(RunKernel(kernel));
    return {block.Word(kBlockIterations), block.Word(kBlockInnerPasses)};
  }

  void CheckVariants(const LoopCode& code, const PatchPlan& plan, Kernel kernel, uint64_t target) {
    const Block block;
    const CopyTarget live = {target, Exits::kOriginalText, 0};
    const CopyTarget where = stub_ ? CopyTarget{target, Exits::kStub, stub_->address()} : live;
    const auto count = MakeCopy(code, SingleVariant(Change::kCount), where);
    ASSERT_TRUE(count.ok()) << count.status();
    const auto passes =
        runs_ ? Passes(*count, plan, kernel, block) : std::pair<uint64_t, uint64_t>();
    tally_.repeated += passes.second > passes.first ? 1 : 0;
    for (const char* text : kVariants) {
      VariantName name = *ParseVariantName(text);
      if (name.Has(Change::kGroup) && code.groups == 0) continue;
      name.parts.push_back({Change::kCount});
      const auto copy = MakeCopy(code, name, where);
      ++(copy.ok() ? tally_.copies : tally_.refused_copies);
      if (!copy.ok()) ++tally_.reasons[absl::StrCat(text, ": ", copy.status().message())];
      if (!copy.ok() || !runs_) continue;
      EXPECT_EQ(Passes(*copy, plan, kernel, block), passes) << text;
    }
    const auto trace = MakeCopy(code, SingleVariant(Change::kTrace), live);
    ASSERT_TRUE(trace.ok()) << trace.status();
    for (const Reference& r : trace->references) EXPECT_TRUE(r.traced);
    if (!runs_) return;
    const auto traced = Passes(*trace, plan, kernel, block);
    EXPECT_TRUE(stub_ || traced == passes);
    CheckTrace(*trace, plan, kernel, block);
  }

  // TRACE changes no result, and every address it notes lies in something the kernel may touch.
  void CheckTrace(const CodeCopy& trace, const PatchPlan& plan, Kernel kernel, const Block& block) {
    const Result original = RunKernel(kernel);
    block.Prepare(trace);
    auto* records = reinterpret_cast<TraceRecord*>(block.address() + kBlockTrace);
    for (size_t n = 0; n < trace.references.size(); ++n) records[n] = {~uint64_t{0}, 0, 0, 0};
    const Installed installed(plan, trace.entry);
    EXPECT_EQ(RunKernel(kernel), original);
    for (size_t n = 0; n < trace.references.size(); ++n) {
      const TraceRecord& r = records[n];
      if (r.count == 0) continue;
      EXPECT_LE(r.lowest, r.first);
      EXPECT_LE(r.first, r.highest);
      // A list is entered through its head, which lies elsewhere.
      const bool list = kernel_ == "chase" || kernel_ == "list";
      EXPECT_TRUE(list || r.highest - r.lowest < kElements * sizeof(Node)) << "one array holds it";
    }
  }

  void CheckLoop(const LoopBytes& bytes, Kernel kernel, uint64_t target) {
    ++tally_.loops;
    const auto code = DecodeLoop(bytes);
    const auto plan = code.ok() ? PlanPatch(*code) : code.status();
    if (!plan.ok()) {
      ++tally_.refused_loops;
      ++tally_.reasons[std::string(plan.status().message())];
      return;
    }
    CheckRef(*code, *plan, kernel, target);
    CheckVariants(*code, *plan, kernel, target);
  }

  static bool IsFortran() { return absl::StrContains(GetParam(), "fortran"); }

  bool runs_ = false;
  std::optional<ExitStub> stub_;  // of copies that are run as in a shadow
  std::string kernel_;
  Tally tally_;
};

TEST_P(CompiledTest, CopiesOfCompiledLoopsBehave) {
  Library library(PathOf(GetParam()));
  for (const char* name : kKernels) {
    SCOPED_TRACE(name);
    kernel_ = name;
    const Kernel kernel = library.Find(name);
    if (kernel == nullptr && IsFortran()) continue;  // it has some of them
    ASSERT_NE(kernel, nullptr);
    const std::vector<LoopBytes> loops = library.Loops(kernel);
    EXPECT_FALSE(loops.empty());
    for (const LoopBytes& loop : loops) CheckLoop(loop, kernel, library.cache());
  }
  for (const auto& [reason, count] : tally_.reasons)
    std::printf("  %d x %s\n", count, reason.c_str());
  std::printf("  %d loops, %d refused; %d copies, %d refused%s\n", tally_.loops,
              tally_.refused_loops, tally_.copies, tally_.refused_copies,
              runs_ ? "" : "; not run: the CPU lacks the instructions");
  EXPECT_GE(tally_.loops, IsFortran() ? 4 : 22);
  EXPECT_LE(tally_.refused_loops * 10, tally_.loops) << "nine loops in ten can be copied";
  EXPECT_LE(tally_.refused_copies * 10, tally_.copies) << "and nine variants in ten";
}

TEST_P(CompiledTest, CopiesOfLoopsThatHoldOthersBehave) {
  Library library(PathOf(GetParam()));
  stub_.emplace(library.stub());
  for (const char* name : kKernels) {
    SCOPED_TRACE(name);
    kernel_ = name;
    const Kernel kernel = library.Find(name);
    for (const LoopBytes& loop : library.Outers(kernel)) {
      const auto code = DecodeLoop(loop);
      if (code.ok()) {
        EXPECT_FALSE(code->inner.empty());
      }
      CheckLoop(loop, kernel, library.cache());
    }
  }
  for (const auto& [reason, count] : tally_.reasons)
    std::printf("  %d x %s\n", count, reason.c_str());
  std::printf("  %d loops, %d refused; %d copies, %d refused\n", tally_.loops, tally_.refused_loops,
              tally_.copies, tally_.refused_copies);
  if (IsFortran()) return;
  EXPECT_GE(tally_.loops, 5);
  EXPECT_TRUE(!runs_ || tally_.repeated >= 4) << tally_.repeated;
  EXPECT_LE(tally_.refused_loops * 10, tally_.loops) << "nine loops in ten can be copied";
  EXPECT_LE(tally_.refused_copies * 10, tally_.copies) << "and nine variants in ten";
}

INSTANTIATE_TEST_SUITE_P(Compilers, CompiledTest, testing::Values(PERFD_VARIANT_LIBRARIES),
                         LibraryTestName);

}  // namespace
}  // namespace perfd::agent
