// Names come from strangers' binaries, agents and scripts: whatever text an answer has, no command lets it act on the
// terminal. Every text of every message is replaced, by reflection: a field that is new is tried as well.
#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include "core/wire/history_wire.h"
#include "core/wire/hook_wire.h"
#include "core/wire/node_wire.h"
#include "core/wire/variant_wire.h"
#include "core/wire/wire.h"
#include "tests/unit/client/command_runner.h"
#include "tests/unit/client/sample_history.h"

namespace perfd::client {
namespace {

using ::testing::HasSubstr;

// The title of the window (OSC), colours (CSI, also as C1 in UTF-8), a line of one's own, back over what was written.
constexpr char kHostile[] =
    "\x1b]0;EVIL\x07\xc2\x9b"
    "31m\r\nEVIL\b\x7f";

// One of a few words, or only told of some rows: else it is refused before it is shown.
bool IsWord(const google::protobuf::FieldDescriptor& field) {
  return field.name() == "mode" || field.name() == "trace" || field.name() == "kernel_caller";
}

void Poison(google::protobuf::Message& message) {
  using Field = google::protobuf::FieldDescriptor;
  const auto* reflection = message.GetReflection();
  std::vector<const Field*> fields;
  reflection->ListFields(message, &fields);
  std::erase_if(fields, [](const Field* field) { return IsWord(*field); });
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const Field* field = message.GetDescriptor()->field(i);
    const bool text =
        field->cpp_type() == Field::CPPTYPE_STRING && field->type() == Field::TYPE_STRING;
    if (text && !IsWord(*field) && !field->is_repeated() && field->containing_oneof() == nullptr)
      reflection->SetString(&message, field, reflection->GetString(message, field) + kHostile);
  }
  for (const Field* field : fields) {
    if (field->is_map()) continue;
    const bool text = field->type() == Field::TYPE_STRING;
    const bool group = field->cpp_type() == Field::CPPTYPE_MESSAGE;
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 0;
    for (int i = 0; i < count && text; ++i)
      reflection->SetRepeatedString(&message, field, i,
                                    reflection->GetRepeatedString(message, field, i) + kHostile);
    for (int i = 0; i < count && group; ++i)
      Poison(*reflection->MutableRepeatedMessage(&message, field, i));
    if (!field->is_repeated() && group) Poison(*reflection->MutableMessage(&message, field));
    if (!field->is_repeated() && text && field->containing_oneof() != nullptr)
      reflection->SetString(&message, field, reflection->GetString(message, field) + kHostile);
  }
}

template <typename Model>
Model Poisoned(const Model& model) {
  auto message = wire::ToProto(model);
  Poison(message);
  auto read = wire::FromProto(message);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *std::move(read) : model;
}

FakeDaemon HostileDaemon() {
  FakeDaemon daemon;
  daemon.report = Poisoned(daemon.report);
  daemon.history = Poisoned(SampleHistory());
  AuditEntry entry;
  entry.original_bytes = "00";
  daemon.audit = {Poisoned(entry)};
  v1::NodeStatus node;
  node.mutable_heartbeat();
  Poison(node);
  daemon.nodes = {wire::FromProto(node)};
  for (const auto source :
       {DoctorSource::kDaemon, DoctorSource::kNodeAgent, DoctorSource::kUserAgent})
    daemon.doctor.push_back({kHostile, {{kHostile, false, false, kHostile, kHostile}}, source, 7});
  daemon.hook_overview.records.resize(1);
  daemon.hook_overview.records[0].job.job = "1";
  daemon.hook_overview.policy_error = "x";
  daemon.hook_overview = Poisoned(daemon.hook_overview);
  daemon.version.version = kHostile;
  daemon.url = std::string("http://x/") + kHostile;
  daemon.events = {{daemon.report.status, daemon.report.loops}};
  return daemon;
}

// Control characters but the line break, and tabs, which files of columns have.
std::string Acting(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<uint8_t>(text[i]);
    const bool c1 = c == 0xC2 && i + 1 < text.size() && static_cast<uint8_t>(text[i + 1]) < 0xA0;
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F || c1)
      return text.substr(i < 40 ? 0 : i - 40, 80);
  }
  return "";
}

class HostileNamesTest : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(HostileNamesTest, NothingActsOnTheTerminal) {
  CommandRunner perfctl;
  perfctl.daemon = HostileDaemon();
  for (const bool json : {false, true}) {
    std::vector<std::string> arguments = GetParam();
    if (json) arguments.emplace_back("--json");
    const int code = perfctl.Run(arguments);
    EXPECT_NE(code, 2) << perfctl.err << ": these are no arguments";
    EXPECT_EQ(Acting(perfctl.out), "");
    EXPECT_EQ(Acting(perfctl.err), "");
    EXPECT_THAT(perfctl.out, testing::Not(HasSubstr("\nEVIL"))) << "a line of its own";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Commands, HostileNamesTest,
    testing::Values(std::vector<std::string>{"status", "last"}, std::vector<std::string>{"list"},
                    std::vector<std::string>{"report", "last", "--threads"},
                    std::vector<std::string>{"report", "last", "--rank", "0"},
                    std::vector<std::string>{"loops", "last"},
                    std::vector<std::string>{"loops", "last", "--loop", "1"},
                    std::vector<std::string>{"nodes"}, std::vector<std::string>{"doctor"},
                    std::vector<std::string>{"audit"}, std::vector<std::string>{"cancel", "last"},
                    std::vector<std::string>{"watch", "last"},
                    std::vector<std::string>{"diff", "p-000001", "p-000002"},
                    std::vector<std::string>{"history", "app"},
                    std::vector<std::string>{"hook", "list"}, std::vector<std::string>{"version"},
                    std::vector<std::string>{"submit", "--command", "x", "--watch"}));

TEST(HostileFilesTest, NothingActsOnTheTerminal) {
  for (const char* kind : {"--csv", "--folded", "--url", "--line"}) {
    CommandRunner perfctl;
    perfctl.daemon = HostileDaemon();
    EXPECT_NE(perfctl.Run({"report", "last", kind}), 2) << perfctl.err;
    EXPECT_EQ(Acting(perfctl.out), "") << kind;
  }
}

}  // namespace
}  // namespace perfd::client
