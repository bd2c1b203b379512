// Nodes, and where the drop reasons stand in an Accounting.
#include "core/wire/node_wire.h"

#include <gtest/gtest.h>

#include "core/wire/check/limits.h"
#include "core/wire/parts.h"

namespace perfd {
namespace {

TEST(NodeWire, RoundTrip) {
  NodeStatus node;
  node.node = "n1";
  node.connected = true;
  node.version = "0.1";
  node.user_mode = true;
  node.uid = 7;
  node.cpus = 64;
  node.kernel = "6.1";
  node.sampling_event = "cycles";
  node.last_seen_unix_ns = 8;
  node.health = {1, 2, 3, 4, 5, 6, 7, 8, true, "why not"};
  EXPECT_EQ(wire::FromProto(wire::ToProto(node)), node);
}

TEST(NodeWire, ALongReasonIsCut) {
  AgentHealth health;
  health.inject_reason.assign(1025, 'x');
  EXPECT_EQ(wire::FromProto(wire::ToProto(health)).inject_reason, std::string(1024, 'x'));
}

TEST(NodeWire, ChecksRoundTripUpToTheLimit) {
  std::vector<DoctorCheck> checks(wire::kMaxDoctorChecks, {"name", true, true, "found", "fix"});
  v1::DoctorResult message;
  wire::ToProto(checks, *message.mutable_checks());
  const auto read = wire::FromProto(message.checks());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, checks);
  message.add_checks();
  EXPECT_EQ(wire::FromProto(message.checks()).status().code(), absl::StatusCode::kInvalidArgument);
}

// Stored windows and aggregates are read for ever: these positions may not change.
TEST(AccountingWire, DropReasonsKeepTheirPositions) {
  Accounting counts;
  counts.Drop(DropReason::kForeignProcess, 10);
  counts.Drop(DropReason::kQueueFull, 13);
  counts.Drop(DropReason::kMalformed, 14);
  counts.Drop(DropReason::kSpoolFull, 15);
  const v1::Accounting message = wire::ToProto(counts);
  EXPECT_EQ(std::vector<uint64_t>(message.dropped().begin(), message.dropped().end()),
            (std::vector<uint64_t>{10, 0, 0, 13, 14, 15}));
  EXPECT_EQ(*wire::FromProto(message), counts);
}

TEST(AccountingWire, ReservedPositionsHoldNothing) {
  for (const int reserved : {1, 2, 6}) {
    v1::Accounting message;
    message.mutable_dropped()->Resize(7, 0);
    EXPECT_TRUE(wire::FromProto(message).ok()) << "as written before they were reserved";
    message.set_dropped(reserved, 1);
    EXPECT_EQ(wire::FromProto(message).status().code(), absl::StatusCode::kInvalidArgument);
  }
  v1::Accounting beyond;
  beyond.mutable_dropped()->Resize(8, 0);
  EXPECT_FALSE(wire::FromProto(beyond).ok());
}

}  // namespace
}  // namespace perfd
