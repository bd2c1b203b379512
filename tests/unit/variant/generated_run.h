// tests/unit/variant/generated_run.h - one generated loop at a time, run natively as it is and as copies of it.
//
// Shape    Next() makes a loop, its start state and its LoopCode; Run() starts code from that state and tells what came of it.
//          The thread block is what a shadow would find: controlled operands, self pointers, an iteration limit.
#ifndef TESTS_UNIT_VARIANT_GENERATED_RUN_H_
#define TESTS_UNIT_VARIANT_GENERATED_RUN_H_

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cstring>
#include <string>
#include <vector>

#include "agent/variant/copy.h"
#include "agent/variant/thread_block.h"
#include "tests/unit/variant/loop_generator.h"
#include "tests/unit/variant/variant_names.h"

namespace perfd::agent {

struct Outcome {
  MachineState state;
  std::vector<uint8_t> memory;
  uint32_t exit = 0;
  uint64_t passes = 0;  // of copies that count
  uint64_t inner_passes = 0;

  // Whatever the copy computes, these are the loop's own: exit, index and counter.
  bool SamePath(const Outcome& other) const {
    return exit == other.exit && state.general[kLoopIndex] == other.state.general[kLoopIndex] &&
           state.general[kLoopCounter] == other.state.general[kLoopCounter];
  }
  bool SameResults(const Outcome& other) const {
    return state == other.state && memory == other.memory;
  }
};

// The flags that the architecture defines for every instruction the generator uses, AF excepted.
inline constexpr uint64_t kCompared = 0x8c5;
inline constexpr uint64_t kNoLimit = ~uint64_t{0};
// Source: Intel SDM vol. 1, 10.2.3 (MXCSR): FTZ is bit 15, DAZ bit 6.
inline constexpr unsigned kFlushDenormals = 0x8040;

// All that a generated loop can be asked for, and combinations.
inline std::vector<VariantName> GeneratedVariants() {
  return {SingleVariant(Change::kLs),          SingleVariant(Change::kFp),
          SingleVariant(Change::kDl1),         SingleVariant(Change::kNoDiv),
          SingleVariant(Change::kNoSqrt),      SingleVariant(Change::kNoRed),
          SingleVariant(Change::kS2l),         SingleVariant(Change::kNoStore),
          SingleVariant(Change::kGroup),       SingleVariant(Change::kPrefetch, 60),
          SingleVariant(Change::kCtrl),        SingleVariant(Change::kRefFtz),
          SingleVariant(Change::kRefCtl),      {{{Change::kLs}, {Change::kDl1}}},
          {{{Change::kFp}, {Change::kNoRed}}}, {{{Change::kNoDiv}, {Change::kNoSqrt}}}};
}

inline std::string EncodingName(const testing::TestParamInfo<Floats>& test) {
  constexpr const char* kNames[] = {"Integers", "Sse", "Vex", "Evex"};
  return kNames[static_cast<int>(test.param)];
}

class GeneratedRun : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasAvx2()) GTEST_SKIP() << "the generated loops need AVX2";
  }

  void Next(Floats floats = Floats::kNone, Nest nest = Nest::kNone) {
    loop_ = GenerateLoop(arena_, &random_, floats, nest);
    start_ = GenerateState(arena_, loop_, &random_, floats);
    const auto bytes = arena_.Bytes(arena_.data(), Arena::kDataBytes);
    memory_.assign(bytes.begin(), bytes.end());
    auto code = DecodeLoop(loop_.bytes);
    ASSERT_TRUE(code.ok()) << code.status();
    code_ = *std::move(code);
  }

  Outcome Run(uint64_t target, uint64_t limit = kNoLimit, bool flush_denormals = false) {
    arena_.Write(arena_.data(), memory_);
    arena_.At<uint32_t>(arena_.exit_id()) = 0;
    arena_.At<uint64_t>(arena_.block() + kBlockIterations) = 0;
    arena_.At<uint64_t>(arena_.block() + kBlockPath) = 0;
    arena_.At<uint64_t>(arena_.block() + kBlockInnerPasses) = 0;
    arena_.At<uint64_t>(arena_.block() + kBlockIterationLimit) = limit;
    Outcome outcome;
    outcome.state = start_;
    const unsigned mode = _mm_getcsr();
    if (flush_denormals) _mm_setcsr(mode | kFlushDenormals);
    arena_.Run(target, &outcome.state);
    _mm_setcsr(mode);
    outcome.state.flags &= kCompared;
    const auto bytes = arena_.Bytes(arena_.data(), Arena::kDataBytes);
    outcome.memory.assign(bytes.begin(), bytes.end());
    outcome.exit = arena_.At<uint32_t>(arena_.exit_id());
    outcome.passes = arena_.At<uint64_t>(arena_.block() + kBlockIterations);
    outcome.inner_passes = arena_.At<uint64_t>(arena_.block() + kBlockInnerPasses);
    return outcome;
  }

  Outcome RunCopy(const CodeCopy& copy, uint64_t limit = kNoLimit) {
    Prepare(copy);
    arena_.Write(copy.address, copy.bytes);
    return Run(copy.entry, limit, copy.flush_denormals);
  }

  absl::StatusOr<CodeCopy> Copy(const VariantName& name) {
    return MakeCopy(code_, name, {arena_.copy(), Exits::kOriginalText, 0});
  }
  // As shadows run them: every exit, and the limit, leads to the stub.
  absl::StatusOr<CodeCopy> StubCopy(const VariantName& name) {
    return MakeCopy(code_, name, {arena_.copy(), Exits::kStub, loop_.stub});
  }

  Arena arena_;
  std::mt19937 random_{2015};
  GeneratedLoop loop_;
  MachineState start_;
  std::vector<uint8_t> memory_;
  LoopCode code_;

 private:
  void Prepare(const CodeCopy& copy) {
    for (uint32_t i = 0; i < 64; i += 8) {
      arena_.At<double>(arena_.block() + kControlDividendF64 + i) = 1.7320508075688772;
      arena_.At<double>(arena_.block() + kControlDivisorF64 + i) = 1.4142135623730951;
    }
    for (uint32_t i = 0; i < 64; i += 4) {
      arena_.At<float>(arena_.block() + kControlDividendF32 + i) = 1.7320508F;
      arena_.At<float>(arena_.block() + kControlDivisorF32 + i) = 1.4142135F;
    }
    for (uint32_t n = 0; n < kTraceCount; ++n)
      arena_.At<TraceRecord>(arena_.block() + kBlockTrace + n * sizeof(TraceRecord)) = {kNoLimit, 0,
                                                                                        0, 0};
    for (const SelfPointer& p : copy.self_pointers)
      arena_.At<uint64_t>(arena_.block() + p.word) =
          arena_.block() + static_cast<uint64_t>(p.value);
  }
};

}  // namespace perfd::agent

#endif  // TESTS_UNIT_VARIANT_GENERATED_RUN_H_
