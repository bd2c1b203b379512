#include "agent/experiment/preparation.h"

#include <cpuid.h>
#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agent/experiment/plan/next_stage.h"
#include "agent/experiment/text_scan.h"
#include "agent/variant/flow/leaf_pool.h"
#include "agent/variant/patch_plan.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

// Names that cannot be parsed were refused when the request was read; here they only cost themselves.
std::vector<VariantName> ParseAll(const std::vector<std::string>& texts) {
  std::vector<VariantName> names;
  for (const std::string& text : texts) {
    if (auto name = ParseVariantName(text); name.ok()) names.push_back(*std::move(name));
  }
  return names;
}

// What later stages measure without being asked (core/analysis/verdict.cc): which group of accesses costs, where stores are
// in question; whether divisions and reductions hide each other, where both are.
void AddStageVariants(LoopToInject* loop) {
  const auto asks = [loop](Change change) {
    return std::find(loop->variants.begin(), loop->variants.end(), SingleVariant(change)) !=
           loop->variants.end();
  };
  const auto add = [loop](const VariantName& name) {
    if (std::find(loop->variants.begin(), loop->variants.end(), name) == loop->variants.end())
      loop->variants.push_back(name);
  };
  if (asks(Change::kNoDiv) && asks(Change::kNoRed))
    add(VariantName{{{Change::kNoDiv}, {Change::kNoRed}}});
  const bool stores = asks(Change::kS2l) || asks(Change::kNoStore);
  for (int k = 0; stores && loop->code.groups > 1 && k < std::min(loop->code.groups, kMostGroups);
       ++k)
    add(SingleVariant(Change::kGroup, k));
}

struct Moment {
  uint64_t ticks = 0;
  int64_t ns = 0;
};

// The closest of a few readings: an interruption between the two clocks would skew the rate.
Moment Now() {
  Moment best;
  uint64_t least = ~uint64_t{0};
  for (int i = 0; i < 16; ++i) {
    timespec ts{};
    const uint64_t before = __rdtsc();
    clock_gettime(CLOCK_MONOTONIC, &ts);
    const uint64_t after = __rdtsc();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + (after - before) / 2, ts.tv_sec * kNsPerSecond + ts.tv_nsec};
  }
  return best;
}

const LoopFacts* LoopAt(const FunctionFacts& function, uint64_t header) {
  const auto loop = std::find_if(function.loops.begin(), function.loops.end(),
                                 [&](const LoopFacts& facts) { return facts.header == header; });
  return loop == function.loops.end() ? nullptr : &*loop;
}

// Which loops of the function lie in `outer`, one of them, itself included. Functions with thousands of loops exist.
std::vector<bool> LoopsWithin(const FunctionFacts& function, const LoopFacts& outer) {
  std::vector<bool> within(function.loops.size());
  std::vector<bool> known(function.loops.size());
  const auto self = static_cast<size_t>(&outer - function.loops.data());
  within[self] = known[self] = true;
  if (outer.innermost) return within;
  absl::flat_hash_map<uint64_t, size_t> index(function.loops.size());
  for (size_t n = 0; n < function.loops.size(); ++n) index.emplace(function.loops[n].header, n);
  for (size_t n = 0; n < function.loops.size(); ++n) {
    std::vector<size_t> path;
    bool result = false;
    for (size_t at = n;;) {
      if (known[at]) {
        result = within[at];
        break;
      }
      known[at] = true;  // a ring of parents ends here, outside
      path.push_back(at);
      const auto parent = index.find(function.loops[at].parent_header);
      if (parent == index.end()) break;
      at = parent->second;
    }
    for (const size_t at : path) within[at] = result;
  }
  return within;
}

uint64_t SizeOf(const FunctionFacts& function) {
  uint64_t size = 0;
  for (const CodeRange& part : PartsOf(function)) size += part.high - part.low;
  return size;
}

absl::StatusOr<std::vector<CodeText>> ReadText(const LoopSite& place, const Memory& memory) {
  std::vector<CodeText> text;
  for (const CodeRange& part : PartsOf(place.function)) {
    const uint64_t address = (ElfAddress(part.low) + place.bias).value();
    ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, memory.Read(address, part.high - part.low));
    text.push_back({address, std::move(bytes)});
  }
  return text;
}

// Without the text. The loops it holds included.
LoopBytes BytesOf(const FunctionFacts& function, const LoopFacts& loop, LoadBias bias) {
  const auto run_time = [&](ElfAddress address) { return (address + bias).value(); };
  LoopBytes bytes;
  bytes.bias = bias;
  bytes.header = run_time(loop.header);
  const std::vector<bool> within = LoopsWithin(function, loop);
  for (const LoopSpan& span : function.spans) {
    if (span.loop < within.size() && within[span.loop])
      bytes.body.push_back({run_time(span.low), run_time(span.high)});
  }
  return bytes;
}

// What lies between two instances of the loop, if copies can hold it. `text`: of the whole function.
absl::StatusOr<BatchCode> PrepareBatch(const LoopSite& place, const LoopCode& code,
                                       const std::vector<CodeText>& text) {
  const FunctionFacts& function = place.function;
  const LoopFacts* loop = LoopAt(function, place.target.header);
  const LoopFacts* around =
      loop == nullptr || loop->parent_header == 0 ? nullptr : LoopAt(function, loop->parent_header);
  if (around == nullptr) return absl::NotFoundError("no loop is around it in its function");
  if (around->irreducible)
    return absl::FailedPreconditionError("the loop around it has several entries");
  LoopBytes bytes = BytesOf(function, *around, place.bias);
  bytes.function = text;
  return DecodeBatch(code, bytes);
}

// A loop with loops inside stands in their way: what is installed of it leaves them none of their own. So it is refused before,
// rather than when its copies are made.
absl::Status CheckCopies(LoopCode loop) {
  RETURN_IF_ERROR(PlanPatch(loop).status());
  constexpr uint64_t kNear = 64u << 20;
  constexpr uint64_t kCacheLine = 64;
  const CopyTarget target{loop.header + kNear, Exits::kStub, loop.header + kNear};
  UseLeafPool(kNear + loop.header / kCacheLine * kCacheLine, &loop);
  for (const Change change : {Change::kRef, Change::kCount, Change::kTrace})
    RETURN_IF_ERROR(MakeCopy(loop, SingleVariant(change), target).status());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoopBytes> LocateLoop(const LoopSite& place) {
  const FunctionFacts& function = place.function;
  const LoopFacts* loop = LoopAt(function, place.target.header);
  if (loop == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("the loop is not in function ", function.name));
  if (loop->irreducible)
    return absl::FailedPreconditionError(
        "the loop can be entered at more than one place (irreducible)");
  if (SizeOf(function) > kMaxFunctionBytes)
    return absl::FailedPreconditionError(
        absl::StrCat("function ", function.name, " is longer than 4 MB"));
  return BytesOf(function, *loop, place.bias);
}

absl::StatusOr<LoopToInject> PrepareLoop(const LoopSite& place,
                                         const std::vector<std::string>& variants,
                                         const Memory& memory) {
  if (!place.refusal.empty()) return absl::FailedPreconditionError(place.refusal);
  ASSIGN_OR_RETURN(LoopBytes bytes, LocateLoop(place));
  ASSIGN_OR_RETURN(bytes.function, ReadText(place, memory));
  ReadCalledCode(memory, &bytes);
  LoopToInject loop;
  loop.loop_id = place.target.loop_id;
  loop.moved = place.moved;
  loop.variants = ParseAll(variants);
  ASSIGN_OR_RETURN(loop.code, DecodeLoop(bytes));
  loop.batch = PrepareBatch(place, loop.code, bytes.function);
  loop.apart = TakeApart(loop.code);
  if (loop.batch.ok()) loop.batch_apart = TakeApart(*loop.batch);
  AddStageVariants(&loop);
  if (NeedsFarBranches(loop.code)) {
    ASSIGN_OR_RETURN(loop.code.far_branches, FindFarBranches(loop.code, memory));
  }
  if (!loop.code.inner.empty()) RETURN_IF_ERROR(CheckCopies(loop.code));
  return loop;
}

// Source: Intel SDM vol. 3, 18.17.1 (invariant TSC): CPUID 80000007H, EDX bit 8.
bool TscIsInvariant() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
}

double MeasureTicksPerNs() {
  if (!TscIsInvariant()) return 0;
  const Moment begin = Now();
  absl::SleepFor(absl::Milliseconds(20));
  const Moment end = Now();
  if (end.ns <= begin.ns || end.ticks <= begin.ticks) return 0;
  return static_cast<double>(end.ticks - begin.ticks) / static_cast<double>(end.ns - begin.ns);
}

}  // namespace perfd::agent
