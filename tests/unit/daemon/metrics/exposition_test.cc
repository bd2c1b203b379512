#include "daemon/metrics/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>
#include <sys/wait.h>

#include <cstdio>
#include <memory>
#include <string>

#include "daemon/metrics/metrics_server.h"
#include "tests/unit/daemon/metrics/http_get.h"

namespace perfd {
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
  figures.hot[0].measured = {
      {.loop = "0123456789abcdef", .gain_ratio = 0.25, .saturations = {{"LS", 0.97}}}};
  figures.hot[0].measure_states = {{"measured", 1}, {"refused", 2}};
  figures.injections = {{"shadow", 5}};
  figures.injection_pause_seconds = 0.5;
  figures.agents = {{"node1", 1 << 20, 2.5, 4096, 3}};
  return figures;
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
  const std::string text =
      prometheus::TextSerializer().Serialize(Expose(Sample(), ReadProcessFigures()));
  EXPECT_THAT(text, HasSubstr("perfd_profiles{state=\"DONE\"} 2"));
  EXPECT_THAT(text, HasSubstr("perfd_windows_stored_total 17"));
  EXPECT_THAT(
      text,
      HasSubstr("perfd_loop_share_ratio{profile=\"p-000001\",loop=\"0123456789abcdef\"} 0.5"));
  EXPECT_THAT(text, HasSubstr("perfd_loop_saturation_ratio{profile=\"p-000001\",loop="
                              "\"0123456789abcdef\",variant=\"LS\"} 0.97"));
  EXPECT_THAT(text, HasSubstr("perfd_loop_gain_ratio{profile=\"p-000001\",loop="
                              "\"0123456789abcdef\"} 0.25"));
  EXPECT_THAT(text, HasSubstr("perfd_profile_loops{profile=\"p-000001\",state=\"refused\"} 2"));
  EXPECT_THAT(text, HasSubstr("perfd_injections_total{action=\"shadow\"} 5"));
  EXPECT_THAT(text, HasSubstr("perfd_injection_pause_seconds_total 0.5"));
  EXPECT_THAT(text, HasSubstr("name=\"a \\\"quoted\\\"\\nname\""));
  EXPECT_THAT(text, HasSubstr("perfd_agent_cpu_seconds_total{node=\"node1\"} 2.5"));
  EXPECT_THAT(text, HasSubstr("perfd_agent_windows_set_aside_total{node=\"node1\"} 3"));
  for (const char* forbidden : {"pid=", "rank=", "address="})
    EXPECT_THAT(text, Not(HasSubstr(forbidden)));
}

TEST(ProcessFigures, AreOurs) {
  const ProcessFigures figures = ReadProcessFigures();
  EXPECT_GT(figures.resident_bytes, 1u << 20);
  EXPECT_GE(figures.open_fds, 3u);
  EXPECT_GT(figures.start_time_seconds, 1e9);
}

TEST(MetricsServer, ServesWhatPromtoolAccepts) {
  auto server = MetricsServer::Create("127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  (*server)->ObserveCommit(0.003);
  (*server)->ObserveAttach(0.4);
  (*server)->Serve(Sample);
  const std::string text = HttpGet((*server)->address(), "/metrics");
  EXPECT_THAT(text, HasSubstr("perfd_store_commit_seconds_count 1"));
  EXPECT_THAT(text, HasSubstr("perfd_attach_seconds_sum 0.4"));
  EXPECT_THAT(text, HasSubstr("perfd_stop_seconds_count 0"));
  EXPECT_THAT(text, HasSubstr("perfd_build_info{"));
  const int code = Promtool(text);
  if (code == kSkip) GTEST_SKIP() << "promtool is not installed";
  EXPECT_EQ(code, 0) << text;
}

TEST(MetricsServer, ATakenPortIsAnError) {
  auto first = MetricsServer::Create("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const auto second = MetricsServer::Create((*first)->address());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(MetricsServer::Create("9754").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace perfd
