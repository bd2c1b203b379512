#include "tests/unit/client/sample_verdicts.h"

#include "tests/unit/client/sample_report.h"

namespace perfd {
namespace {

VariantFigures Figures(const char* variant, double value, int32_t thread = kTeam) {
  VariantFigures f;
  f.variant = variant;
  f.base = "REF";
  f.thread = thread;
  f.saturation = {value, value - 0.01, value + 0.02};
  f.cycles = 1000 * value;
  f.cycles_min = 990 * value;
  f.iterations = 128;
  f.stability = 0.01;
  f.valid_runs = 31;
  f.invalid_runs = 1;
  f.shadows = 6;
  f.edits.changed = 4;
  return f;
}

VariantSummary Summary(const char* variant, double value, double low, double high) {
  VariantSummary v;
  v.variant = variant;
  v.base = "REF";
  v.saturation = {value, value - 0.01, value + 0.02};
  v.rank_min = low;
  v.rank_max = high;
  v.min_rank = "rank 1 on node2";
  v.max_rank = "rank 0 on node1";
  v.ranks = {2, 2};
  v.valid_runs = 62;
  v.invalid_runs = 2;
  v.shadows = 12;
  v.cycles = 1000 * value;
  v.edits.changed = 4;
  return v;
}

RankVerdict Rank(int32_t rank, const char* node, Bound bound, double ls, double fp) {
  RankVerdict out;
  out.bound = bound;
  LoopMeasurement& m = out.measurement;
  m.profile_id = "p-000042";
  m.node = node;
  m.rank = rank;
  m.pid = 100 * (rank + 1);
  m.loop_id = "3fa9c2d100000001";
  m.state = MeasureState::kMeasured;
  m.team = 2;
  m.fidelity = {1.02, 1.01, 1.03, 15, 40, 4, CachesBefore::kWarm};
  m.protocol = "warm";
  m.figures = {Figures("LS", ls), Figures("LS", ls, 0), Figures("FP", fp)};
  m.trips.instances = 9;
  m.trips.decile.fill(128);
  m.references = {{0x401010, true, false, 0, 8, 0x1000, 0x1400}};
  m.cost = {3, 6'000'000, 4'000'000, 6, 1, 120'000'000, 30'000'000, 5'000'000, 1'000'000};
  return out;
}

LoopVerdict Measured() {
  LoopVerdict loop;
  loop.loop_id = "3fa9c2d100000001";
  loop.state = MeasureState::kMeasured;
  loop.bound = Bound::kMemory;
  loop.level = DataLevel::kBeyondL2;
  loop.agreement = "1 of 2 ranks memory bound, 1 arithmetic bound";
  loop.share = 0.5;
  loop.slowest_share = 0.6;
  loop.slowest_rank = "rank 1 on node2";
  loop.ranks_measured = 2;
  loop.ranks_total = 2;
  loop.variants = {Summary("REF", 1, 1, 1), Summary("LS", 0.97, 0.3, 0.97),
                   Summary("FP", 0.2, 0.2, 0.96), Summary("DL1", 0.4, 0.4, 0.9)};
  loop.variants[3].edits.accesses = 3;
  loop.variants[3].edits.pinned = 2;
  loop.gains = {{"DL1", "perfect cache", {0.36, 0.3, 0.42}, {2, 2}},
                {"NO_STORE", "no stores", {0.05, 0.01, 0.1}, {2, 2}}};
  loop.remarks = {"1 rank differs from the others: see `loops --loop`"};
  loop.fidelity = {1.02, 1.01, 1.03, 15, 40, 4, CachesBefore::kWarm};
  loop.protocol = "warm";
  loop.refusals = {{"NO_SQRT", 0x401020, "no square root in the loop", 2}};
  loop.open = {"S2L"};
  loop.ranks = {Rank(0, "node1", Bound::kMemory, 0.97, 0.2),
                Rank(1, "node2", Bound::kArithmetic, 0.3, 0.96)};
  loop.ranks[1].outlier = "arithmetic bound where most are memory bound";
  loop.cost = {6, 12'000'000, 4'000'000, 12, 2, 240'000'000, 30'000'000, 10'000'000, 2'000'000};
  loop.listings = {
      {"LS",
       {{0x401010, "vmovupd ymm0, [rax]", ""}, {0x401014, "vaddpd ymm1, ymm1, ymm0", "nop"}}}};
  return loop;
}

LoopVerdict Refused() {
  LoopVerdict loop;
  loop.loop_id = "77aa000000000002";
  loop.state = MeasureState::kRefused;
  loop.share = 0.25;
  loop.ranks_total = 2;
  loop.refusals = {{"", 0, "the loop calls malloc", 2}};
  return loop;
}

}  // namespace

Report MeasuredReport() {
  Report report = SampleReport();
  report.findings.verdicts = {Measured(), Refused()};
  report.findings.injection.sum = report.findings.verdicts[0].cost;
  report.findings.injection.added_wall_ns = 150'000'000;
  report.findings.injection.added_ratio = 0.0025;
  return report;
}

}  // namespace perfd
