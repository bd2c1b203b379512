// Each case takes a valid message, spoils one field and expects a refusal that names it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/wire/check/limits.h"
#include "core/wire/variant_wire.h"
#include "core/wire/wire.h"
#include "tests/unit/wire/random_model.h"

namespace perfd {
namespace {

template <typename Message>
struct Spoiler {
  const char* field;
  std::function<void(Message&)> spoil;
};

template <typename Message>
void ExpectRefused(const Message& valid, const std::vector<Spoiler<Message>>& spoilers) {
  ASSERT_TRUE(wire::FromProto(valid).ok()) << wire::FromProto(valid).status();
  for (const Spoiler<Message>& spoiler : spoilers) {
    Message message = valid;
    spoiler.spoil(message);
    const absl::Status status = wire::FromProto(message).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << spoiler.field;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(spoiler.field));
  }
}

v1::Window ValidWindow() {
  Window window;
  window.profile_id = "p-000001";
  window.node = "node1";
  window.stream_id = "uuid";
  window.sequence = 1;
  window.threads = {{0, 10, 11}};
  window.locations.resize(1);
  window.locations[0].category = Category::kOutsideLoop;
  window.rows = {{0, 0, 5, 50}};
  window.paths.frame_names = {"main"};
  window.paths.stacks = {{0, {0}, 5}};
  window.paths.calls = {{0, std::nullopt, 5}};
  window.ranks.resize(1);
  return wire::ToProto(window);
}

TEST(Hostile, WindowIdentityAndNumbers) {
  using W = v1::Window;
  ExpectRefused<W>(
      ValidWindow(),
      {{"profile_id", [](W& w) { w.clear_profile_id(); }},
       {"sequence", [](W& w) { w.set_sequence(0); }},
       {"stream_id", [](W& w) { w.set_stream_id(std::string(wire::kMaxTextBytes + 1, 'x')); }},
       {"duration_ns", [](W& w) { w.set_duration_ns(-1); }},
       {"start_unix_ns", [](W& w) { w.set_start_unix_ns(-1); }},
       {"frequency_hz", [](W& w) { w.mutable_setup()->set_frequency_hz(std::nan("")); }},
       {"provenance", [](W& w) { w.mutable_setup()->clear_provenance(); }},
       {"accounting", [](W& w) { w.mutable_accounting()->set_seen(UINT64_MAX); }},
       {"dropped", [](W& w) { w.mutable_accounting()->add_dropped(1); }},
       {"overhead", [](W& w) { w.mutable_overhead()->set_stop_ns(UINT64_MAX); }}});
}

TEST(Hostile, WindowDictionariesAndRows) {
  using W = v1::Window;
  ExpectRefused<W>(
      ValidWindow(),
      {{"columns", [](W& w) { w.mutable_rows()->add_weight(1); }},
       {"columns", [](W& w) { w.mutable_rows()->clear_samples(); }},
       {"rows.thread", [](W& w) { w.mutable_rows()->set_thread(0, 1); }},
       {"rows.location", [](W& w) { w.mutable_rows()->set_location(0, 1); }},
       {"rows.samples", [](W& w) { w.mutable_rows()->set_samples(0, 0); }},
       {"sums", [](W& w) { w.mutable_rows()->set_samples(0, wire::kMaxSampleTotal + 1); }},
       {"sums", [](W& w) { w.mutable_rows()->set_weight(0, UINT64_MAX); }},
       {"stacks.frames", [](W& w) { w.mutable_stacks(0)->set_frames(0, 1); }},
       {"stacks.rank", [](W& w) { w.mutable_stacks(0)->set_rank(-1); }},
       {"stacks", [](W& w) { w.mutable_stacks(0)->set_samples(UINT64_MAX); }},
       {"calls", [](W& w) { w.mutable_calls()->set_location(0, 1); }},
       {"calls", [](W& w) { w.mutable_calls()->set_loop(0, 2); }},
       {"calls.loop", [](W& w) { w.mutable_calls()->set_loop(0, 1); }},  // the place is no loop
       {"calls.location", [](W& w) { w.mutable_locations(0)->set_category(v1::CATEGORY_KERNEL); }},
       {"calls", [](W& w) { w.mutable_calls()->add_paths(1); }},
       {"calls.paths", [](W& w) { w.mutable_calls()->set_paths(0, 0); }},
       {"calls", [](W& w) { w.mutable_calls()->set_paths(0, UINT64_MAX); }},
       {"threads.tid", [](W& w) { w.mutable_threads(0)->set_tid(-5); }},
       {"rank.source", [](W& w) { w.mutable_ranks(0)->set_source(v1::RankSource(99)); }},
       {"location.category", [](W& w) { w.mutable_locations(0)->set_category(v1::Category(0)); }},
       {"location.kernel_cause",
        [](W& w) { w.mutable_locations(0)->set_kernel_cause(v1::KERNEL_CAUSE_IO); }},
       {"location.kernel_caller",
        [](W& w) {
          w.mutable_locations(0)->set_category(v1::CATEGORY_KERNEL);
          w.mutable_locations(0)->set_kernel_caller(std::string(wire::kMaxTextBytes + 1, 'x'));
        }},
       {"loop.depth", [](W& w) { w.mutable_locations(0)->mutable_loop()->set_depth(0); }}});
}

TEST(Hostile, TwoRowsWhoseSumWouldWrapAreRefused) {
  v1::Window window = ValidWindow();
  window.mutable_rows()->set_weight(0, UINT64_MAX - 1);
  for (int i = 0; i < 2; ++i) {
    window.mutable_rows()->add_thread(0);
    window.mutable_rows()->add_location(0);
    window.mutable_rows()->add_samples(1);
    window.mutable_rows()->add_weight(2);
  }
  EXPECT_FALSE(wire::FromProto(window).ok());
}

TEST(Hostile, CountsAreCappedAtTheirLimit) {
  v1::Window window = ValidWindow();
  while (window.threads_size() < wire::kMaxThreads) window.add_threads();
  EXPECT_TRUE(wire::FromProto(window).ok());
  window.add_threads();
  EXPECT_FALSE(wire::FromProto(window).ok());
}

v1::Window MeasuringWindow() {
  v1::Window window = ValidWindow();
  LoopMeasurement loop;
  loop.profile_id = window.profile_id();
  loop.node = window.node();
  loop.loop_id = "abc";
  loop.figures.resize(1);
  loop.figures[0].saturation = {0.5, 0.4, 0.6};
  loop.references.resize(1);
  loop.trips.instances = 1;
  loop.trip_classes = {{3, 5, 4, loop.figures}};
  *window.add_measurements() = wire::ToProto(loop);
  AuditEntry entry;
  entry.profile_id = window.profile_id();
  entry.node = window.node();
  *window.add_audit() = wire::ToProto(entry);
  window.add_pauses()->set_pause_ns(1);
  return window;
}

TEST(Hostile, Measurements) {
  using W = v1::Window;
  const auto figures = [](W& w) { return w.mutable_measurements(0)->mutable_figures(0); };
  ExpectRefused<W>(
      MeasuringWindow(),
      {{"another profile", [](W& w) { w.mutable_measurements(0)->set_profile_id("p-000099"); }},
       {"another profile", [](W& w) { w.mutable_measurements(0)->set_node("elsewhere"); }},
       {"another profile", [](W& w) { w.mutable_audit(0)->set_node("elsewhere"); }},
       {"loop_id", [](W& w) { w.mutable_measurements(0)->clear_loop_id(); }},
       {"state", [](W& w) { w.mutable_measurements(0)->clear_state(); }},
       {"provenance", [](W& w) { w.mutable_measurements(0)->set_provenance(v1::Provenance(9)); }},
       {"pid", [](W& w) { w.mutable_measurements(0)->set_pid(-1); }},
       {"ratio.low", [=](W& w) { figures(w)->mutable_saturation()->set_low(0.51); }},
       {"ratio.high", [=](W& w) { figures(w)->mutable_saturation()->set_high(0.49); }},
       {"ratio.value", [=](W& w) { figures(w)->mutable_saturation()->set_value(std::nan("")); }},
       {"thread", [=](W& w) { figures(w)->set_thread(-2); }},
       {"pinned", [=](W& w) { figures(w)->set_pinned(1); }},
       {"cycles", [=](W& w) { figures(w)->set_cycles(HUGE_VAL); }},
       {"trips", [](W& w) { w.mutable_measurements(0)->mutable_trips()->add_decile(1); }},
       {"trip_classes.longest",
        [](W& w) { w.mutable_measurements(0)->mutable_trip_classes(0)->set_longest(2); }},
       {"pinned",
        [](W& w) {
          w.mutable_measurements(0)->mutable_trip_classes(0)->mutable_figures(0)->set_pinned(1);
        }},
       {"group", [](W& w) { w.mutable_measurements(0)->mutable_references(0)->set_group(-2); }},
       {"cost.pause_ns", [](W& w) { w.mutable_measurements(0)->mutable_cost()->set_pause_ns(-1); }},
       {"cost.shadow_cpu_ns",
        [](W& w) { w.mutable_measurements(0)->mutable_cost()->set_shadow_cpu_ns(-1); }},
       {"predicted.fork_ns",
        [](W& w) { w.mutable_measurements(0)->mutable_predicted()->set_fork_ns(-1); }},
       {"predicted.most_run_ns",
        [](W& w) { w.mutable_measurements(0)->mutable_predicted()->set_most_run_ns(INT64_MAX); }},
       {"audit.unix_ns", [](W& w) { w.mutable_audit(0)->set_unix_ns(INT64_MAX); }},
       {"audit.pause_ns", [](W& w) { w.mutable_audit(0)->set_pause_ns(INT64_MAX); }},
       {"pauses.begin_ns", [](W& w) { w.mutable_pauses(0)->set_begin_ns(-1); }},
       {"pauses.pause_ns", [](W& w) { w.mutable_pauses(0)->set_pause_ns(INT64_MAX); }},
       {"pauses.error_ns", [](W& w) { w.mutable_pauses(0)->set_error_ns(-1); }},
       {"pauses_dropped", [](W& w) { w.set_pauses_dropped(UINT64_MAX); }}});
}

TEST(Hostile, ElapsedTimeOfWindows) {
  using W = v1::Window;
  v1::Window window = ValidWindow();
  window.add_rank_times()->set_elapsed_ns(1000);
  window.mutable_rows()->add_wall_ns(500);
  ExpectRefused<W>(
      window,
      {{"columns", [](W& w) { w.mutable_rows()->clear_wall_ns(); }},
       {"columns", [](W& w) { w.clear_rank_times(); }},
       {"rank_times.rank", [](W& w) { w.mutable_rank_times(0)->set_rank(-1); }},
       {"rank_times.pid", [](W& w) { w.mutable_rank_times(0)->set_pid(-1); }},
       {"rank_times: the sums",
        [](W& w) { w.mutable_rank_times(0)->set_elapsed_ns(wire::kMaxWallTotal + 1); }},
       {"rank_times: the sums", [](W& w) { w.mutable_rank_times(0)->set_cpu_wait_ns(UINT64_MAX); }},
       {"rows: the sums", [](W& w) { w.mutable_rows()->set_wall_ns(0, UINT64_MAX); }}});
}

// What is sent is cut to it, what comes is refused beyond it, and what was stored before there was a limit can be read.
TEST(Hostile, TextsOfAuditEntriesAreBounded) {
  AuditEntry entry;
  entry.outcome.assign(wire::kMaxAuditTextBytes + 1, 'x');
  EXPECT_EQ(wire::ToProto(entry).outcome().size(), wire::kMaxAuditTextBytes);
  const std::string longest(wire::kMaxAuditTextBytes, 'x');
  using Set = void (*)(v1::AuditEntry&, const std::string&);
  for (const Set set :
       {Set([](v1::AuditEntry&e, const std::string&s) { e.set_outcome(s); }),
        Set([](v1::AuditEntry&e, const std::string&s) { e.set_action(s); }),
        Set([](v1::AuditEntry&e, const std::string&s) { e.set_loop_id(s); }),
        Set([](v1::AuditEntry&e, const std::string&s) { e.set_original_bytes(s); }),
        Set([](v1::AuditEntry&e, const std::string&s) { e.set_written_bytes(s); })}) {
    v1::Window window = MeasuringWindow();
    set(*window.mutable_audit(0), longest);
    EXPECT_TRUE(wire::FromProto(window).ok());
    set(*window.mutable_audit(0), longest + "x");
    EXPECT_FALSE(wire::FromProto(window).ok());
    EXPECT_TRUE(wire::FromProto(window.audit(0)).ok());
  }
}

TEST(Hostile, TripClassesAreCapped) {
  v1::Window window = MeasuringWindow();
  auto& classes = *window.mutable_measurements(0)->mutable_trip_classes();
  while (classes.size() < wire::kMaxTripClasses) *classes.Add() = v1::TripClass(classes[0]);
  EXPECT_TRUE(wire::FromProto(window).ok());
  *classes.Add() = v1::TripClass(classes[0]);
  EXPECT_FALSE(wire::FromProto(window).ok());
}

TEST(Hostile, MeasurementsAreCapped) {
  v1::Window window = MeasuringWindow();
  auto& open = *window.mutable_measurements(0)->mutable_open();
  while (open.size() < wire::kMaxVariants) open.Add("LS");
  EXPECT_TRUE(wire::FromProto(window).ok());
  open.Add("LS");
  EXPECT_FALSE(wire::FromProto(window).ok());
}

TEST(Hostile, MeasureCommand) {
  using M = v1::MeasureCommand;
  MeasureOrder order;
  order.profile_id = "p-000001";
  order.lease = PauseLease{250'000'000, 200'000'000, 2, {5, 7, 1}};
  ExpectRefused<M>(
      wire::ToProto(order),
      {{"profile_id", [](M& m) { m.clear_profile_id(); }},
       {"repetitions", [](M& m) { m.set_repetitions(1001); }},
       {"overhead_ratio", [](M& m) { m.set_overhead_ratio(0.51); }},
       {"stop_ns", [](M& m) { m.set_stop_ns(-1); }},
       {"lease.period_ns", [](M& m) { m.mutable_lease()->set_period_ns(999'999); }},
       {"lease.period_ns", [](M& m) { m.mutable_lease()->set_period_ns(INT64_MAX); }},
       {"lease.window_ns", [](M& m) { m.mutable_lease()->set_window_ns(250'000'001); }},
       {"lease.window_ns", [](M& m) { m.mutable_lease()->set_window_ns(0); }},
       {"lease.nodes", [](M& m) { m.mutable_lease()->set_nodes(0); }},
       {"clock.here_ns", [](M& m) { m.mutable_lease()->mutable_clock()->set_here_ns(-1); }},
       {"clock.job_ns", [](M& m) { m.mutable_lease()->mutable_clock()->set_job_ns(INT64_MAX); }},
       {"clock.error_ns", [](M& m) { m.mutable_lease()->mutable_clock()->set_error_ns(-1); }}});
}

v1::ProfileSpec ValidSpec() {
  ProfileSpec spec;
  spec.target.pids = {7};
  spec.ranks = {{0, 3}};
  return wire::ToProto(spec);
}

TEST(Hostile, Spec) {
  using S = v1::ProfileSpec;
  ExpectRefused<S>(
      ValidSpec(),
      {{"target", [](S& s) { s.clear_target(); }},
       {"pids", [](S& s) { s.mutable_target()->mutable_pids()->set_pids(0, 0); }},
       {"pids", [](S& s) { s.mutable_target()->mutable_pids()->clear_pids(); }},
       {"command", [](S& s) { s.mutable_target()->set_command(""); }},
       {"slurm_job", [](S& s) { s.mutable_target()->set_slurm_job(0); }},
       {"ranks.last", [](S& s) { s.mutable_ranks(0)->set_first(4); }},
       {"duration_ns", [](S& s) { s.set_duration_ns(999'999'999); }},
       {"overhead_ratio", [](S& s) { s.mutable_budget()->set_overhead_ratio(0.51); }},
       {"overhead_ratio", [](S& s) { s.mutable_budget()->set_overhead_ratio(std::nan("")); }},
       {"stop_ns", [](S& s) { s.mutable_budget()->set_stop_ns(0); }},
       {"frequency_hz", [](S& s) { s.mutable_hotspots()->set_frequency_hz(10'001); }},
       {"coverage", [](S& s) { s.mutable_hotspots()->set_coverage_ratio(-0.1); }},
       {"max_loops", [](S& s) { s.mutable_hotspots()->set_max_loops(0); }},
       {"callpaths", [](S& s) { s.mutable_hotspots()->clear_callpaths(); }},
       {"event", [](S& s) { s.mutable_hotspots()->clear_event(); }},
       {"repetitions", [](S& s) { s.mutable_variants()->set_repetitions(2); }},
       {"mode", [](S& s) { s.mutable_variants()->set_mode("Recovery"); }},
       {"trace", [](S& s) { s.mutable_memory()->set_trace("on"); }},
       {"name", [](S& s) { s.set_name(std::string(129, 'n')); }}});
}

TEST(Hostile, Report) {
  using R = v1::Report;
  Report report;
  report.loops.resize(1);
  report.stacks.resize(1);
  ExpectRefused<R>(
      wire::ToProto(report),
      {{"category", [](R& r) { r.add_category_share(0); }},
       {"category_share", [](R& r) { r.set_category_share(0, -1); }},
       {"imbalance", [](R& r) { r.set_imbalance(HUGE_VAL); }},
       {"provenance", [](R& r) { r.set_provenance(v1::Provenance(8)); }},
       {"share_interval", [](R& r) { r.mutable_loops(0)->mutable_share_interval()->set_low(0.5); }},
       {"row.share", [](R& r) { r.mutable_loops(0)->set_share(2); }},
       {"row.wall.share", [](R& r) { r.mutable_loops(0)->mutable_wall()->set_share(2); }},
       {"row.wall.interval",
        [](R& r) { r.mutable_loops(0)->mutable_wall()->mutable_interval()->set_low(0.5); }},
       {"row.wall.inclusive",
        [](R& r) { r.mutable_loops(0)->mutable_wall()->set_inclusive_share(-1); }},
       {"wall_share_of_rank",
        [](R& r) { r.mutable_loops(0)->add_ranks()->set_wall_share_of_rank(2); }},
       {"report.wall: one share", [](R& r) { r.mutable_wall()->add_category_share(0); }},
       {"elapsed_seconds", [](R& r) { r.add_ranks()->set_elapsed_seconds(HUGE_VAL); }},
       {"cpu_wait_seconds", [](R& r) { r.add_ranks()->set_cpu_wait_seconds(-1); }},
       {"row.last_seen_ns", [](R& r) { r.mutable_loops(0)->set_last_seen_ns(-1); }},
       {"row.first_seen_ns: after", [](R& r) { r.mutable_loops(0)->set_first_seen_ns(INT64_MAX); }},
       {"stacks.rank", [](R& r) { r.mutable_stacks(0)->set_rank(-1); }},
       {"state", [](R& r) { r.mutable_status()->clear_state(); }},
       {"progress", [](R& r) { r.mutable_status()->set_progress_ratio(1.5); }}});
}

TEST(Hostile, ReaderReply) {
  v1::ReaderReply reply = wire::ToProto(ModuleFacts{});
  EXPECT_TRUE(wire::ModuleFactsFromProto(reply).ok());
  reply.clear_lines_problem();
  EXPECT_FALSE(wire::ModuleFactsFromProto(reply).ok()) << "why there are no lines is unspecified";
  reply = wire::ToProto(ModuleFacts{});
  reply.add_segments()->set_file_offset(UINT64_MAX);
  reply.mutable_segments(0)->set_file_size(1);
  EXPECT_FALSE(wire::ModuleFactsFromProto(reply).ok());

  reply = v1::ReaderReply();
  v1::FunctionFacts* function = reply.add_functions();
  EXPECT_FALSE(wire::CodeFactsFromProto(reply).ok()) << "source is unspecified";
  function->set_source(v1::FUNCTION_SOURCE_SYMBOL);
  EXPECT_TRUE(wire::CodeFactsFromProto(reply).ok());
  function->set_low(5);
  EXPECT_FALSE(wire::CodeFactsFromProto(reply).ok()) << "low above high";
}

TEST(Hostile, SpansOutOfOrderOrOfNoLoop) {
  v1::ReaderReply reply;
  v1::FunctionFacts* function = reply.add_functions();
  function->set_source(v1::FUNCTION_SOURCE_SYMBOL);
  function->add_loops()->set_depth(1);
  for (uint64_t low : {10u, 20u}) {
    v1::LoopSpan* span = function->add_spans();
    span->set_low(low);
    span->set_high(low + 10);
  }
  EXPECT_TRUE(wire::CodeFactsFromProto(reply).ok());
  function->mutable_spans(1)->set_low(19);
  EXPECT_FALSE(wire::CodeFactsFromProto(reply).ok()) << "overlap";
  function->mutable_spans(1)->set_low(30);
  EXPECT_FALSE(wire::CodeFactsFromProto(reply).ok()) << "empty";
  function->mutable_spans(1)->set_low(20);
  function->mutable_spans(1)->set_loop(1);
  EXPECT_FALSE(wire::CodeFactsFromProto(reply).ok()) << "no such loop";
}

TEST(Hostile, PartsOfAFunctionOutOfOrderOrWithinEachOther) {
  v1::ReaderReply reply;
  v1::FunctionFacts* function = reply.add_functions();
  function->set_source(v1::FUNCTION_SOURCE_SYMBOL);
  function->set_low(100);
  function->set_high(200);
  for (uint64_t low : {90u, 200u}) {
    v1::CodeRange* part = function->add_further_parts();
    part->set_low(low);
    part->set_high(low + 10);
  }
  EXPECT_TRUE(wire::CodeFactsFromProto(reply).ok());
  function->mutable_further_parts(1)->set_low(199);
  EXPECT_FALSE(wire::CodeFactsFromProto(reply).ok()) << "within the first part";
  function->mutable_further_parts(1)->set_low(210);
  EXPECT_FALSE(wire::CodeFactsFromProto(reply).ok()) << "empty";
  function->mutable_further_parts(1)->set_low(95);
  function->mutable_further_parts(1)->set_high(100);
  EXPECT_FALSE(wire::CodeFactsFromProto(reply).ok()) << "overlap";
}

TEST(Hostile, AReaderErrorBecomesItsStatus) {
  v1::ReaderReply reply;
  reply.set_error_code(5);
  reply.set_error("no such file");
  EXPECT_EQ(wire::CodeFactsFromProto(reply).status(), absl::NotFoundError("no such file"));
  reply.set_error_code(99);
  EXPECT_EQ(wire::ModuleFactsFromProto(reply).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Hostile, UnwindMessages) {
  v1::UnwindRequest request = wire::ToProto(StackCopy{});
  EXPECT_TRUE(wire::FromProto(request).ok());
  request.mutable_stack()->resize(kMaxStackCopyBytes);
  EXPECT_TRUE(wire::FromProto(request).ok());
  request.mutable_stack()->push_back(0);
  EXPECT_FALSE(wire::FromProto(request).ok()) << "more than one record holds";
  request.clear_stack();
  request.add_registers(1);
  EXPECT_FALSE(wire::FromProto(request).ok()) << "18 registers";

  v1::UnwindReply reply;
  reply.mutable_addresses()->Resize(kMaxCallPathFrames, 1);
  EXPECT_TRUE(wire::FromProto(reply).ok());
  reply.add_addresses(1);
  EXPECT_FALSE(wire::FromProto(reply).ok());
  reply.set_error_code(4);
  EXPECT_EQ(wire::FromProto(reply).status().code(), absl::StatusCode::kDeadlineExceeded);
  reply.set_error_code(99);
  EXPECT_EQ(wire::FromProto(reply).status().code(), absl::StatusCode::kInvalidArgument);

  v1::UnwindTarget target = wire::ToProto(std::vector<CodeMapping>{
      {.start = 1, .end = 2, .path = "/a"}, {.start = 2, .end = 3, .path = "/b"}});
  EXPECT_TRUE(wire::FromProto(target).ok());
  target.mutable_mappings(0)->set_end(3);
  EXPECT_FALSE(wire::FromProto(target).ok()) << "overlap";
  target.mutable_mappings(0)->set_end(1);
  EXPECT_FALSE(wire::FromProto(target).ok()) << "empty";
}

TEST(Hostile, NoticeAndPhase) {
  v1::Notice notice = wire::ToProto(Notice{});
  EXPECT_TRUE(wire::FromProto(notice).ok());
  notice.set_code(17);
  EXPECT_FALSE(wire::FromProto(notice).ok());
  EXPECT_FALSE(wire::FromProto(v1::NODE_PHASE_UNSPECIFIED).ok());
  EXPECT_FALSE(wire::FromProto(v1::NodePhase(8)).ok());
}

}  // namespace
}  // namespace perfd
