// A pipeline over a real store, with a clock of its own; the test plays the agents.
#ifndef TESTS_UNIT_DAEMON_PIPELINE_PIPELINE_FIXTURE_H_
#define TESTS_UNIT_DAEMON_PIPELINE_PIPELINE_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "core/wire/wire.h"
#include "daemon/pipeline/pipeline.h"
#include "tests/unit/daemon/store/store_fixture.h"

namespace perfd::daemon {

class HandClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return mono_ns; }
  int64_t UnixNs() const override { return unix_ns; }
  void Pass(int64_t ns) {
    mono_ns += ns;
    unix_ns += ns;
  }
  std::atomic<int64_t> mono_ns{1000 * kNsPerSecond};
  std::atomic<int64_t> unix_ns{1'700'000'000 * kNsPerSecond};
};

class NotingLink final : public AgentLink {
 public:
  void Welcome(uint64_t) override {}
  void Start(const StartNode&) override {}
  void Stop(const StopNode& command) override { stops.push_back(command); }
  void Measure(const MeasureNode& command) override { orders.push_back(command); }
  void AskClock(int64_t job_ns, const std::optional<ClockReading>& known) override {
    probes.emplace_back(job_ns, known);
  }
  void Charge(const ChargeNode& command) override { charges.push_back(command); }
  void AskDoctor(uint64_t) override {}
  void Close(const absl::Status&) override {}
  std::vector<StopNode> stops;
  std::vector<MeasureNode> orders;
  std::vector<std::pair<int64_t, std::optional<ClockReading>>> probes;
  std::vector<ChargeNode> charges;
};

class PipelineFixture : public StoreFixture {
 protected:
  void SetUp() override { Begin(); }
  void TearDown() override { pipeline_.reset(); }

  void Begin(absl::Duration group_delay = absl::Milliseconds(1)) {
    pipeline_.reset();
    store_.reset();
    StoreOptions options;
    options.directory = folder_ + "/store";
    options.group_delay = group_delay;
    store_ = *SqliteStore::Open(std::move(options));
    PipelineOptions pipeline_options;
    pipeline_options.on_stop = [this](double seconds) {
      MutexLock lock(&stops_mutex_);
      stops_.push_back(seconds);
    };
    pipeline_options.limits = limits_;
    pipeline_options.retention.keep_ns = 24 * 3600 * kNsPerSecond;
    pipeline_ = std::make_unique<Pipeline>(*store_, clock_, std::move(pipeline_options));
    ASSERT_TRUE(pipeline_->Restore().ok());
  }

  uint64_t Connect(const std::string& node, uint32_t uid = 0, bool user_mode = false) {
    AgentFacts facts;
    facts.node = node;
    facts.stream_id = "stream-" + node;
    facts.uid = uid;
    facts.user_mode = user_mode;
    link_ = std::make_shared<NotingLink>();
    return *pipeline_->AgentConnected(facts, link_);
  }

  std::string Submit(uint32_t uid = 1000) {
    ProfileSpec spec;
    spec.target.command = "app";
    const auto status = pipeline_->Submit({spec, {uid, "user", false}, ""});
    EXPECT_TRUE(status.ok()) << status.status();
    return status.ok() ? status->id : "";
  }

  static IncomingWindow Window(const std::string& profile, const std::string& node,
                               uint64_t sequence) {
    IncomingWindow incoming;
    incoming.window.profile_id = profile;
    incoming.window.node = node;
    incoming.window.stream_id = "stream-" + node;
    incoming.window.sequence = sequence;
    incoming.window.duration_ns = kNsPerSecond;
    incoming.window.accounting.seen = incoming.window.accounting.kept = 10;
    incoming.window.setup.event = "cpu-clock";
    incoming.body = wire::ToProto(incoming.window).SerializeAsString();
    return incoming;
  }

  absl::Status Accept(uint64_t connection, IncomingWindow window) {
    Notification answered;
    absl::Status answer;
    pipeline_->AcceptWindow(connection, std::move(window), [&](const absl::Status& status) {
      answer = status;
      answered.Notify();
    });
    answered.WaitForNotification();
    return answer;
  }

  void End(uint64_t connection, const std::string& profile, uint64_t last_sequence) {
    SessionUpdate update;
    update.profile_id = profile;
    update.phase = NodeProgress::Phase::kFinished;
    update.ranks = 1;
    update.last_sequence = last_sequence;
    pipeline_->OnSessionUpdate(connection, update);
  }

  HandClock clock_;
  const std::shared_ptr<Limits> limits_ = std::make_shared<Limits>();  // shared with the pipeline
  std::shared_ptr<NotingLink> link_;  // of the agent that connected last
  Mutex stops_mutex_;
  std::vector<double> stops_;  // what on_stop was told
  std::unique_ptr<Pipeline> pipeline_;
};

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_PIPELINE_PIPELINE_FIXTURE_H_
