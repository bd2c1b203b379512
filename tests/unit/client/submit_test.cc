#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/client/command_runner.h"

namespace perfd::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(SubmitTest, PidsNeedNoFile) {
  CommandRunner perfctl;
  EXPECT_EQ(
      perfctl.Run({"submit", "--pid", "11", "12", "--pid", "13,14", "--duration", "30s",
                   "--frequency", "99Hz", "--callpaths", "fp", "--name", "x", "--ranks", "0-3"}),
      0)
      << perfctl.err;
  EXPECT_EQ(perfctl.out, "p-000042\n");
  ASSERT_TRUE(perfctl.daemon.submitted.has_value());
  const ProfileSpec& spec = *perfctl.daemon.submitted;
  EXPECT_EQ(spec.target.pids, (std::vector<int32_t>{11, 12, 13, 14}));
  EXPECT_EQ(spec.duration_ns, 30'000'000'000);
  EXPECT_EQ(spec.hotspots.frequency_hz, 99);
  EXPECT_EQ(spec.hotspots.callpaths, CallPaths::kFramePointer);
  EXPECT_EQ(spec.ranks, (std::vector<RankRange>{{0, 3}}));
  EXPECT_EQ(spec.name, "x");
}

TEST(SubmitTest, ReadsStandardInputAndFlagsWin) {
  CommandRunner perfctl;
  perfctl.input = "target: {command: lulesh2.0}\nduration: 90s\n";
  EXPECT_EQ(perfctl.Run({"submit", "-", "--duration", "5s", "--user", "bob"}), 0) << perfctl.err;
  EXPECT_EQ(perfctl.daemon.submitted->target.command, "lulesh2.0");
  EXPECT_EQ(perfctl.daemon.submitted->target.user, "bob");
  EXPECT_EQ(perfctl.daemon.submitted->duration_ns, 5'000'000'000);
}

TEST(SubmitTest, LastsUntilItKnowsUnlessATimeIsGiven) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "1"}), 0) << perfctl.err;
  EXPECT_TRUE(perfctl.daemon.submitted->until_known);
  EXPECT_EQ(perfctl.daemon.submitted->duration_ns, 600'000'000'000);
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "1", "--max-duration", "3m"}), 0) << perfctl.err;
  EXPECT_TRUE(perfctl.daemon.submitted->until_known);
  EXPECT_EQ(perfctl.daemon.submitted->duration_ns, 180'000'000'000);
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "1", "--duration", "3m"}), 0) << perfctl.err;
  EXPECT_FALSE(perfctl.daemon.submitted->until_known);
  perfctl.input = "target: {pids: [1]}\nduration: 90s\n";
  EXPECT_EQ(perfctl.Run({"submit", "-", "--duration", "auto"}), 0) << perfctl.err;
  EXPECT_TRUE(perfctl.daemon.submitted->until_known);
  EXPECT_EQ(perfctl.daemon.submitted->duration_ns, 600'000'000'000);
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "1", "--duration", "3m", "--max-duration", "5m"}), 2);
  EXPECT_THAT(perfctl.err, HasSubstr("--max-duration can only stand with --duration auto"));
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "1", "--on-done", "true"}), 2);
  EXPECT_THAT(perfctl.err, HasSubstr("--on-done goes with --watch"));
}

TEST(SubmitTest, AnOlderPerfdIsAskedForAFixedTime) {
  CommandRunner perfctl;
  perfctl.daemon.knows_auto = false;
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "1"}), 0) << perfctl.err;
  EXPECT_EQ(perfctl.daemon.cancelled, (std::vector<std::string>{"p-000042"}));
  EXPECT_FALSE(perfctl.daemon.submitted->until_known);
  EXPECT_EQ(perfctl.daemon.submitted->duration_ns, 60'000'000'000);
  EXPECT_THAT(perfctl.err, HasSubstr("the profile lasts 1m"));
}

TEST(SubmitTest, SaysWhatIsNotMeasured) {
  CommandRunner perfctl;
  perfctl.Run({"submit", "--pid", "1"});
  EXPECT_THAT(perfctl.err, HasSubstr("memory.trace: not measured by this version"));
}

TEST(SubmitTest, RecoverySaysWhichPromiseItLeaves) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "1", "--mode", "recovery"}), 0) << perfctl.err;
  EXPECT_TRUE(perfctl.daemon.submitted->variants.recovery());
  EXPECT_THAT(perfctl.err, HasSubstr("leaves promise P1"));
  perfctl.input = "target: {pids: [1]}\nvariants: {mode: recovery}\n";
  EXPECT_EQ(perfctl.Run({"submit", "-", "--mode", "shadow"}), 0) << perfctl.err;
  EXPECT_FALSE(perfctl.daemon.submitted->variants.recovery()) << "flags win";
  EXPECT_THAT(perfctl.err, testing::Not(HasSubstr("P1")));
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "1", "--mode", "fast"}), 5);
}

TEST(SubmitTest, InvalidSpecsExitFiveWithEveryError) {
  CommandRunner perfctl;
  perfctl.input = "target: {pids: [1]}\nhotspots: {frequncy: 1Hz}\nduration: 60\n";
  EXPECT_EQ(perfctl.Run({"submit", "-"}), 5);
  EXPECT_THAT(perfctl.err, HasSubstr("did you mean 'frequency'?"));
  EXPECT_THAT(perfctl.err, HasSubstr("lacks a unit"));
  EXPECT_EQ(perfctl.out, "");
  EXPECT_EQ(perfctl.address, "");  // refused before anybody was asked
  EXPECT_EQ(perfctl.Run({"submit", "-", "--json"}), 5);
  const json error = json::parse(perfctl.err);
  EXPECT_EQ(error["error"]["code"], "invalid_spec");
  EXPECT_EQ(error["error"]["details"].size(), 3u);
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "1", "--duration", "60"}), 5);
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "0"}), 5);
}

TEST(SubmitTest, ContradictionsAreUsageErrors) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"submit"}), 2);
  EXPECT_EQ(perfctl.Run({"submit", "job.yaml", "--pid", "1"}), 2);
  EXPECT_EQ(perfctl.Run({"submit", "/does/not/exist.yaml"}), 2);
  EXPECT_THAT(perfctl.err, HasSubstr("cannot open '/does/not/exist.yaml'"));
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "x"}), 2);
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "1", "--watch", "--timeout", "5"}), 2);
}

TEST(SubmitTest, RefusalsOfTheDaemonHaveTheirCodes) {
  CommandRunner perfctl;
  const std::vector<std::pair<absl::Status, int>> cases = {
      {absl::PermissionDeniedError("not yours"), 4},
      {absl::NotFoundError("no job"), 3},
      {absl::InvalidArgumentError("bad"), 5},
      {absl::FailedPreconditionError("jit"), 6},
      {absl::OutOfRangeError("budget"), 7},
      {absl::UnavailableError("no node"), 1},
      {absl::ResourceExhaustedError("64 profiles"), 1},
      {absl::DeadlineExceededError("no answer"), 124}};
  for (const auto& [status, code] : cases) {
    perfctl.daemon.error = status;
    EXPECT_EQ(perfctl.Run({"submit", "--pid", "1"}), code) << status;
    EXPECT_THAT(perfctl.err, HasSubstr(std::string(status.message())));
  }
}

TEST(SubmitTest, ALauncherIsToldAtOnce) {
  CommandRunner perfctl;
  ProfileStatus& status = perfctl.daemon.report.status;
  status.state = ProfileState::kDiscovering;
  status.spec.target = {};
  status.spec.target.pids = {7};
  Notice notice{Notice::Severity::kError, absl::StatusCode::kFailedPrecondition, "node1", 7, ""};
  notice.launchers = LauncherNote{.launchers = {{7, "timeout"}},
                                  .launcher_count = 1,
                                  .working = {{8, "heat"}},
                                  .working_count = 1};
  status.notices = {notice};
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "7"}), 6);
  EXPECT_EQ(perfctl.out, "p-000042\n");
  EXPECT_THAT(perfctl.err, HasSubstr("7 (timeout) only waits for its children; 8 (heat) works"));
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "7", "--json"}), 6);
  EXPECT_EQ(json::parse(perfctl.out)["notices"][0]["launchers"]["working"][0]["pid"], 8);
  status.notices[0].launchers->disposition = LauncherNote::Disposition::kLeftOut;
  status.state = ProfileState::kSampling;
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "7"}), 0) << "the others are measured";
}

TEST(SubmitTest, ATreeIsAskedForAndShown) {
  CommandRunner perfctl;
  perfctl.daemon.report.status.spec.target = {};
  perfctl.daemon.report.status.spec.target.pids = {7};
  perfctl.daemon.report.status.spec.target.tree = true;
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "7", "--tree", "--json"}), 0) << perfctl.err;
  EXPECT_TRUE(perfctl.daemon.submitted->target.tree);
  const json status = json::parse(perfctl.out);
  EXPECT_TRUE(status["tree"]);
  EXPECT_THAT(status["spec"].get<std::string>(), HasSubstr("tree: true"));
  perfctl.input = "target: {pids: [1], tree: true}\n";
  EXPECT_EQ(perfctl.Run({"submit", "-"}), 0) << perfctl.err;
  EXPECT_TRUE(perfctl.daemon.submitted->target.tree);
  EXPECT_EQ(perfctl.Run({"submit", "--command", "x", "--tree"}), 5);
}

// It would measure the launcher only.
TEST(SubmitTest, APerfdThatDoesNotKnowTreesIsNotLeftToIt) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "7", "--tree"}), 1);
  EXPECT_THAT(perfctl.err, HasSubstr("does not know process trees"));
  EXPECT_EQ(perfctl.daemon.cancelled.size(), 1u);
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "7", "--tree", "--dry-run"}), 1);
  EXPECT_EQ(perfctl.daemon.cancelled.size(), 2u);
}

TEST(SubmitTest, WatchEndsWithTheReport) {
  CommandRunner perfctl;
  perfctl.daemon.events = {{perfctl.daemon.report.status, {}}};
  EXPECT_EQ(perfctl.Run({"submit", "--pid", "1", "--watch", "--timeout", "5m"}), 0);
  EXPECT_EQ(perfctl.out.rfind("p-000042\n", 0), 0u);
  EXPECT_THAT(perfctl.out, HasSubstr("compute_forces"));
  EXPECT_THAT(perfctl.err, HasSubstr("p-000042 DONE 100.0%"));
  EXPECT_EQ(perfctl.daemon.watch_timeout, absl::Minutes(5));
}

TEST(SubmitTest, WatchInJsonIsLinesOfJson) {
  CommandRunner perfctl;
  perfctl.daemon.events = {{perfctl.daemon.report.status, perfctl.daemon.report.loops}};
  EXPECT_EQ(perfctl.Run({"--json", "submit", "--pid", "1", "--watch"}), 0);
  std::istringstream lines(perfctl.out);
  std::string line;
  std::vector<json> objects;
  while (std::getline(lines, line)) objects.push_back(json::parse(line));
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[0]["top_loops"][0]["function"], "compute_forces");
  EXPECT_EQ(objects[1]["report"]["status"]["id"], "p-000042");
  EXPECT_EQ(perfctl.err, "");
}

TEST(ValidateTest, NeedsNoDaemon) {
  CommandRunner perfctl;
  perfctl.connect_error = absl::UnavailableError("down");
  perfctl.input = "target: {pids: [1]}\n";
  EXPECT_EQ(perfctl.Run({"validate", "-"}), 0);
  EXPECT_EQ(perfctl.out, "valid\n");
  perfctl.input = "target: {}\n";
  EXPECT_EQ(perfctl.Run({"validate", "-"}), 5);
  perfctl.input = std::string(65537, '#');
  EXPECT_EQ(perfctl.Run({"validate", "-"}), 5);
  EXPECT_THAT(perfctl.err, HasSubstr("65537 bytes"));
}

}  // namespace
}  // namespace perfd::client
