#include "client/commands/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/commands/command_table.h"
#include "tests/unit/client/command_runner.h"

namespace perfd::client {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(CommandLineTest, EveryCommandHasHelpWithExamplesAndExitCodes) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"--help"}), 0);
  const std::string help = perfctl.out;
  for (const CommandEntry& entry : AllCommands()) {
    EXPECT_THAT(help, HasSubstr(entry.name));
    EXPECT_EQ(perfctl.Run({entry.name, "--help"}), 0);
    EXPECT_THAT(perfctl.out, AllOf(HasSubstr(entry.summary), HasSubstr("EXIT CODES")));
    const bool examples = perfctl.out.find("EXAMPLES") != std::string::npos;
    EXPECT_TRUE(examples) << entry.name;
  }
}

TEST(CommandLineTest, UsageErrors) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({}), 2);
  EXPECT_EQ(perfctl.Run({"reprot", "last"}), 2);
  EXPECT_THAT(perfctl.err, HasSubstr("there is no command 'reprot'; did you mean 'report'?"));
  EXPECT_EQ(perfctl.Run({"status"}), 2);
  EXPECT_THAT(perfctl.err, HasSubstr("ID is required; see `perfctl status --help`"));
  EXPECT_EQ(perfctl.Run({"status", "last", "--frob"}), 2);
  EXPECT_EQ(perfctl.Run({"list", "--limit", "0"}), 2);
  EXPECT_EQ(perfctl.Run({"list", "--limit", "1001"}), 2);
  EXPECT_EQ(perfctl.Run({"list", "--limit", "1000"}), 0);
  EXPECT_EQ(perfctl.Run({"status", "--json"}), 2);
  EXPECT_EQ(json::parse(perfctl.err)["error"]["code"], "usage");
}

TEST(CommandLineTest, GlobalOptionsStandAnywhere) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"--address", "unix:/a", "list"}), 0);
  EXPECT_EQ(perfctl.address, "unix:/a");
  EXPECT_EQ(perfctl.Run({"list", "--address", "unix:/b", "--json"}), 0);
  EXPECT_EQ(perfctl.address, "unix:/b");
  EXPECT_EQ(json::parse(perfctl.out)["profiles"].size(), 1u);
  EXPECT_EQ(perfctl.Run({"list"}), 0);
  EXPECT_EQ(perfctl.address, "unix:/run/perfd/perfd.sock");
}

TEST(CommandLineTest, AnAbsentDaemonIsExplained) {
  CommandRunner perfctl;
  perfctl.connect_error = absl::UnavailableError("nobody listens on unix:/x; start it");
  for (const char* command : {"list", "nodes", "version"}) {
    EXPECT_EQ(perfctl.Run({command}), 1) << command;
    EXPECT_THAT(perfctl.err, HasSubstr("start it"));
  }
  EXPECT_EQ(perfctl.Run({"status", "last", "--json"}), 1);
  EXPECT_EQ(json::parse(perfctl.err)["error"]["code"], "unavailable");
}

TEST(CommandLineTest, StatusCancelNodes) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"status", "last"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("Profile p-000042  DONE"));
  EXPECT_EQ(perfctl.Run({"cancel", "last"}), 0);
  EXPECT_EQ(perfctl.out, "p-000042 DONE\n");
  EXPECT_EQ(perfctl.Run({"nodes", "--json"}), 0);
  EXPECT_TRUE(json::parse(perfctl.out)["nodes"].empty());
  perfctl.daemon.error = absl::FailedPreconditionError("it is over");
  EXPECT_EQ(perfctl.Run({"cancel", "last"}), 1);
  perfctl.daemon.error = absl::PermissionDeniedError("not yours");
  EXPECT_EQ(perfctl.Run({"cancel", "last"}), 4);
}

TEST(CommandLineTest, DoctorFailsWithTheWorstCheck) {
  CommandRunner perfctl;
  perfctl.daemon.doctor = {{"node1", {{"a", false, true, "meh", ""}}}};
  EXPECT_EQ(perfctl.Run({"doctor"}), 0);
  perfctl.daemon.doctor[0].checks.push_back({"b", false, false, "bad", "repair it"});
  EXPECT_EQ(perfctl.Run({"doctor"}), 1);
  EXPECT_THAT(perfctl.out, HasSubstr("fix: perf-agent doctor"));
  EXPECT_THAT(perfctl.out, Not(HasSubstr("repair it"))) << "an agent wrote that";
  perfctl.daemon.doctor[0].checks[1].name = "debug symbols of libc";
  EXPECT_EQ(perfctl.Run({"doctor"}), 1);
  EXPECT_THAT(perfctl.out, HasSubstr("fix: apt-get install libc6-dbg"));
  perfctl.daemon.doctor[0].source = DoctorSource::kUserAgent;
  perfctl.daemon.doctor[0].uid = 30001;
  EXPECT_EQ(perfctl.Run({"doctor"}), 1) << "only one's own is asked";
  EXPECT_THAT(perfctl.out, HasSubstr("node1 (agent of user 30001)\n"));
  EXPECT_EQ(perfctl.Run({"doctor", "--json"}), 1);
  EXPECT_EQ(json::parse(perfctl.out)["places"][1]["agent_of_uid"], 30001);
  EXPECT_THAT(perfctl.out, Not(HasSubstr("repair it")));
  perfctl.daemon.doctor = {
      {"perfd", {{"archive", false, false, "bad", "free space"}}, DoctorSource::kDaemon}};
  EXPECT_EQ(perfctl.Run({"doctor"}), 1);
  EXPECT_THAT(perfctl.out, HasSubstr("fix: free space"));
  perfctl.daemon.doctor.clear();
  perfctl.daemon.own_certificate = {{"certificate", false, true, "it ends soon", "renew it"}};
  EXPECT_EQ(perfctl.Run({"doctor"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("fix: renew it"));
  perfctl.daemon.version.protocol_version += 1;
  EXPECT_EQ(perfctl.Run({"doctor"}), 1);
  EXPECT_THAT(perfctl.out, HasSubstr("install the same version"));
  perfctl.connect_error = absl::UnavailableError("nobody listens");
  EXPECT_EQ(perfctl.Run({"doctor", "--json"}), 1);
  EXPECT_EQ(json::parse(perfctl.out)["ok"], false);
}

TEST(CommandLineTest, ExplainAndSchema) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"explain", "frequency"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("default 199Hz"));
  EXPECT_EQ(perfctl.Run({"explain", "frequncy"}), 3);
  EXPECT_EQ(perfctl.Run({"explain", "--schema"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["title"], "perfd profile");
}

TEST(CommandLineTest, CompletionKnowsCommandsAndOptions) {
  CommandRunner perfctl;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_EQ(perfctl.Run({"completion", shell}), 0);
    EXPECT_THAT(perfctl.out, AllOf(HasSubstr("submit"), HasSubstr("dry-run"), HasSubstr("doctor")));
  }
  EXPECT_EQ(perfctl.Run({"completion", "tcsh"}), 2);
}

TEST(CommandLineTest, CompletionOffersFilesWhereFilesGo) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"completion", "bash"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("--html|--pprof) COMPREPLY=($(compgen -f"));
  EXPECT_EQ(perfctl.Run({"completion", "zsh"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("--html|--pprof) _files"));
  EXPECT_EQ(perfctl.Run({"completion", "fish"}), 0);
  EXPECT_THAT(perfctl.out, HasSubstr("-l html -r -F"));
}

TEST(CommandLineTest, SpeaksUnderTheNameItWasInstalledBy) {
  CommandRunner renamed;
  renamed.program = "lightprof";
  std::vector<std::vector<std::string>> all = {
      {"--help"}, {"--version"}, {"version", "--client"}, {}, {"frob"}};
  for (const CommandEntry& entry : AllCommands()) all.push_back({entry.name, "--help"});
  for (const char* shell : {"bash", "zsh", "fish"}) all.push_back({"completion", shell});
  for (const std::vector<std::string>& arguments : all) {
    renamed.Run(arguments);
    const std::string text = renamed.out + renamed.err;
    EXPECT_THAT(text, HasSubstr("lightprof"));
    EXPECT_EQ(text.find("perfctl"), std::string::npos) << text;
  }
  renamed.Run({"completion", "bash"});
  EXPECT_THAT(renamed.out, HasSubstr("complete -o filenames -F _lightprof lightprof\n"));
}

TEST(CommandLineTest, TheNameIsAPlainWord) {
  EXPECT_EQ(ProgramName("/opt/site/bin/lightprof-2.0"), "lightprof-2.0");
  EXPECT_EQ(ProgramName("./x"), "x");
  for (const char* odd : {"", "/usr/bin/", "a b", "$(x)", "-c", "a;b"})
    EXPECT_EQ(ProgramName(odd), "perfctl");
  EXPECT_EQ(ProgramName(std::string(64, 'a')), std::string(64, 'a'));
  EXPECT_EQ(ProgramName(std::string(65, 'a')), "perfctl");
}

TEST(CommandLineTest, Versions) {
  CommandRunner perfctl;
  EXPECT_EQ(perfctl.Run({"--version"}), 0);
  EXPECT_EQ(perfctl.out, std::string("perfctl ") + kVersion + "\n");
  EXPECT_EQ(perfctl.Run({"version", "--json"}), 0);
  EXPECT_EQ(json::parse(perfctl.out)["daemon"], "9.9.9");
  EXPECT_EQ(perfctl.Run({"version", "--client"}), 0);
}

}  // namespace
}  // namespace perfd::client
