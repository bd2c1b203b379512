// Chains through compiled loop nests. Oracles: REF gives the same bits however many instances a chain may run; every variant
// goes round as often as the original; the thread block says how many instances were run.
#include "agent/variant/batch.h"

#include <cmath>
#include <cstdio>
#include <map>

#include "absl/strings/match.h"
#include "agent/variant/counting.h"
#include "tests/unit/variant/compiled_library.h"

namespace perfd::agent {
namespace {

constexpr const char* kNests[] = {"rows", "pairs", "walk", "matrix", "last"};
constexpr int64_t kUnlimited = int64_t{1} << 40;

class BatchTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    runs_ = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (absl::StrContains(GetParam(), "avx512"))
      runs_ = runs_ && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  }

  struct Ran {
    Result result;
    uint64_t passes = 0;
    int64_t left = 0;  // instances
    uint64_t entered = 0;
  };

  Ran Run(const CodeCopy& copy, const PatchPlan& plan, Kernel kernel, int64_t instances) {
    const Block block;
    block.Prepare(copy);
    block.Word(kBlockInstancesLeft) = static_cast<uint64_t>(instances - 1);
    block.Word(kBlockInstanceSeen) = static_cast<uint64_t>(instances);
    std::copy(copy.bytes.begin(), copy.bytes.end(), Bytes(copy.address));
    const Installed installed(plan, copy.entry);
    Ran ran;
    ran.result = RunKernel(kernel);
    ran.passes = block.Word(kBlockIterations);
    ran.entered = block.Word(kBlockInstancesEntered);
    ran.left = static_cast<int64_t>(block.Word(kBlockInstancesLeft));
    return ran;
  }

  // Passes through the header, each instance for itself; some loops a compiler makes are never entered.
  uint64_t Passes(const BatchCode& batch, const PatchPlan& plan, Kernel kernel, CopyTarget where) {
    const auto alone = MakeCopy(batch.loop, SingleVariant(Change::kCount), where);
    EXPECT_TRUE(alone.ok()) << alone.status();
    return runs_ && alone.ok() ? Run(*alone, plan, kernel, 1).passes : 0;
  }

  void CheckRef(const BatchCode& batch, const PatchPlan& plan, Kernel kernel, CopyTarget where) {
    const bool entered = Passes(batch, plan, kernel, where) > 0;
    const auto ref = MakeBatchCopy(batch, SingleVariant(Change::kRef), where);
    ASSERT_TRUE(ref.ok()) << ref.status();
    EXPECT_TRUE(ref->changed.empty());
    // decq %gs:kBlockInstancesLeft
    const std::vector<uint8_t> count = {0x65, 0x48, 0xff, 0x0c, 0x25, kBlockInstancesLeft, 0, 0, 0};
    ASSERT_GE(ref->places.turn, ref->address);
    ASSERT_LE(ref->places.turn + count.size(), ref->address + ref->bytes.size());
    const auto turn = ref->bytes.begin() + static_cast<int64_t>(ref->places.turn - ref->address);
    EXPECT_TRUE(std::equal(count.begin(), count.end(), turn));
    if (!runs_) return;
    const Result original = RunKernel(kernel);
    for (const int64_t instances : {int64_t{1}, int64_t{2}, int64_t{7}, kUnlimited}) {
      const Ran ran = Run(*ref, plan, kernel, instances);
      EXPECT_EQ(ran.result, original) << instances;
      EXPECT_TRUE(!entered || ran.left < instances - 1) << instances << " " << ran.left;
      entered_ += entered && ran.left < kUnlimited - 20 ? 1 : 0;
    }
  }

  void CheckVariants(const BatchCode& batch, const PatchPlan& plan, Kernel kernel,
                     CopyTarget where) {
    const uint64_t passes = Passes(batch, plan, kernel, where);
    const auto trace = MakeBatchCopy(batch, SingleVariant(Change::kTrace), where);
    ASSERT_TRUE(trace.ok()) << trace.status();
    EXPECT_GE(trace->references.size(), References(batch.loop).size());
    for (const char* text : kVariants) {
      VariantName name = *ParseVariantName(text);
      if (name.Has(Change::kGroup) && batch.loop.groups == 0) continue;
      name.parts.push_back({Change::kCount});
      const auto copy = MakeBatchCopy(batch, name, where);
      ++(copy.ok() ? copies_ : refused_copies_);
      if (!copy.ok()) ++reasons_[absl::StrCat(text, ": ", copy.status().message())];
      if (!copy.ok() || !runs_) continue;
      EXPECT_EQ(Run(*copy, plan, kernel, kUnlimited).passes, passes) << text;
      EXPECT_EQ(Run(*copy, plan, kernel, 5).passes, passes) << text;
    }
  }

  // Elements that the kernel stores to: each store is far from what was there.
  static std::vector<bool> Written(const Result& result) {
    const Content before = Content::Make();
    std::vector<bool> written;
    for (size_t i = 0; i < result.c.size(); ++i)
      written.push_back(std::abs(result.c[i] - before.c[i]) > 1e-9);
    return written;
  }

  // Whatever a variant computes, the code around stores where it always does.
  void CheckStores(const BatchCode& batch, const PatchPlan& plan, Kernel kernel, CopyTarget where) {
    if (!runs_) return;
    const std::vector<bool> original = Written(RunKernel(kernel));
    for (const char* text : kVariants) {
      const VariantName name = *ParseVariantName(text);
      if (name.Has(Change::kGroup) && batch.loop.groups == 0) continue;
      const auto copy = MakeBatchCopy(batch, name, where);
      if (!copy.ok()) continue;
      EXPECT_EQ(Written(Run(*copy, plan, kernel, kUnlimited).result), original) << text;
    }
  }

  // Empty rows are turns of the loop around, but no instances.
  void CheckEntered(const BatchCode& batch, const PatchPlan& plan, Kernel kernel,
                    CopyTarget where) {
    const auto copy = MakeBatchCopy(batch, SingleVariant(Change::kCount), where);
    ASSERT_TRUE(copy.ok()) << copy.status();
    const Content content = Content::Make();
    uint64_t rows = 0;
    for (size_t i = 0; i < kTrips; ++i) rows += (content.small[i] & 7) > 0 ? 1 : 0;
    EXPECT_EQ(Run(*copy, plan, kernel, kUnlimited).entered, rows);
  }

  // Where the rows begin and end comes from memory, and each row's sum goes to memory: that they could be the same memory must
  // not make the whole row part of what decides the branches.
  // Where a gather takes its indices from a vector load, that load might be of the same type: not told apart.
  static void CheckWork(const BatchCode& batch, CopyTarget where) {
    const auto& code = batch.around.instructions;
    if (std::any_of(code.begin(), code.end(),
                    [](const LoopInstruction& i) { return i.Is(kGathers); }))
      return;
    for (const char* name : {"LS", "FP", "DL1", "CTRL"}) {
      const auto copy = MakeBatchCopy(batch, *ParseVariantName(name), where);
      ASSERT_TRUE(copy.ok()) << name << copy.status();
      EXPECT_GE(copy->changed.size(), 1u) << name;
      if (absl::string_view(name) == "LS") {
        EXPECT_EQ(copy->edits.kept, 0);
      }
    }
  }

  void CheckNest(const Library::Nest& nest, Kernel kernel, uint64_t cache) {
    const auto code = DecodeLoop(nest.inner);
    const auto plan = code.ok() ? PlanPatch(*code) : code.status();
    if (!plan.ok()) return;
    const auto batch = DecodeBatch(*code, nest.around);
    ++(batch.ok() ? batches_ : refused_batches_);
    if (!batch.ok()) ++reasons_[std::string(batch.status().message())];
    if (!batch.ok()) return;
    const CopyTarget where = {cache, Exits::kOriginalText, 0};
    CheckRef(*batch, *plan, kernel, where);
    CheckVariants(*batch, *plan, kernel, where);
    if (kernel_ == "last") CheckStores(*batch, *plan, kernel, where);
    if (kernel_ == "rows") CheckWork(*batch, where);
    const bool scalar = absl::StrContains(GetParam(), "o2-sse");
    if (kernel_ == "rows" && scalar && runs_) CheckEntered(*batch, *plan, kernel, where);
  }

  bool runs_ = false;
  std::string kernel_;
  int entered_ = 0;  // runs of chains that went on over many instances
  int batches_ = 0, refused_batches_ = 0, copies_ = 0, refused_copies_ = 0;
  std::map<std::string, int> reasons_;
};

TEST_P(BatchTest, ChainsComputeWhatTheLoopsCompute) {
  Library library(PathOf(GetParam()));
  for (const char* name : kNests) {
    SCOPED_TRACE(name);
    kernel_ = name;
    const Kernel kernel = library.Find(name);
    if (kernel == nullptr) continue;  // Fortran has some of them
    for (const Library::Nest& nest : library.Nests(kernel)) {
      if (!nest.around.function.empty()) CheckNest(nest, kernel, library.cache());
    }
  }
  for (const auto& [reason, count] : reasons_) std::printf("  %d x %s\n", count, reason.c_str());
  std::printf("  %d chains, %d refused; %d copies, %d refused\n", batches_, refused_batches_,
              copies_, refused_copies_);
  if (absl::StrContains(GetParam(), "fortran")) return;
  EXPECT_GE(batches_, 2);
  EXPECT_TRUE(!runs_ || entered_ >= 2) << entered_;
  EXPECT_LE(refused_batches_, batches_);
  EXPECT_LE(refused_copies_ * 5, copies_);
}

INSTANTIATE_TEST_SUITE_P(Compilers, BatchTest, testing::Values(PERFD_VARIANT_LIBRARIES),
                         LibraryTestName);

}  // namespace
}  // namespace perfd::agent
