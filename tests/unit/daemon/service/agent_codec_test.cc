#include "daemon/service/agent_codec.h"

#include <gtest/gtest.h>

#include "core/base/version.h"

namespace perfd::daemon {
namespace {

// An agent that does not know dry runs must not take one for an order to inject.
TEST(AgentCodec, ADryRunIsAMessageOfItsOwnKind) {
  MeasureNode command{"node1", {}};
  command.order.profile_id = "p-000001";
  command.order.variants = {"LS"};
  EXPECT_TRUE(ToMessage(command).has_measure());
  EXPECT_FALSE(ToMessage(command).measure().dry_run());
  command.order.dry_run = true;
  const v1::DaemonMessage message = ToMessage(command);
  EXPECT_FALSE(message.has_measure());
  ASSERT_TRUE(message.has_rehearse());
  EXPECT_TRUE(message.rehearse().dry_run());
  EXPECT_EQ(message.rehearse().variants(0), "LS");
}

TEST(AgentCodec, AnAgentThatDoesNotSayItKnowsTreesDoesNot) {
  v1::Register hello;
  hello.set_node("node1");
  hello.set_stream_id("s");
  hello.set_protocol_version(kProtocolVersion);
  Peer peer;
  peer.full_agent = true;
  EXPECT_FALSE(ToFacts(hello, peer)->abilities.process_trees);
  hello.set_process_trees(true);
  EXPECT_TRUE(ToFacts(hello, peer)->abilities.process_trees);
}

TEST(AgentCodec, LeasesAreForAgentsThatSayTheyKeepThem) {
  v1::Register hello;
  hello.set_node("node1");
  hello.set_stream_id("s");
  hello.set_protocol_version(kProtocolVersion);
  Peer peer;
  peer.full_agent = true;
  ASSERT_TRUE(ToFacts(hello, peer).ok());
  EXPECT_FALSE(ToFacts(hello, peer)->abilities.pause_leases);
  hello.set_pause_leases(true);
  EXPECT_TRUE(ToFacts(hello, peer)->abilities.pause_leases);
  MeasureNode command{"node1", {}};
  EXPECT_FALSE(ToMessage(command).measure().has_lease());
  command.order.lease = PauseLease{250, 200, 3, {1, 2, 3}};
  EXPECT_EQ(ToMessage(command).measure().lease().nodes(), 3);
  const v1::DaemonMessage update = ToMessage(ChargeNode{"node1", "p-000001", 1.5});
  EXPECT_EQ(update.lease().profile_id(), "p-000001");
  EXPECT_EQ(update.lease().charge(), 1.5);
}

}  // namespace
}  // namespace perfd::daemon
