// Machine code to copies: whatever the bytes, a loop is refused or its copies keep what they promise.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "agent/variant/copy.h"
#include "agent/variant/patch_plan.h"

namespace {

constexpr perfd::Change kChanges[] = {
    perfd::Change::kRef,   perfd::Change::kCount,  perfd::Change::kTrace,  perfd::Change::kLs,
    perfd::Change::kFp,    perfd::Change::kDl1,    perfd::Change::kNoDiv,  perfd::Change::kNoSqrt,
    perfd::Change::kNoRed, perfd::Change::kNoCall, perfd::Change::kS2l,    perfd::Change::kNoStore,
    perfd::Change::kGroup, perfd::Change::kCtrl,   perfd::Change::kRefFtz, perfd::Change::kRefCtl};

void Check(bool condition) {
  if (!condition) std::abort();
}

void CheckCopy(const perfd::agent::LoopCode& loop, const perfd::VariantName& name) {
  const perfd::agent::CopyTarget target = {0x700000, perfd::agent::Exits::kStub, 0x6f0000};
  const auto copy = perfd::agent::MakeCopy(loop, name, target);
  if (!copy.ok()) return;
  Check(copy->address >= target.address);
  Check(copy->address - target.address + copy->bytes.size() <= perfd::agent::CopyBound(loop, name));
  Check(copy->entry >= copy->address && copy->entry < copy->address + copy->bytes.size());
  Check(copy->address_map.size() >= loop.instructions.size());
  Check(copy->edits.pinned <= copy->edits.accesses);
  uint64_t last = 0;
  for (const perfd::agent::AddressPair& pair : copy->address_map) {
    Check(pair.copy > last && pair.copy < copy->address + copy->bytes.size());
    last = pair.copy;
    if (pair.original == loop.header) Check(pair.copy % 64 == loop.header % 64);
  }
}

}  // namespace

// Byte 0: where the header is; byte 1: where the body ends; the rest is the function, in two parts that touch.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4 || size > 4096) return 0;
  perfd::agent::LoopBytes bytes;
  constexpr uint64_t kText = 0x401000;
  const uint64_t count = size - 2;
  const uint8_t* middle = data + 2 + count / 2;
  bytes.function = {{kText, {data + 2, middle}}, {kText + count / 2, {middle, data + size}}};
  bytes.header = kText + data[0] % count;
  const uint64_t end = kText + 1 + (count - 1) * data[1] / 255;
  bytes.body = {{kText, std::min(end, kText + count / 2)}};
  if (end > kText + count / 2) bytes.body.push_back({kText + count / 2, end});
  const auto loop = perfd::agent::DecodeLoop(bytes);
  if (!loop.ok()) return 0;
  (void)perfd::agent::PlanPatch(*loop);
  for (const perfd::Change change : kChanges) CheckCopy(*loop, perfd::SingleVariant(change));
  CheckCopy(*loop, perfd::SingleVariant(perfd::Change::kPrefetch, 70));
  return 0;
}
