#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "client/commands/hook/guard.h"
#include "client/commands/hook/slurm_job.h"
#include "tests/unit/client/command_runner.h"

namespace perfd::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

absl::StatusOr<HookJob> Read(const Variables& variables) {
  return JobOfSlurm(
      [&](const char* name) {
        const auto it = variables.find(name);
        return it == variables.end() ? std::string() : it->second;
      },
      "here");
}

Variables Prolog() {
  return {{"SLURM_JOB_ID", "4711"},         {"SLURM_JOB_UID", "1000"},
          {"SLURM_JOB_USER", "alice"},      {"SLURM_JOB_ACCOUNT", "physics"},
          {"SLURM_JOB_PARTITION", "batch"}, {"SLURM_JOB_NODELIST", "n[1-4]"},
          {"SLURM_CLUSTER_NAME", "c"},      {"SLURMD_NODENAME", "n1"}};
}

TEST(SlurmJobTest, TheEnvironmentOfAProlog) {
  const auto job = Read(Prolog());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->scheduler, "Slurm");
  EXPECT_EQ(job->cluster, "c");
  EXPECT_EQ(job->job, "4711");
  EXPECT_EQ(job->restart, 0);
  EXPECT_EQ(job->uid, 1000u);
  EXPECT_EQ(job->user, "alice");
  EXPECT_EQ(job->account, "physics");
  EXPECT_EQ(job->partition, "batch");
  EXPECT_EQ(job->nodes, "n[1-4]");
  EXPECT_EQ(job->node, "n1");
  EXPECT_EQ(job->preference, HookPreference::kNone);
}

TEST(SlurmJobTest, WhatTheUserWants) {
  Variables variables = Prolog();
  variables["SPANK_PERFD_PROFILE"] = "deep";
  EXPECT_EQ(Read(variables)->preference, HookPreference::kOptIn);
  EXPECT_EQ(Read(variables)->preset, "deep");
  variables["SPANK_PERFD_PROFILE"] = "default";
  EXPECT_EQ(Read(variables)->preference, HookPreference::kOptIn);
  EXPECT_EQ(Read(variables)->preset, "");
  variables["SPANK_PERFD_NO_PROFILE"] = "1";  // who refuses is believed
  EXPECT_EQ(Read(variables)->preference, HookPreference::kOptOut);
  variables["SPANK_PERFD_NO_PROFILE"] = "0";
  EXPECT_EQ(Read(variables)->preference, HookPreference::kOptIn);
}

TEST(SlurmJobTest, RestartsAndNodes) {
  Variables variables = Prolog();
  variables["SLURM_RESTART_COUNT"] = "2";
  EXPECT_EQ(Read(variables)->restart, 2);
  // Slurm 22.05
  variables.erase("SLURM_RESTART_COUNT");
  variables["SLURM_JOB_RESTART_COUNT"] = "3";
  EXPECT_EQ(Read(variables)->restart, 3);
  variables.erase("SLURM_JOB_NODELIST");
  variables["SLURM_NODELIST"] = "n[5-6]";
  EXPECT_EQ(Read(variables)->nodes, "n[5-6]");
  variables.erase("SLURMD_NODENAME");
  EXPECT_EQ(Read(variables)->node, "here");
  variables["SLURM_SCRIPT_CONTEXT"] = "prolog_slurmctld";
  EXPECT_EQ(Read(variables)->node, "");
}

TEST(SlurmJobTest, WhatIsNoPrologIsSaid) {
  EXPECT_THAT(std::string(Read({}).status().message()), HasSubstr("SLURM_JOB_ID is not set"));
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"SLURM_JOB_UID", ""},           {"SLURM_JOB_UID", "alice"},    {"SLURM_JOB_UID", "-1"},
      {"SLURM_JOB_UID", "4294967296"}, {"SLURM_RESTART_COUNT", "-1"}, {"SLURM_RESTART_COUNT", "x"}};
  for (const auto& [name, value] : wrong) {
    Variables variables = Prolog();
    variables[name] = value;
    EXPECT_FALSE(Read(variables).ok()) << name << "=" << value;
  }
}

TEST(HookGuardTest, WhichCallsMustNotFail) {
  EXPECT_TRUE(IsHookCall({"hook", "prolog"}));
  EXPECT_TRUE(IsHookCall({"hook", "epilog", "--frob"}));
  EXPECT_TRUE(IsHookCall({"hook", "begin", "--job", "list"}));
  EXPECT_TRUE(IsHookCall({"--address", "unix:/x", "--json", "hook", "end"}));
  EXPECT_TRUE(IsHookCall({"--address=unix:/x", "hook", "--timeout", "1s", "prolog"}));
  EXPECT_TRUE(IsHookCall({"hook"}));
  EXPECT_TRUE(IsHookCall({"hook", "prolgo"}));
  EXPECT_FALSE(IsHookCall({"hook", "list"}));
  EXPECT_FALSE(IsHookCall({"hook", "--json", "list"}));
  EXPECT_FALSE(IsHookCall({"hook", "prolog", "--help"}));
  EXPECT_FALSE(IsHookCall({"explain", "hook"}));
  EXPECT_FALSE(IsHookCall({"--address", "hook"}));
  EXPECT_FALSE(IsHookCall({}));
}

TEST(HookGuardTest, TheTimeout) {
  EXPECT_EQ(HookTimeoutOf({"hook", "prolog"}), absl::Milliseconds(300));
  EXPECT_EQ(HookTimeoutOf({"hook", "prolog", "--timeout", "200ms"}), absl::Milliseconds(200));
  EXPECT_EQ(HookTimeoutOf({"hook", "prolog", "--timeout=1s"}), absl::Seconds(1));
  EXPECT_EQ(HookTimeoutOf({"--timeout"}), absl::Milliseconds(300));
  EXPECT_EQ(HookTimeoutOf({"--timeout", "soon"}), absl::Milliseconds(300));
  EXPECT_EQ(HookTimeoutOf({"--timeout", "1ns"}), absl::Milliseconds(10));
  EXPECT_EQ(HookTimeoutOf({"--timeout", "1h"}), absl::Seconds(30));
}

TEST(HookCommandTest, AJobOfAnyScheduler) {
  CommandRunner perfctl;
  perfctl.daemon.hook_answer = {HookDecision::kProfile, "every job", "p-000001"};
  EXPECT_EQ(perfctl.Run({"hook",    "begin",       "--job",  "12.pbs",      "--user",
                         "0",       "--partition", "workq",  "--account",   "a",
                         "--nodes", "n[1-2]",      "--node", "n1",          "--opt-in",
                         "deep",    "--timeout",   "200ms",  "--scheduler", "PBS"}),
            0);
  EXPECT_EQ(perfctl.out, "");
  EXPECT_EQ(perfctl.err, "");
  ASSERT_EQ(perfctl.daemon.begun.size(), 1u);
  const HookJob& job = perfctl.daemon.begun[0];
  EXPECT_EQ(job.scheduler, "PBS");
  EXPECT_EQ(job.job, "12.pbs");
  EXPECT_EQ(job.uid, 0u);
  EXPECT_EQ(job.user, "root");
  EXPECT_EQ(job.partition, "workq");
  EXPECT_EQ(job.account, "a");
  EXPECT_EQ(job.nodes, "n[1-2]");
  EXPECT_EQ(job.node, "n1");
  EXPECT_EQ(job.preference, HookPreference::kOptIn);
  EXPECT_EQ(job.preset, "deep");
  EXPECT_EQ(perfctl.daemon.hook_timeout, absl::Milliseconds(200));
  EXPECT_EQ(perfctl.Run({"hook", "end", "--job", "12.pbs", "--user", "root", "--opt-out"}), 0);
  ASSERT_EQ(perfctl.daemon.ended.size(), 1u);
  EXPECT_EQ(perfctl.daemon.ended[0].uid, 0u);
  EXPECT_EQ(perfctl.daemon.ended[0].preference, HookPreference::kOptOut);
  EXPECT_EQ(perfctl.daemon.hook_timeout, absl::Milliseconds(300));
}

TEST(HookCommandTest, WhyNothingHappenedIsOneLine) {
  CommandRunner perfctl;
  perfctl.daemon.hook_answer = {HookDecision::kNotChosen, "every 3rd job by policy", ""};
  const std::vector<std::string> begin = {"hook", "begin", "--job", "12", "--user", "root"};
  EXPECT_EQ(perfctl.Run(begin), 0);
  EXPECT_EQ(perfctl.err, "perfctl: job 12 is not profiled: every 3rd job by policy\n");
  EXPECT_EQ(perfctl.out, "");
  perfctl.daemon.error = absl::UnavailableError("perfd does not answer");
  EXPECT_EQ(perfctl.Run(begin), 0);
  EXPECT_EQ(perfctl.err, "perfctl: perfd does not answer\n");
  perfctl.connect_error = absl::UnavailableError("nobody listens");
  EXPECT_EQ(perfctl.Run(begin), 0);
  EXPECT_EQ(perfctl.err, "perfctl: nobody listens\n");
  EXPECT_EQ(perfctl.Run({"hook", "begin", "--job", "12", "--user", "no such user"}), 0);
  EXPECT_THAT(perfctl.err, HasSubstr("knows no user"));
}

TEST(HookCommandTest, TheListAsTableAndAsJson) {
  CommandRunner perfctl;
  HookRecord record;
  record.job.scheduler = "Slurm";
  record.job.cluster = "c";
  record.job.job = "4711";
  record.job.uid = 1000;
  record.job.user = "alice";
  record.job.partition = "batch";
  record.answer = {HookDecision::kProfile, "every 3rd job by policy (number 6)", "p-000007"};
  record.number = 6;
  record.seen_unix_ns = 1'700'000'040'000'000'000;
  perfctl.daemon.hook_overview.records = {record};
  perfctl.daemon.hook_overview.counts = {{HookDecision::kProfile, 1}, {HookDecision::kNever, 0}};
  perfctl.daemon.hook_overview.policy = "one of every 3 jobs";
  perfctl.daemon.hook_overview.today = 1;
  EXPECT_EQ(perfctl.Run({"hook", "list", "--limit", "7"}), 0);
  EXPECT_EQ(perfctl.daemon.hook_limit, 7);
  for (const char* part : {"Policy: one of every 3 jobs", "Jobs: 1 profile; 0 profiles are active",
                           "Slurm c/4711", "60 s ago", "p-000007", "(number 6)"})
    EXPECT_THAT(perfctl.out, HasSubstr(part));
  EXPECT_EQ(perfctl.Run({"hook", "list", "--json"}), 0);
  const json list = json::parse(perfctl.out);
  EXPECT_EQ(list["jobs"][0]["scheduler"], "Slurm");
  EXPECT_EQ(list["jobs"][0]["decision"], "profile");
  EXPECT_EQ(list["jobs"][0]["profile"], "p-000007");
  EXPECT_EQ(list["decisions"]["profile"], 1);
  EXPECT_EQ(list["today"], 1);
  perfctl.daemon.error = absl::UnavailableError("away");
  EXPECT_EQ(perfctl.Run({"hook", "list"}), 1);
}

}  // namespace
}  // namespace perfd::client
