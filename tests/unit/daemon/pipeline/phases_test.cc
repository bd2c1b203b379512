// Hot loops chosen again, from the windows to the orders.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "tests/unit/daemon/pipeline/pipeline_fixture.h"

namespace perfd::daemon {
namespace {

class PhasesTest : public PipelineFixture {
 protected:
  // A window that ends now, with 500 samples in one loop.
  IncomingWindow InLoop(const std::string& id, uint64_t sequence, uint64_t header) {
    IncomingWindow incoming = Window(id, "a", sequence);
    CodeLocation location;
    location.category = Category::kLoop;
    location.module_id = "abcd";
    location.module_path = "/app";
    location.function = "kernel";
    location.function_low = header - 16;
    location.loop.emplace().header = header;
    incoming.window.locations = {location};
    incoming.window.threads = {{0, 7, 7}};
    incoming.window.rows = {{0, 0, 500, 500}};
    incoming.window.accounting.seen = incoming.window.accounting.kept = 500;
    incoming.window.start_unix_ns = clock_.UnixNs() - incoming.window.duration_ns;
    incoming.body = wire::ToProto(incoming.window).SerializeAsString();
    return incoming;
  }

  static std::vector<uint64_t> Headers(const MeasureOrder& order) {
    std::vector<uint64_t> headers;
    for (const MeasureLoop& loop : order.loops) headers.push_back(loop.header);
    return headers;
  }

  void Live(uint64_t agent, const std::string& id, int seconds, uint64_t header) {
    for (int i = 0; i < seconds; ++i) {
      clock_.Pass(kNsPerSecond);
      ASSERT_TRUE(Accept(agent, InLoop(id, ++sequence_, header)).ok());
      // Windows are merged after they are acknowledged.
      const int64_t wanted = static_cast<int64_t>(500 * sequence_);
      for (int look = 0; look < 2000; ++look) {
        if (static_cast<int64_t>(pipeline_->Get({0, "root", true}, id)->samples) >= wanted) break;
        absl::SleepFor(absl::Milliseconds(1));
      }
      pipeline_->Tick();
    }
  }

  uint64_t sequence_ = 0;
};

TEST_F(PhasesTest, TheNextPhaseIsOrderedAndTheLastOneGivenUp) {
  const uint64_t agent = Connect("a");
  const std::string id = Submit();
  Live(agent, id, 12, 0x1000);
  ASSERT_EQ(link_->orders.size(), 1u);
  EXPECT_EQ(Headers(link_->orders[0].order), std::vector<uint64_t>{0x1000});
  Live(agent, id, 6, 0x2000);
  ASSERT_EQ(link_->orders.size(), 2u);
  const std::vector<uint64_t> both = Headers(link_->orders[1].order);
  EXPECT_EQ(both.size(), 2u);
  EXPECT_TRUE(std::count(both.begin(), both.end(), 0x2000u) == 1);
  Live(agent, id, 26, 0x2000);
  ASSERT_EQ(link_->orders.size(), 3u);
  EXPECT_EQ(Headers(link_->orders[2].order), std::vector<uint64_t>{0x2000});
  EXPECT_GT(link_->orders[2].order.revision, link_->orders[1].order.revision);
}

}  // namespace
}  // namespace perfd::daemon
