#include "agent/experiment/plan/shared_lines.h"

#include <algorithm>
#include <optional>

namespace perfd::agent {
namespace {

constexpr uint64_t kLineBytes = 64;
constexpr size_t kMostSpans = 1 << 14;  // of lines, over all threads; more are not looked at

// Neighbouring lines that one thread touches equally often.
struct Span {
  uint64_t first = 0;  // line
  uint64_t end = 0;    // exclusive
  double each = 0;     // accesses of a line
  size_t thread = 0;
  size_t reference = 0;
  bool writes = false;
};

uint64_t LineOf(uint64_t address) {
  return address / kLineBytes;
}

class Spans {
 public:
  Spans(std::span<const Reference> references, std::span<const ThreadTrace> threads) {
    for (size_t thread = 0; thread < threads.size(); ++thread) {
      const std::vector<TraceRecord>& records = threads[thread].records;
      const size_t count = std::min({records.size(), references.size(), size_t{kTraceCount}});
      for (size_t i = 0; i < count; ++i) {
        if (!references[i].traced) continue;
        Add(records[i], references[i],
            {.thread = thread, .reference = i, .writes = references[i].writes});
      }
    }
  }

  const std::vector<Span>& all() const { return all_; }

 private:
  void Add(const TraceRecord& record, const Reference& reference, Span span) {
    const std::optional<uint64_t> step = StepOf(record);
    const bool apart = step.has_value() && *step > kLineBytes;
    const size_t needed = apart ? static_cast<size_t>(record.count) : 1;
    if (!step.has_value() || needed > kMostSpans - all_.size()) return;
    const auto bytes = static_cast<uint64_t>(std::max(1, reference.bytes));
    if (*step == 0) {
      AddLines(record.lowest, bytes, static_cast<double>(record.count), span);
    } else if (*step <= kLineBytes) {
      // Whole lines only.
      span.first = LineOf(record.lowest + kLineBytes - 1);
      span.end = LineOf(record.highest + bytes);
      span.each = static_cast<double>(kLineBytes) / static_cast<double>(*step);
      if (span.first < span.end) all_.push_back(span);
    } else {
      for (uint64_t i = 0; i < record.count; ++i)
        AddLines(record.lowest + i * *step, bytes, 1, span);
    }
  }

  void AddLines(uint64_t address, uint64_t bytes, double accesses, Span span) {
    span.first = LineOf(address);
    span.end = LineOf(address + bytes - 1) + 1;
    span.each = accesses;
    all_.push_back(span);
  }

  std::vector<Span> all_;
};

// What all threads do at one line.
class LineUse {
 public:
  explicit LineUse(size_t threads) : touched_(threads), written_(threads) {}

  void Add(const Span& span, double sign) {
    touched_[span.thread] += sign * span.each;
    if (span.writes) written_[span.thread] += sign * span.each;
  }

  // How often the line changes hands at most.
  double Changes() const {
    double all = 0, most = 0;
    for (const double touched : touched_) all += touched;
    for (size_t i = 0; i < written_.size(); ++i)
      most = std::max(most, std::min(written_[i], all - touched_[i]));
    return most < kNothing ? 0 : most;
  }

 private:
  static constexpr double kNothing = 1e-6;  // sums of what was added and taken away again

  std::vector<double> touched_, written_;  // by thread
};

// Lines of one thread's accesses with one reference.
struct Lines {
  double all = 0, shared = 0;
};

struct Event {
  uint64_t line = 0;
  bool ends = false;
  size_t span = 0;
};

std::vector<Event> EventsOf(const std::vector<Span>& spans) {
  std::vector<Event> events;
  for (size_t i = 0; i < spans.size(); ++i) {
    events.push_back({spans[i].first, false, i});
    events.push_back({spans[i].end, true, i});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.line < b.line; });
  return events;
}

// Goes over all lines, from change to change of who touches them.
class Sweep {
 public:
  Sweep(std::span<const Span> spans, size_t references, size_t threads)
      : spans_(spans), references_(references), use_(threads), lines_(references * threads) {}

  void Add(const Event& event) {
    const Span& span = spans_[event.span];
    use_.Add(span, event.ends ? -1 : 1);
    if (event.ends) {
      std::erase(active_, event.span);
    } else {
      active_.push_back(event.span);
    }
  }

  void Pass(uint64_t lines) {
    const double each = use_.Changes(), count = static_cast<double>(lines);
    changes_ += each * count;
    for (const size_t span : active_) {
      Lines& of = lines_[spans_[span].thread * references_ + spans_[span].reference];
      of.all += count;
      if (each > 0) of.shared += count;
    }
  }

  double changes() const { return changes_; }

  std::vector<bool> Shared() const {
    std::vector<bool> shared(references_);
    for (size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].shared > 0 && 2 * lines_[i].shared >= lines_[i].all)
        shared[i % references_] = true;
    return shared;
  }

 private:
  std::span<const Span> spans_;
  size_t references_;
  LineUse use_;
  std::vector<Lines> lines_;    // by thread and reference
  std::vector<size_t> active_;  // spans that hold the line
  double changes_ = 0;
};

}  // namespace

std::vector<bool> SharedReferences(std::span<const Reference> references,
                                   std::span<const ThreadTrace> threads) {
  std::vector<bool> none(references.size());
  if (threads.size() < 2 || references.empty()) return none;
  const Spans spans(references, threads);
  const std::vector<Event> events = EventsOf(spans.all());
  Sweep sweep(spans.all(), references.size(), threads.size());
  for (size_t i = 0; i < events.size(); ++i) {
    sweep.Add(events[i]);
    if (i + 1 < events.size() && events[i + 1].line > events[i].line)
      sweep.Pass(events[i + 1].line - events[i].line);
  }
  uint64_t passes = 0;
  for (const ThreadTrace& thread : threads) passes = std::max(passes, thread.traced_iterations);
  const bool often = sweep.changes() >= kRarestSharing * static_cast<double>(passes);
  return often ? sweep.Shared() : none;
}

}  // namespace perfd::agent
