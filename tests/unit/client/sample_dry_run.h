// The report of a dry run of two ranks: one loop would be patched in both, one in one of them, one in none.
#ifndef TESTS_UNIT_CLIENT_SAMPLE_DRY_RUN_H_
#define TESTS_UNIT_CLIENT_SAMPLE_DRY_RUN_H_

#include "tests/unit/client/sample_report.h"

namespace perfd::client {

inline RankVerdict DryRank(int32_t rank, const char* node, std::string reason = "") {
  RankVerdict out;
  LoopMeasurement& m = out.measurement;
  m.rank = rank;
  m.node = node;
  m.pid = 100 * (rank + 1);
  m.state = reason.empty() ? MeasureState::kOpen : MeasureState::kRefused;
  m.reason = std::move(reason);
  if (m.reason.empty())
    m.refusals = {{"NO_DIV", 0, "it changes nothing", 1}, {"NO_RED", 0, "it changes nothing", 1}};
  return out;
}

inline LoopVerdict DryLoop(std::string id, double share, std::vector<RankVerdict> ranks) {
  LoopVerdict loop;
  loop.loop_id = std::move(id);
  loop.location_key = "key";
  loop.share = share;
  loop.ranks_total = static_cast<uint32_t>(ranks.size());
  loop.ranks = std::move(ranks);
  return loop;
}

inline Report DryRunReport() {
  Report report = SampleReport();
  report.status.spec.dry_run = true;
  report.status.spec.variants.set = {"LS", "FP", "DL1", "NO_DIV"};
  report.status.notices.clear();
  LoopVerdict all = DryLoop("3fa9c2d100000001", 0.5, {DryRank(0, "node1"), DryRank(1, "node2")});
  all.open = {"DL1", "FP", "LS"};
  all.refusals = {{"NO_DIV", 0, "it changes nothing", 2}, {"NO_RED", 0, "it changes nothing", 2}};
  all.remarks = {"paths over call 0x401100 are left out"};
  all.predicted = {25'000'000, 5'000'000, 120'000'000};
  LoopVerdict some =
      DryLoop("99aa000000000009", 0.1, {DryRank(0, "node1"), DryRank(1, "node2", "another build")});
  some.open = {"LS"};
  some.refusals = {{"", 0, "another build", 1}, {"NO_DIV", 0x401020, "it would trap", 1}};
  some.predicted = {15'000'000, 0, 150'000'000};
  LoopVerdict none =
      DryLoop("77aa000000000002", 0.25,
              {DryRank(0, "node1", "it calls malloc"), DryRank(1, "node2", "it calls malloc")});
  none.state = MeasureState::kRefused;
  none.refusals = {{"", 0, "it calls malloc", 2}};
  report.findings.verdicts = {all, some, none};
  return report;
}

}  // namespace perfd::client

#endif  // TESTS_UNIT_CLIENT_SAMPLE_DRY_RUN_H_
