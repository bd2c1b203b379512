// What runs change of the memory put aside, by cache lines: bringing back the few lines of a short instance leaves its caches
// as the loop leaves them, bringing back whole arrays does not.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

inline constexpr uint64_t kLine = 64;

bool Differs(uint64_t a, uint64_t b, uint64_t bytes) {
  uint64_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    if (*At<uint64_t>(a + at) != *At<uint64_t>(b + at)) return true;
  }
  for (; at < bytes; ++at) {
    if (*At<uint8_t>(a + at) != *At<uint8_t>(b + at)) return true;
  }
  return false;
}

// By words: after thousands of `rep movsb` of one line each, in two threads at once, one of them finds its lines gone from its
// second level, and a loop over 400 KB takes three times as long; one copy of whole ranges does no such harm
// (docs/benchmarks/constants.md#copyline).
void CopyLine(uint64_t to, uint64_t from, uint64_t bytes) {
  uint64_t at = 0;
  for (; at + 8 <= bytes; at += 8)
    *At<volatile uint64_t>(to + at) = *At<volatile uint64_t>(from + at);
  for (; at < bytes; ++at) *At<volatile uint8_t>(to + at) = *At<volatile uint8_t>(from + at);
}

// Lines side by side are one entry: the table takes room in the first level too. `last` is the caller's own, of this pass.
void Record(ChildControl* child, const RestoreLine& line, RestoreLine** last) {
  if (*last != nullptr && (*last)->address + (*last)->bytes == line.address &&
      (*last)->from + (*last)->bytes == line.from) {
    (*last)->bytes += line.bytes;
    return;
  }
  uint32_t place = FetchAdd(child->lines.count, 1);
  if (place >= kMaxLines) {
    Store(child->lines.overflow, 1);
    return;
  }
  *last = At<RestoreLine>(child->lines.table) + place;
  **last = line;
}

// The loop left its lines in the first level; after the copying half of what is there are the copies.
void Touch(const RestoreLine& line) {
  for (uint64_t at = 0; at < line.bytes; at += kLine)
    static_cast<void>(*At<volatile uint8_t>(line.address + at));
  // Where it does not begin with a line of the cache it ends in one more.
  static_cast<void>(*At<volatile uint8_t>(line.address + line.bytes - 1));
}

}  // namespace

Share ShareOf(const ChildControl* child, const RestoreRange& range, uint32_t index) {
  if (range.owner < child->team) return {0, range.owner == index ? range.bytes : 0};
  // Whole lines: no two threads share one.
  uint64_t lines = (range.bytes + kLine - 1) / kLine;
  uint64_t low = lines * index / child->team * kLine;
  uint64_t high = lines * (index + 1) / child->team * kLine;
  return {low, high < range.bytes ? high : range.bytes};
}

void LearnLines(ChildControl* child, ShadowPlan* plan, uint32_t index) {
  uint64_t from = child->buffers.restores;
  if (from == 0 || child->lines.table == 0) return;
  uint32_t count = plan->restore_count < kMaxRestores ? plan->restore_count : kMaxRestores;
  uint64_t first = 0;  // number of the range's first line
  uint32_t noted = 0;  // lines; beyond kMaxLines bringing back whole ranges is faster
  RestoreLine* last = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    const RestoreRange& range = plan->restores[i];
    Share share = ShareOf(child, range, index);
    for (uint64_t at = share.low; at < share.high; at += kLine) {
      uint64_t size = share.high - at < kLine ? share.high - at : kLine;
      if (!Differs(range.address + at, from + at, size)) continue;
      CopyLine(range.address + at, from + at, size);
      uint8_t* known = At<uint8_t>(child->lines.known + first + at / kLine);
      if (*known) continue;
      *known = 1;
      Record(child, {range.address + at, from + at, static_cast<uint32_t>(size), index}, &last);
      if (++noted > kMaxLines) Store(child->lines.overflow, 1);
    }
    from += range.bytes;
    first += (range.bytes + kLine - 1) / kLine;
  }
}

bool RestoreLines(ChildControl* child, uint32_t index) {
  if (child->lines.table == 0 || Load(child->lines.overflow) || Load(child->lines.count) == 0)
    return false;
  uint32_t count = Load(child->lines.count);
  const RestoreLine* lines = At<RestoreLine>(child->lines.table);
  for (uint32_t i = 0; i < count; ++i) {
    if (lines[i].owner == index) CopyLine(lines[i].address, lines[i].from, lines[i].bytes);
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (lines[i].owner == index) Touch(lines[i]);
  }
  return true;
}

void MapLines(ChildControl* child, ShadowPlan* plan, uint64_t total) {
  uint32_t runs = plan->run_count < kMaxRuns ? plan->run_count : kMaxRuns;
  bool learns = false;
  for (uint32_t i = 0; i < runs; ++i) learns = learns || (plan->runs[i].flags & kRunLearn) != 0;
  if (!learns) return;
  child->lines.table = MapBuffer(child, kMaxLines * sizeof(RestoreLine));
  child->lines.known = MapBuffer(child, total / kLine + kMaxRestores);
}

}  // namespace perfd::agent
