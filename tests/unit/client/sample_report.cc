#include "tests/unit/client/sample_report.h"

namespace perfd {

ReportRow SampleLoop(const std::string& id, const std::string& function, int line, double share) {
  ReportRow row;
  row.id = id;
  row.location.category = Category::kLoop;
  row.location.module_id = "abc123";
  row.location.module_path = "/opt/lulesh2.0";
  row.location.function = function;
  row.location.source = {"/src/lulesh.cc", line, line + 9};
  row.location.loop = LoopFacts();
  row.location.loop->header = 0x401000;
  row.samples = static_cast<uint64_t>(share * 1000);
  row.share = share;
  row.share_interval = {share - 0.02, share + 0.02};
  row.inclusive_share = share;
  row.ranks = {{"node1", 0, row.samples / 2, share * 2, share},
               {"node2", 1, row.samples / 2, share * 3, share}};
  row.threads = {{{"node1", 0, 100, 101}, row.samples, share}};
  row.rank_seconds.min = share * 2;
  row.rank_seconds.median = share * 2.5;
  row.rank_seconds.max = share * 3;
  row.worst_rank = "rank 1 on node2";
  row.imbalance = 1.2;
  row.thread_count = 2;
  return row;
}

namespace {

ProfileStatus SampleStatus() {
  ProfileStatus status;
  status.id = "p-000042";
  status.name = "demo";
  status.state = ProfileState::kDone;
  status.requester = {1000, "alice", false};
  status.spec = FixedLengthSpec();
  status.spec.target.command = "lulesh2.0";
  status.submitted_unix_ns = 1'700'000'000'000'000'000;
  status.started_unix_ns = 1'700'000'001'000'000'000;
  status.finished_unix_ns = 1'700'000'061'000'000'000;
  status.submit_to_first_sample_ns = 800'000'000;
  status.course.progress_ratio = 1;
  status.samples = 1000;
  status.nodes = {{"node1", NodeProgress::Phase::kFinished, 1, 2, 60'000'000'000, 12}};
  status.notices = {
      {Notice::Severity::kInfo, absl::StatusCode::kOk, "", 0, "no PMU here"},
      {Notice::Severity::kWarning, absl::StatusCode::kNotFound, "node2", 77, "rank ended early"}};
  return status;
}

}  // namespace

Report SampleReport() {
  Report report;
  report.status = SampleStatus();
  report.loops = {SampleLoop("3fa9c2d100000001", "compute_forces", 812, 0.5),
                  SampleLoop("77aa000000000002", "update", 100, 0.25)};
  report.loops[0].hot = true;
  report.loops[0].location.openmp = OpenMpKind::kOutlined;
  report.loops[0].location.loop->depth = 2;
  report.loops[1].location.loop->innermost = false;
  report.loops[1].inclusive_share = 0.75;
  report.waiting = {SampleLoop("beef000000000003", "opal_progress", 0, 0.1)};
  report.waiting[0].location.loop_kind = LoopKind::kWaiting;
  report.waiting[0].location.category = Category::kLibrary;
  report.waiting[0].location.source = {};
  report.functions = {SampleLoop("cafe000000000004", "main", 10, 0.1)};
  report.functions[0].location.category = Category::kOutsideLoop;
  report.functions[0].location.loop.reset();
  report.category_share = {0.75, 0.1, 0.1, 0.04, 0.01};
  report.category_samples = {750, 100, 100, 40, 10};
  report.time.waiting_share = 0.1;
  report.ranks.resize(2);
  report.ranks[0].info = {"node1", 100, 1000, 5, 0, 2, RankSource::kPmix, "4711", "lulesh2.0"};
  report.ranks[0].samples = 500;
  report.ranks[0].seconds = 2.5;
  report.ranks[0].compute_seconds = 2;
  report.ranks[0].threads = 2;
  report.ranks[1] = report.ranks[0];
  report.ranks[1].info.node = "node2";
  report.ranks[1].info.pid = 200;
  report.ranks[1].info.rank = 1;
  report.ranks[1].compute_seconds = 3;
  report.ranks[1].ended_early = true;
  report.worst_rank = "rank 1 on node2";
  report.imbalance = 1.2;
  report.nodes = {
      {"node1", 12, 60'000'000'000, {"cpu-clock", 199, false, "per-thread", Provenance::kSampled}}};
  report.accounting.seen = 1005;
  report.accounting.kept = 1000;
  report.accounting.Drop(DropReason::kQueueFull, 5);
  report.accounting.lost = 7;
  report.overhead = {900'000'000, 12'000'000, 5'000'000'000, 0, 0, 0, 900'000'000};
  report.overhead_ratio = 0.0024;
  report.missing_ratio = 12.0 / 1012;
  return report;
}

}  // namespace perfd
