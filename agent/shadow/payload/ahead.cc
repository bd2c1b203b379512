// What runs that go on from each other will meet. Two traced runs, one after the other, tell for each reference what it touches and
// how far it moves from run to run. With that it is decided, in every thread of every shadow, whether the runs may go on at all,
// and the pages that they will meet are touched once: a fork clears the accessed bit of each page table entry, and to set it
// again, or to copy a page, is no part of the loop.
#include "agent/shadow/payload/payload.h"

namespace perfd::agent {
namespace {

inline constexpr uint64_t kWidestAccess = 64;
inline constexpr uint64_t kPieceBytes =
    256 << 10;  // asked for at once: behind an array there may be nothing
inline constexpr uint64_t kMostTouched = 32 << 20;  // of a thread
inline constexpr uint64_t kPageBytes = 4096;

struct Reach {
  uint64_t low = 0, high = 0;  // empty: it was not executed
  bool IsEmpty() const { return low >= high; }
  bool Meets(const Reach& other) const { return low < other.high && other.low < high; }
};

bool Bit(const uint64_t* bits, uint32_t i) {
  return (bits[i / 64] >> i % 64 & 1) != 0;
}

uint64_t Above(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

uint64_t Times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? ~uint64_t{0} : product;
}

uint64_t Sum(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? ~uint64_t{0} : sum;
}

// Of both traced runs, and as far beyond as the second lies beyond the first, once for each run to come.
Reach ReachOf(const TraceRecord& first, const TraceRecord& second, uint64_t runs) {
  Reach reach;
  if (first.count == 0 && second.count == 0) return reach;
  const TraceRecord& a = first.count == 0 ? second : first;
  const TraceRecord& b = second.count == 0 ? first : second;
  const uint64_t up = Times(Above(b.highest, a.highest), runs);
  const uint64_t down = Times(Above(a.lowest, b.lowest), runs);
  reach.low = Above(a.lowest < b.lowest ? a.lowest : b.lowest, down);
  reach.high = Sum(Sum(a.highest > b.highest ? a.highest : b.highest, kWidestAccess), up);
  return reach;
}

// The two traced runs of one thread.
struct Traces {
  const TraceRecord* first;
  const TraceRecord* second;
  Reach Of(uint32_t reference, uint64_t runs) const {
    return ReachOf(first[reference], second[reference], runs);
  }
};

// Whether nothing that this thread writes is anything that `reader`, perhaps another one, reads.
bool AreApart(const ShadowPlan* plan, const Traces& writer, const Traces& reader) {
  const LookAhead& ahead = plan->tables.ahead;
  for (uint32_t w = 0; w < ReferencesOf(plan); ++w) {
    if (!Bit(ahead.writes, w)) continue;
    const Reach written = writer.Of(w, ahead.runs);
    for (uint32_t r = 0; r < ReferencesOf(plan) && !written.IsEmpty(); ++r) {
      const Reach read = Bit(ahead.reads, r) ? reader.Of(r, ahead.runs) : Reach{};
      if (!read.IsEmpty() && read.Meets(written)) return false;
    }
  }
  return true;
}

// The kernel says first whether all of a piece is there (Linux 5.14); before, nothing is touched.
bool TouchPiece(uint64_t low, uint64_t high, bool writes) {
  constexpr uint64_t kPopulateRead = 22, kPopulateWrite = 23;
  if (SysCall(kSysMadvise, low, high - low, writes ? kPopulateWrite : kPopulateRead) < 0)
    return false;
  for (uint64_t at = low; at < high; at += kPageBytes) *At<volatile uint8_t>(at);
  return true;
}

// Beginning with what was traced, and from there as far as memory goes.
uint64_t Touch(const Reach& reach, const TraceRecord& from, bool writes, uint64_t room) {
  const uint64_t start = from.lowest & ~(kPageBytes - 1);
  uint64_t touched = 0;
  for (uint64_t at = start; at < reach.high && touched < room; at += kPieceBytes) {
    const uint64_t end = at + kPieceBytes < reach.high
                             ? at + kPieceBytes
                             : (reach.high + kPageBytes - 1) & ~(kPageBytes - 1);
    if (!TouchPiece(at, end, writes)) break;
    touched += end - at;
  }
  for (uint64_t at = start; at > reach.low && touched < room; at -= kPieceBytes) {
    const uint64_t low =
        at - reach.low > kPieceBytes ? at - kPieceBytes : reach.low & ~(kPageBytes - 1);
    if (!TouchPiece(low, at, writes)) break;
    touched += at - low;
    if (at < kPieceBytes) break;
  }
  return touched;
}

void TouchAll(const ShadowPlan* plan, const Traces& traces) {
  const LookAhead& ahead = plan->tables.ahead;
  uint64_t room = kMostTouched;
  for (uint32_t i = 0; i < ReferencesOf(plan) && room > 0; ++i) {
    const bool writes = Bit(ahead.writes, i);
    if (!writes && !Bit(ahead.reads, i)) continue;
    const Reach reach = traces.Of(i, ahead.runs);
    if (reach.IsEmpty()) continue;
    const bool second = traces.second[i].count != 0;
    const uint64_t touched = Touch(reach, (second ? traces.second : traces.first)[i], writes, room);
    room = touched < room ? room - touched : 0;
  }
}

Traces TracesOf(uint64_t block) {
  return {At<const TraceRecord>(StateOf(block)->succession.ahead),
          At<const TraceRecord>(block + kBlockTrace)};
}

}  // namespace

// Every thread has made its run, and none begins the next one before all have been here.
void LearnAhead(RegionHeader* region, ChildControl* child, BlockState* state, uint64_t block) {
  const ShadowPlan* plan = PlanOf(region);
  const uint64_t bytes = sizeof(TraceRecord) * (uint64_t{ReferencesOf(plan)} + 1);  // never nothing
  if (state->succession.ahead == 0) {
    state->succession.ahead = MapBuffer(child, bytes);
    CopyBytes(state->succession.ahead, block + kBlockTrace, bytes);
    return;
  }
  const Traces own = TracesOf(block);
  for (uint32_t i = 0; i < child->team; ++i) {
    if (!AreApart(plan, own, TracesOf(BlockOf(region, child->records[i]))))
      Store(child->orders.must_start_anew, 1);
  }
  if (Load(child->orders.must_start_anew) == 0) TouchAll(plan, own);
}

}  // namespace perfd::agent
