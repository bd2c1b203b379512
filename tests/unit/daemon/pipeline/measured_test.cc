// Measurements by variants and the audit log on their way through the daemon.
#include <gtest/gtest.h>

#include "core/base/mutex.h"
#include "tests/unit/daemon/pipeline/pipeline_fixture.h"

namespace perfd::daemon {
namespace {

const Requester kOwner{1000, "user", false};
const Requester kOther{1001, "other", false};
const Requester kRoot{0, "root", true};

class MeasuredTest : public PipelineFixture {
 protected:
  static IncomingWindow Measured(const std::string& id, uint64_t sequence, uint64_t revision) {
    IncomingWindow incoming = Window(id, "a", sequence);
    LoopMeasurement loop;
    loop.profile_id = id;
    loop.node = "a";
    loop.pid = 7;
    loop.loop_id = "abc";
    loop.revision = revision;
    loop.state = revision > 1 ? MeasureState::kMeasured : MeasureState::kOpen;
    incoming.window.findings.measurements = {loop};
    AuditEntry entry;
    entry.profile_id = id;
    entry.node = "a";
    entry.unix_ns = static_cast<int64_t>(sequence);
    entry.action = "shadow";
    entry.pause_ns = 1000;
    incoming.window.audit = {entry};
    incoming.body = wire::ToProto(incoming.window).SerializeAsString();
    return incoming;
  }

  size_t Audited(const Requester& who, const std::string& id) {
    const auto entries = pipeline_->Audit(who, id, 0);
    EXPECT_TRUE(entries.ok()) << entries.status();
    return entries.ok() ? entries->size() : 0;
  }
};

TEST_F(MeasuredTest, TheLatestRevisionIsInTheReportAlsoAfterARestart) {
  uint64_t agent = Connect("a");
  const std::string id = Submit();
  ASSERT_TRUE(Accept(agent, Measured(id, 1, 2)).ok());
  ASSERT_TRUE(Accept(agent, Measured(id, 2, 1)).ok());  // late, and older
  ASSERT_TRUE(store_->Flush().ok());
  Begin();  // the daemon restarts and reads the stored windows
  agent = Connect("a");
  ASSERT_TRUE(Accept(agent, Measured(id, 1, 2)).ok());  // sent again
  End(agent, id, 2);
  pipeline_->Stop();
  const auto report = store_->FinalReport(id);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->findings.verdicts.size(), 1u);
  EXPECT_EQ(report->findings.verdicts[0].state, MeasureState::kMeasured);
  EXPECT_EQ(store_->Audit({})->size(), 2u);
}

TEST_F(MeasuredTest, StopsAreToldOnceAndPausesForShadowsAreNone) {
  const uint64_t agent = Connect("a");
  const std::string id = Submit();
  ASSERT_TRUE(Accept(agent, Measured(id, 1, 1)).ok());  // a shadow
  IncomingWindow stopped = Measured(id, 2, 2);
  stopped.window.audit[0].action = "install";
  stopped.window.audit[0].pause_ns = 2'000'000;
  stopped.body = wire::ToProto(stopped.window).SerializeAsString();
  ASSERT_TRUE(Accept(agent, stopped).ok());
  ASSERT_TRUE(Accept(agent, stopped).ok());  // sent again
  pipeline_->Stop();
  MutexLock lock(&stops_mutex_);
  EXPECT_EQ(stops_, std::vector<double>{0.002});
}

TEST_F(MeasuredTest, TheLogIsSeenByItsOwnerOnly) {
  const uint64_t agent = Connect("a");
  const std::string id = Submit();
  ASSERT_TRUE(Accept(agent, Measured(id, 1, 1)).ok());
  EXPECT_EQ(Audited(kOwner, id), 1u);
  EXPECT_EQ(Audited(kOwner, ""), 1u);
  EXPECT_EQ(Audited(kRoot, ""), 1u);
  EXPECT_EQ(Audited(kOther, id), 0u);
  EXPECT_EQ(Audited(kOther, ""), 0u);
}

TEST_F(MeasuredTest, TheLogHasWhatHappenedAfterTheEnd) {
  const uint64_t agent = Connect("a");
  const std::string id = Submit();
  ASSERT_TRUE(Accept(agent, Measured(id, 1, 1)).ok());
  End(agent, id, 1);
  pipeline_->Stop();
  Begin();
  const uint64_t again = Connect("a");
  EXPECT_TRUE(Accept(again, Measured(id, 2, 2)).ok());  // acknowledged, not wanted
  EXPECT_EQ(Audited(kOwner, id), 2u);
  EXPECT_EQ(pipeline_->GetReport(kOwner, id)->findings.verdicts[0].state, MeasureState::kOpen);
}

}  // namespace
}  // namespace perfd::daemon
