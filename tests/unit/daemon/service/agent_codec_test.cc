#include "daemon/service/agent_codec.h"

#include <gtest/gtest.h>

namespace perfd {
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

}  // namespace
}  // namespace perfd
