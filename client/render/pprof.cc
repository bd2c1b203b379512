#include "client/render/pprof.h"

#include <algorithm>

#include "client/render/folded.h"
#include "core/analysis/stack_time.h"
#include "core/base/clock.h"

namespace perfd::client {
namespace {

int64_t PeriodNs(const Report& report) {
  double hz = 0;
  for (const NodeCoverage& node : report.nodes) hz = std::max(hz, node.setup.frequency_hz);
  return hz > 0 ? static_cast<int64_t>(kNsPerSecond / hz) : 0;
}

void AddStacks(const Report& report, PprofEncoder* encoder) {
  const std::vector<double> seconds = StackSeconds(report);
  for (size_t i = 0; i < report.stacks.size(); ++i) {
    const ReportStack& stack = report.stacks[i];
    std::vector<PprofEncoder::Frame> frames;
    for (const std::string& name : stack.frames) frames.push_back({name, "", 0});
    encoder->AddSample(frames, static_cast<int64_t>(stack.samples),
                       static_cast<int64_t>(seconds[i] * kNsPerSecond), stack.rank);
  }
}

void AddRow(const ReportRow& row, PprofEncoder* encoder) {
  const SourceRange& source = row.location.source;
  std::vector<PprofEncoder::Frame> frames;
  for (const std::string& name : LocateFrames(row))
    frames.push_back({name, source.file, source.first_line});
  frames.front() = {frames.front().function, "", 0};  // the module has no source
  for (const RankShare& part : row.ranks)
    encoder->AddSample(frames, static_cast<int64_t>(part.samples),
                       static_cast<int64_t>(part.seconds * kNsPerSecond), part.rank);
}

}  // namespace

PprofEncoder EncodePprof(const Report& report) {
  PprofEncoder encoder;
  const int64_t period_ns = PeriodNs(report);
  int64_t covered_ns = 0;
  for (const NodeCoverage& node : report.nodes) covered_ns = std::max(covered_ns, node.covered_ns);
  encoder.SetTimes(report.status.started_unix_ns, covered_ns, period_ns);
  AddStacks(report, &encoder);
  if (!report.stacks.empty()) return encoder;
  for (const auto* rows : {&report.loops, &report.waiting, &report.functions}) {
    for (const ReportRow& row : *rows) AddRow(row, &encoder);
  }
  return encoder;
}

absl::StatusOr<std::string> RenderPprof(const Report& report) {
  return EncodePprof(report).Gzip();
}

}  // namespace perfd::client
