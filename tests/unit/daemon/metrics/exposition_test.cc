#include "daemon/metrics/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "daemon/metrics/families.h"
#include "daemon/metrics/metrics_page.h"

namespace perfd::daemon {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kSkip = 77;

DaemonFigures Sample() {
  DaemonFigures figures;
  figures.profiles = {{"PENDING", 1}, {"DONE", 2}};
  figures.windows_dropped = {{"unknown_profile", 3}};
  figures.samples = {{"loop", 100}};
  figures.samples_dropped = {{"queue_full", 4}};
  figures.windows_stored = 17;
  figures.hot = {{.id = "p-000001",
                  .name = "a \"quoted\"\nname",
                  .user = "alice",
                  .loops = {{"0123456789abcdef", "kernel(int)", "a.c", 10, "/bin/app", 0.5}}}};
  figures.hot[0].measured = {{.loop = "0123456789abcdef",
                              .gain_ratio = 0.25,
                              .gain_ranks_ratio = 0.5,
                              .saturations = {{"LS", 0.97}},
                              .bound = "memory bound",
                              .level = "L2"}};
  figures.hot[0].command = "app";
  figures.hot[0].slurm_job = "4711";
  figures.hot[0].progress = {.state = "SAMPLING",
                             .samples = 1234,
                             .nodes = 2,
                             .ranks = 8,
                             .threads = 16,
                             .progress_ratio = 0.5,
                             .budget_ratio = 0.02,
                             .submitted_seconds = 1.7e9,
                             .finished_seconds = 0};
  figures.hot[0].measure_states = {{"measured", 1}, {"refused", 2}};
  figures.injections = {{"shadow", 5}};
  figures.injection_pause_seconds = 0.5;
  figures.agents = {{.node = "node1",
                     .resident_bytes = 1 << 20,
                     .cpu_seconds = 2.5,
                     .spool_bytes = 4096,
                     .set_aside_windows = 3,
                     .certificate_expiry_seconds = 1'900'000'000,
                     .ring_bytes = 65536}};
  return figures;
}

// The same profile, once its report is made.
DaemonFigures SampleOver() {
  DaemonFigures figures = Sample();
  ProfileFigure& profile = figures.hot[0];
  profile.progress.state = "DONE";
  profile.progress.finished_seconds = 1.8e9;
  profile.outcome = OutcomeFigure{.missing_ratio = 0.125,
                                  .sampling_overhead_ratio = 0.25,
                                  .added_time_ratio = 0.0625,
                                  .imbalance_ratio = 1.5,
                                  .category_shares = {{"loops", 0.75}, {"kernel", 0.25}}};
  profile.loops[0].memory = {.beyond_l2_ratio = 0.75, .walks_ratio = 0.5};
  profile.loops[0].spread = SpreadFigure{.rank_min_seconds = 1,
                                         .rank_median_seconds = 2,
                                         .rank_max_seconds = 4,
                                         .rank_imbalance_ratio = 1.75,
                                         .thread_imbalance_ratio = 1.25};
  return figures;
}

DaemonFigures SampleWithArchive() {
  DaemonFigures figures = Sample();
  figures.refused = {.http = 9, .limits = {{"watches", 3}}};
  figures.archive = ArchiveFigure{.written = 7,
                                  .failures = 2,
                                  .dropped = 1,
                                  .pending = 3,
                                  .deleted = 4,
                                  .files = 5,
                                  .bytes = 600,
                                  .healthy = false};
  return figures;
}

// As many as the pipeline shows at most (daemon/pipeline/pipeline_figures.cc, docs/metrics.md).
DaemonFigures Fullest() {
  DaemonFigures figures = SampleOver();
  figures.profiles.assign(9, {"STATE", 1});
  figures.windows_dropped.assign(8, {"reason", 1});
  figures.samples.assign(5, {"category", 1});
  figures.agent_versions.assign(17, {"version", 1});
  figures.samples_dropped.assign(4, {"reason", 1});
  figures.injections.assign(8, {"action", 1});
  ProfileFigure profile = figures.hot[0];
  profile.outcome->category_shares.assign(5, {"category", 0.2});
  profile.loops = std::vector<LoopFigure>(12, profile.loops[0]);
  profile.measured[0].saturations.assign(9, {"LS", 1});
  profile.measured = std::vector<MeasuredFigure>(12, profile.measured[0]);
  profile.measure_states.assign(4, {"measured", 1});
  figures.hot.assign(20, profile);
  figures.archive = ArchiveFigure{};
  figures.agents = std::vector<AgentFigure>(1024, figures.agents[0]);
  return figures;
}

std::string TextOf(DaemonFigures figures, MetricNames names = MetricNames::kShown) {
  figures.names = names;
  return prometheus::TextSerializer().Serialize(Expose(figures, ReadProcessFigures()));
}

// The exit code of `promtool check metrics` for this text, or kSkip when there is none.
int Promtool(const std::string& text) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) return kSkip;
  FILE* pipe = ::popen("promtool check metrics 1>&2", "w");
  if (pipe == nullptr) return -1;
  std::fwrite(text.data(), 1, text.size(), pipe);
  const int status = ::pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Exposition, HasTheFigures) {
  const std::string text = TextOf(Sample());
  EXPECT_THAT(text, HasSubstr("perfd_profiles{state=\"DONE\"} 2"));
  EXPECT_THAT(text, HasSubstr("perfd_windows_stored_total 17"));
  EXPECT_THAT(
      text,
      HasSubstr("perfd_loop_share_ratio{profile=\"p-000001\",loop=\"0123456789abcdef\"} 0.5"));
  EXPECT_THAT(text, HasSubstr("perfd_loop_saturation_ratio{profile=\"p-000001\",loop="
                              "\"0123456789abcdef\",variant=\"LS\"} 0.97"));
  EXPECT_THAT(text, HasSubstr("perfd_loop_gain_ratio{profile=\"p-000001\",loop="
                              "\"0123456789abcdef\"} 0.25"));
  EXPECT_THAT(text, HasSubstr("perfd_loop_gain_ranks_ratio{profile=\"p-000001\",loop="
                              "\"0123456789abcdef\"} 0.5"));
  EXPECT_THAT(text, HasSubstr("perfd_profile_loops{profile=\"p-000001\",state=\"refused\"} 2"));
  EXPECT_THAT(text, HasSubstr("perfd_injections_total{action=\"shadow\"} 5"));
  EXPECT_THAT(text, HasSubstr("perfd_injection_pause_seconds_total 0.5"));
  EXPECT_THAT(text, HasSubstr("name=\"a \\\"quoted\\\"\\\\x0aname\""));
  EXPECT_THAT(text, HasSubstr("perfd_agent_cpu_seconds_total{node=\"node1\"} 2.5"));
  EXPECT_THAT(text, HasSubstr("perfd_agent_windows_set_aside_total{node=\"node1\"} 3"));
  EXPECT_THAT(text, HasSubstr("perfd_agents_ring_bytes_max 65536"));
  for (const char* forbidden : {"pid=", "rank=", "address="})
    EXPECT_THAT(text, Not(HasSubstr(forbidden)));
}

TEST(Exposition, ShowsWhenCertificatesEndAndWhoWasRefused) {
  DaemonFigures figures;
  figures.tls.refused = {{"revoked", 3}};
  figures.tls.expiry_seconds = {{"ca", 2'000'000'000}, {"server", 1'900'000'000}};
  figures.agents = {{.node = "node1", .certificate_expiry_seconds = 1'800'000'000},
                    {.node = "node2", .certificate_expiry_seconds = 1'900'000'000},
                    {.node = "local"}};
  const std::string text = TextOf(figures);
  for (const char* line :
       {"perfd_certificates_refused_total{reason=\"revoked\"} 3\n",
        "perfd_certificate_expiry_timestamp_seconds{certificate=\"ca\"} 2000000000\n",
        "perfd_certificate_expiry_timestamp_seconds{certificate=\"server\"} 1900000000\n",
        "perfd_certificate_expiry_timestamp_seconds{certificate=\"agents\"} 1800000000\n"})
    EXPECT_THAT(text, HasSubstr(line));
  figures.agents = {{.node = "local"}};
  EXPECT_THAT(TextOf(figures), Not(HasSubstr("{certificate=\"agents\"}")));
}

TEST(Exposition, ShowsHowFarAProfileIs) {
  const std::string text = TextOf(Sample());
  EXPECT_THAT(text, HasSubstr("user=\"alice\",command=\"app\",slurm_job=\"4711\"} 1"));
  EXPECT_THAT(text, HasSubstr("perfd_profile_state{profile=\"p-000001\",state=\"SAMPLING\"} 1"));
  EXPECT_THAT(text, HasSubstr("# TYPE perfd_profile_samples_total counter"));
  for (const char* line :
       {"samples_total{profile=\"p-000001\"} 1234", "nodes{profile=\"p-000001\"} 2",
        "ranks{profile=\"p-000001\"} 8", "threads{profile=\"p-000001\"} 16",
        "progress_ratio{profile=\"p-000001\"} 0.5", "budget_ratio{profile=\"p-000001\"} 0.02",
        "submitted_timestamp_seconds{profile=\"p-000001\"} 1700000000"})
    EXPECT_THAT(text, HasSubstr(std::string("\nperfd_profile_") + line + "\n"));
  EXPECT_THAT(text, HasSubstr("perfd_loop_verdict_info{profile=\"p-000001\",loop="
                              "\"0123456789abcdef\",bound=\"memory bound\",level=\"L2\"} 1"));
  // What only the report tells is not there yet, rather than zero.
  for (const char* name : {"perfd_profile_finished_timestamp_seconds{",
                           "perfd_profile_missing_ratio{", "perfd_loop_rank_imbalance_ratio{",
                           "perfd_loop_memory_beyond_l2_ratio{", "perfd_loop_dtlb_walks_ratio{"})
    EXPECT_THAT(text, Not(HasSubstr(name)));
}

TEST(Exposition, ControlBytesOfNamesStandThereAsText) {
  prometheus::MetricFamily family = NewFamily("x", "y", prometheus::MetricType::Gauge);
  AddSeries(family, 1, {{"file", "a\x1b]0;b\x07\n"}});
  EXPECT_EQ(family.metric[0].label[0].value, "a\\x1b]0;b\\x07\\x0a");
}

TEST(Exposition, ShowsTheOutcomeOfAProfile) {
  const std::string text = TextOf(SampleOver());
  for (const char* line :
       {"profile_finished_timestamp_seconds{profile=\"p-000001\"} 1800000000",
        "profile_missing_ratio{profile=\"p-000001\"} 0.125",
        "profile_sampling_overhead_ratio{profile=\"p-000001\"} 0.25",
        "profile_added_time_ratio{profile=\"p-000001\"} 0.0625",
        "profile_imbalance_ratio{profile=\"p-000001\"} 1.5",
        "profile_category_share_ratio{profile=\"p-000001\",category=\"kernel\"} 0.25",
        "loop_rank_min_seconds{profile=\"p-000001\",loop=\"0123456789abcdef\"} 1",
        "loop_rank_median_seconds{profile=\"p-000001\",loop=\"0123456789abcdef\"} 2",
        "loop_rank_max_seconds{profile=\"p-000001\",loop=\"0123456789abcdef\"} 4",
        "loop_rank_imbalance_ratio{profile=\"p-000001\",loop=\"0123456789abcdef\"} 1.75",
        "loop_thread_imbalance_ratio{profile=\"p-000001\",loop=\"0123456789abcdef\"} 1.25",
        "loop_memory_beyond_l2_ratio{profile=\"p-000001\",loop=\"0123456789abcdef\"} 0.75",
        "loop_dtlb_walks_ratio{profile=\"p-000001\",loop=\"0123456789abcdef\"} 0.5"})
    EXPECT_THAT(text, HasSubstr(std::string("\nperfd_") + line + "\n"));
}

TEST(Exposition, StaysBelowTenThousandSeries) {
  size_t series = 39;  // histograms, times of the page
  for (const auto& family : Expose(Fullest(), ReadProcessFigures())) series += family.metric.size();
  EXPECT_LT(series, 9'770u);  // docs/metrics.md says 9,700
  EXPECT_GT(series, 9'400u);
}

// Whoever logs in on the host reads the page. Every text of a figure that comes from a job or its user is tried.
TEST(Exposition, NamesNobodyUnlessAsked) {
  DaemonFigures figures = SampleOver();
  ProfileFigure& profile = figures.hot[0];
  for (std::string* text :
       {&profile.name, &profile.user, &profile.command, &profile.slurm_job,
        &profile.loops[0].function, &profile.loops[0].file, &profile.loops[0].module})
    *text = "SECRET";
  profile.loops[0].line = 987654;
  const std::string text = TextOf(figures, MetricNames::kHidden);
  EXPECT_THAT(text, Not(HasSubstr("SECRET")));
  EXPECT_THAT(text, Not(HasSubstr("987654")));
  EXPECT_THAT(text, HasSubstr("\nperfd_profile_info{profile=\"p-000001\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("\nperfd_loop_info{profile=\"p-000001\",loop=\"0123456789abcdef\"} 1\n"));
  // All series are there, and only these two families have fewer labels.
  const std::string named = TextOf(figures);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'),
            std::count(named.begin(), named.end(), '\n'));
  EXPECT_THAT(named, HasSubstr("user=\"SECRET\""));
  const int code = Promtool(text);
  if (code == kSkip) GTEST_SKIP() << "promtool is not installed";
  EXPECT_EQ(code, 0) << text;
}

TEST(MetricsPage, NamesNobodyUnlessAsked) {
  MetricsPage page;
  page.Serve(Sample);
  EXPECT_THAT(page.Text(), Not(HasSubstr("alice")));
}

TEST(Exposition, ShowsWhatBecameOfTheAuditLog) {
  DaemonFigures figures = Sample();
  figures.audit = {.bytes = 123, .trimmed_for_age = 4, .trimmed_for_size = 5};
  const std::string text = TextOf(figures);
  EXPECT_THAT(text, HasSubstr("\nperfd_audit_bytes 123\n"));
  EXPECT_THAT(text, HasSubstr("perfd_audit_trimmed_total{reason=\"age\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("perfd_audit_trimmed_total{reason=\"size\"} 5\n"));
}

TEST(Exposition, CountsAgentsByVersion) {
  DaemonFigures figures = Sample();
  figures.agent_versions = {{"1.0", 3}, {"1.1", 1}};
  EXPECT_THAT(TextOf(figures), HasSubstr("perfd_agent_versions{version=\"1.0\"} 3\n"));
}

TEST(Exposition, AnUnreadableStoreIsAFigure) {
  DaemonFigures figures = Sample();
  EXPECT_THAT(TextOf(figures), HasSubstr("perfd_store_readable 1"));
  figures.store.readable = false;
  EXPECT_THAT(TextOf(figures), HasSubstr("perfd_store_readable 0"));
}

TEST(ProcessFigures, AreOurs) {
  const ProcessFigures figures = ReadProcessFigures();
  EXPECT_GT(figures.resident_bytes, 1u << 20);
  EXPECT_GE(figures.open_fds, 3u);
  EXPECT_GT(figures.start_time_seconds, 1e9);
}

TEST(MetricsPage, IsWhatPromtoolAccepts) {
  MetricsPage page;
  page.ObserveCommit(0.003);
  page.ObserveAttach(0.4);
  page.Serve(SampleWithArchive);
  const std::string text = page.Text();
  EXPECT_THAT(text, HasSubstr("perfd_store_commit_seconds_count 1"));
  EXPECT_THAT(text, HasSubstr("perfd_attach_seconds_sum 0.4"));
  EXPECT_THAT(text, HasSubstr("perfd_stop_seconds_count 0"));
  EXPECT_THAT(text, HasSubstr("perfd_build_info{"));
  EXPECT_THAT(text, HasSubstr("\nperfd_snapshot_timestamp_seconds 1"));  // not 0
  EXPECT_THAT(text, HasSubstr("\nperfd_window_stored_timestamp_seconds 1"));
  const int code = Promtool(text);
  if (code == kSkip) GTEST_SKIP() << "promtool is not installed";
  EXPECT_EQ(code, 0) << text;
}

TEST(MetricsPage, ShowsWhatHappenedSinceTheSnapshot) {
  MetricsPage page;
  page.Serve(Sample);
  page.ObserveCommit(0.003);
  EXPECT_THAT(page.Text(), HasSubstr("perfd_store_commit_seconds_count 1"));
  page.Stop();
  EXPECT_THAT(page.Text(), HasSubstr("perfd_windows_stored_total 17"));
}

TEST(Exposition, ShowsTheArchiveWhereThereIsOne) {
  EXPECT_THAT(TextOf(Sample()), Not(HasSubstr("perfd_archive_")));
  const std::string text = TextOf(SampleWithArchive());
  for (const char* line :
       {"archive_written_total 7", "archive_failures_total 2", "archive_dropped_total 1",
        "archive_pending 3", "archive_deleted_total 4", "archive_files 5", "archive_bytes 600",
        "archive_healthy 0", "http_refused_total 9", "limit_hits_total{limit=\"watches\"} 3"})
    EXPECT_THAT(text, HasSubstr(std::string("\nperfd_") + line + "\n"));
}

}  // namespace
}  // namespace perfd::daemon
