#include "agent/experiment/plan/trace_summary.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "agent/experiment/plan/shared_lines.h"

namespace perfd::agent {
namespace {

struct Range {
  uint64_t low = 0;
  uint64_t high = 0;    // exclusive
  int32_t thread = -1;  // the only one that touches it
};

uint64_t SaturatingAdd(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max()
                                                      : a + b;
}

// Bytes by which the span of a capped trace falls short of the whole instance.
uint64_t Missing(const TraceRecord& record, const ThreadTrace& thread) {
  if (thread.traced_iterations == 0 || thread.whole_iterations <= thread.traced_iterations)
    return 0;
  if (record.count < 2) return 0;
  const double more =
      static_cast<double>(thread.whole_iterations) / static_cast<double>(thread.traced_iterations) -
      1;
  const double step =
      static_cast<double>(record.highest - record.lowest) / static_cast<double>(record.count - 1);
  return static_cast<uint64_t>(std::min(step * static_cast<double>(record.count) * more, 1e15));
}

std::optional<Range> Touched(const TraceRecord& record, const Reference& reference,
                             const ThreadTrace& thread) {
  if (record.count == 0 || record.highest < record.lowest) return std::nullopt;
  Range range{record.lowest,
              SaturatingAdd(record.highest, static_cast<uint64_t>(std::max(1, reference.bytes)))};
  const uint64_t missing = Missing(record, thread);
  // The first address tells the direction; in the middle: both.
  if (record.first != record.highest || record.lowest == record.highest)
    range.high = SaturatingAdd(range.high, missing);
  if (record.first != record.lowest) range.low -= std::min(range.low, missing);
  return range;
}

std::vector<Range> Merge(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.low < b.low; });
  std::vector<Range> merged;
  for (const Range& range : ranges) {
    // Parts of one array that belong to different threads touch, but stay apart.
    const bool touches = !merged.empty() && range.low == merged.back().high;
    const bool overlaps = !merged.empty() && range.low < merged.back().high;
    if (overlaps || (touches && range.thread == merged.back().thread)) {
      merged.back().high = std::max(merged.back().high, range.high);
      if (range.thread != merged.back().thread) merged.back().thread = -1;
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

bool Overlap(const std::vector<Range>& a, const std::vector<Range>& b) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].low < b[j].high && b[j].low < a[i].high) return true;
    a[i].high < b[j].high ? ++i : ++j;
  }
  return false;
}

void Widen(TracedReference& reference, const Range& range) {
  reference.lowest = reference.highest == 0 ? range.low : std::min(reference.lowest, range.low);
  reference.highest = std::max(reference.highest, range.high);
}

}  // namespace

std::optional<uint64_t> StepOf(const TraceRecord& record) {
  if (record.count == 0 || record.highest < record.lowest) return std::nullopt;
  if (record.lowest == record.highest) return 0;
  if (record.count < 2 || (record.first != record.lowest && record.first != record.highest))
    return std::nullopt;
  const uint64_t range = record.highest - record.lowest;
  // Of an arithmetic progression, twice the sum is the number of its members times the sum of its ends.
  const bool even = range % (record.count - 1) == 0 &&
                    2 * record.sum == record.count * (record.lowest + record.highest);
  return even ? std::optional(range / (record.count - 1)) : std::nullopt;
}

TraceSummary SummarizeTrace(std::span<const Reference> references,
                            std::span<const ThreadTrace> threads, LoadBias bias) {
  TraceSummary summary;
  std::vector<Range> read, written;
  const std::vector<bool> shared = SharedReferences(references, threads);
  for (size_t i = 0; i < references.size(); ++i) {
    const Reference& reference = references[i];
    summary.blind |= !reference.traced || i >= kTraceCount;
    summary.untraced |= reference.writes && (!reference.traced || i >= kTraceCount);
    TracedReference traced{.instruction = (RuntimeAddress(reference.instruction) - bias).value(),
                           .reads = reference.reads,
                           .writes = reference.writes,
                           .group = reference.group,
                           .bytes = reference.bytes,
                           .shared = shared[i]};
    bool steps = true;
    for (const ThreadTrace& thread : threads) {
      summary.partial |= thread.whole_iterations > thread.traced_iterations;
      if (i >= thread.records.size()) continue;
      std::optional<Range> range = Touched(thread.records[i], reference, thread);
      if (!range.has_value()) continue;
      steps = steps && StepOf(thread.records[i]).value_or(0) != 0;
      range->thread = static_cast<int32_t>(&thread - threads.data());
      Widen(traced, *range);
      if (reference.reads) read.push_back(*range);
      if (reference.writes) written.push_back(*range);
    }
    if (traced.highest > 0 && steps) summary.stepping.push_back(traced.instruction);
    if (traced.highest > 0)
      summary.references.push_back(traced);
    else if (reference.traced && i < kTraceCount)
      summary.not_executed.push_back(traced.instruction);
  }
  read = Merge(std::move(read));
  written = Merge(std::move(written));
  summary.in_situ = Overlap(read, written);
  std::vector<Range> touched = read;
  touched.insert(touched.end(), written.begin(), written.end());
  for (const Range& range : Merge(std::move(touched)))
    summary.touched.emplace_back(range.low, range.high - range.low);
  for (const Range& range : written) {
    summary.written.emplace_back(range.low, range.high - range.low);
    summary.writers.push_back(range.thread);
    summary.written_bytes += range.high - range.low;
  }
  return summary;
}

}  // namespace perfd::agent
