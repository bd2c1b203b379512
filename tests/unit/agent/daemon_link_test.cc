#include "agent/link/daemon_link.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/mutex.h"
#include "core/base/version.h"
#include "core/wire/lease_wire.h"

namespace perfd::agent {
namespace {

// A daemon that ends the stream for one window, as it would for one that it cannot read.
class PickyDaemon final : public v1::AgentService::Service {
 public:
  PickyDaemon(uint64_t refused, grpc::StatusCode code) : refused_(refused), code_(code) {}

  grpc::Status Connect(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::DaemonMessage, v1::AgentMessage>* stream) override {
    v1::AgentMessage message;
    if (!stream->Read(&message) || !message.has_register_()) return grpc::Status::OK;
    keeps_leases = message.register_().pause_leases();
    takes_trees = message.register_().process_trees();
    v1::DaemonMessage welcome;
    welcome.mutable_welcome()->set_heartbeat_ms(100);
    welcome.mutable_welcome()->set_unix_ns(unix_ns);
    {
      MutexLock lock(&mutex_);
      ++visits_;
      welcome.mutable_welcome()->set_stored_sequence(taken_.empty() ? 0 : *taken_.rbegin());
    }
    stream->Write(welcome);
    for (const v1::DaemonMessage& order : orders) stream->Write(order);
    while (stream->Read(&message)) {
      MutexLock lock(&mutex_);
      if (message.has_heartbeat()) set_aside_ = message.heartbeat().set_aside_windows();
      if (message.has_clock()) clocks_.push_back(message.clock());
      if (!message.has_window()) continue;
      const uint64_t sequence = message.window().sequence();
      if (sequence == refused_) return {code_, "this one again"};
      taken_.insert(sequence);
      v1::DaemonMessage answer;
      answer.mutable_acknowledge()->set_stream_id(message.window().stream_id());
      answer.mutable_acknowledge()->add_sequences(sequence);
      stream->Write(answer);
    }
    return grpc::Status::OK;
  }

  std::vector<v1::DaemonMessage> orders;   // given to everybody who comes
  int64_t unix_ns = 0;                     // what it takes for the time
  std::atomic<bool> keeps_leases = false;  // who came last
  std::atomic<bool> takes_trees = false;

  std::vector<v1::ClockAnswer> AwaitClocks(size_t count, absl::Duration timeout) {
    MutexLock lock(&mutex_);
    const auto come = [this, count]()
                          ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return clocks_.size() >= count; };
    mutex_.AwaitWithTimeout(absl::Condition(&come), timeout);
    return clocks_;
  }

  bool AwaitSetAside(uint64_t windows, absl::Duration timeout) {
    MutexLock lock(&mutex_);
    const auto told = [this, windows]()
                          ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return set_aside_ == windows; };
    return mutex_.AwaitWithTimeout(absl::Condition(&told), timeout);
  }
  bool AwaitVisits(int visits, absl::Duration timeout) {
    MutexLock lock(&mutex_);
    const auto come = [this, visits]()
                          ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return visits_ >= visits; };
    return mutex_.AwaitWithTimeout(absl::Condition(&come), timeout);
  }
  std::set<uint64_t> taken() {
    MutexLock lock(&mutex_);
    return taken_;
  }

 private:
  const uint64_t refused_;
  const grpc::StatusCode code_;
  Mutex mutex_;
  std::set<uint64_t> taken_ ABSL_GUARDED_BY(mutex_);
  uint64_t set_aside_ ABSL_GUARDED_BY(mutex_) = 0;
  int visits_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<v1::ClockAnswer> clocks_ ABSL_GUARDED_BY(mutex_);
};

class IdleHandler final : public LinkHandler {
 public:
  void OnStart(SessionRequest) override {}
  void OnStop(const std::string&) override {}
  void OnMeasure(MeasureOrder order) override {
    MutexLock lock(&mutex_);
    orders_.push_back(std::move(order));
  }
  std::vector<MeasureOrder> AwaitOrders(size_t count, absl::Duration timeout) {
    MutexLock lock(&mutex_);
    const auto come = [this, count]()
                          ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return orders_.size() >= count; };
    mutex_.AwaitWithTimeout(absl::Condition(&come), timeout);
    return orders_;
  }
  void OnClock(const ClockReading& reading) override {
    MutexLock lock(&mutex_);
    readings_.push_back(reading);
  }
  void OnLease(const std::string& profile_id, double charge) override {
    MutexLock lock(&mutex_);
    charges_[profile_id] = charge;
  }
  std::vector<ClockReading> readings() {
    MutexLock lock(&mutex_);
    return readings_;
  }
  double AwaitCharge(const std::string& profile_id, absl::Duration timeout) {
    MutexLock lock(&mutex_);
    const auto come = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return charges_.contains(profile_id);
    };
    mutex_.AwaitWithTimeout(absl::Condition(&come), timeout);
    return charges_[profile_id];
  }
  std::vector<NodeCheck> OnDoctor() override { return {}; }
  AgentHealth Health() override { return {}; }
  std::vector<SessionUpdate> LatestUpdate() override { return {}; }

 private:
  Mutex mutex_;
  std::vector<MeasureOrder> orders_ ABSL_GUARDED_BY(mutex_);
  std::vector<ClockReading> readings_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, double> charges_ ABSL_GUARDED_BY(mutex_);
};

class DaemonLinkTest : public testing::Test {
 protected:
  DaemonLinkTest() {
    char pattern[] = "/tmp/link-test-XXXXXX";
    folder_ = mkdtemp(pattern);
    spool_ = *Spool::Create(folder_ + "/spool", 1 << 20, SpoolUsers::kMany);
    for (int i = 0; i < 5; ++i) {
      Window window;
      window.profile_id = "p-000001";
      window.node = "n";
      EXPECT_TRUE(spool_->Append(window).ok());
    }
  }
  ~DaemonLinkTest() override {
    link_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
    std::filesystem::remove_all(folder_);
  }
  PickyDaemon& Daemon(uint64_t refused, grpc::StatusCode code) {
    daemon_ = std::make_unique<PickyDaemon>(refused, code);
    return *daemon_;
  }
  void Begin() {
    const std::string address = "unix:" + folder_ + "/perfd.sock";
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(daemon_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    DialOptions dial;
    dial.address = address;
    AgentIdentity identity;
    identity.node = "n";
    link_ = std::make_unique<DaemonLink>(dial, identity, *spool_, handler_);
    link_->Start();
  }

  std::string folder_;
  std::unique_ptr<Spool> spool_;
  IdleHandler handler_;
  std::unique_ptr<PickyDaemon> daemon_;  // outlives the calls that the server still has
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<DaemonLink> link_;
};

TEST_F(DaemonLinkTest, AWindowTheDaemonCannotReadDoesNotBlockTheOthers) {
  PickyDaemon& daemon = Daemon(3, grpc::StatusCode::INVALID_ARGUMENT);
  Begin();
  EXPECT_TRUE(link_->AwaitDrained(absl::Seconds(30)));
  EXPECT_EQ(daemon.taken(), (std::set<uint64_t>{1, 2, 4, 5}));
  EXPECT_EQ(spool_->damaged(), 1u);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/spool/00000000000000000003.window.damaged"));
  EXPECT_TRUE(daemon.AwaitSetAside(1, absl::Seconds(10))) << "the heartbeat tells it";
}

TEST_F(DaemonLinkTest, ADaemonInTroubleCostsNoWindow) {
  PickyDaemon& daemon = Daemon(3, grpc::StatusCode::UNAVAILABLE);
  Begin();
  EXPECT_TRUE(daemon.AwaitVisits(RefusedWindows::kTries + 2, absl::Seconds(30)));
  EXPECT_EQ(spool_->damaged(), 0u);
  EXPECT_TRUE(spool_->Next(2).has_value());
}

v1::MeasureCommand AnyOrder() {
  v1::MeasureCommand order;
  order.set_profile_id("p-000001");
  order.set_repetitions(9);
  return order;
}

TEST_F(DaemonLinkTest, TellsItsClockWhenItIsAskedAndNotBefore) {
  PickyDaemon& daemon = Daemon(0, grpc::StatusCode::OK);
  daemon.orders.resize(4);
  daemon.orders[0].mutable_clock()->set_sent_ns(4711);
  daemon.orders[1].mutable_clock()->set_sent_ns(4712);
  *daemon.orders[1].mutable_clock()->mutable_reading() = wire::ToProto(ClockReading{5, 7, 1});
  daemon.orders[2].mutable_clock()->set_sent_ns(4713);
  daemon.orders[2].mutable_clock()->mutable_reading()->set_error_ns(-1);  // no reading at all
  daemon.orders[3].mutable_lease()->set_profile_id("p-000001");
  daemon.orders[3].mutable_lease()->set_charge(1.5);
  const int64_t before = SystemClock().MonotonicNs();
  Begin();
  EXPECT_EQ(handler_.AwaitCharge("p-000001", absl::Seconds(30)), 1.5);
  const std::vector<v1::ClockAnswer> clocks = daemon.AwaitClocks(3, absl::Seconds(30));
  EXPECT_TRUE(daemon.keeps_leases);
  EXPECT_TRUE(daemon.takes_trees);
  ASSERT_EQ(clocks.size(), 3u);
  for (size_t i = 0; i < clocks.size(); ++i) {
    EXPECT_EQ(clocks[i].sent_ns(), 4711 + static_cast<int64_t>(i));
    EXPECT_GE(clocks[i].here_ns(), before);
    EXPECT_LE(clocks[i].here_ns(), SystemClock().MonotonicNs());
  }
  EXPECT_EQ(handler_.readings(), (std::vector<ClockReading>{{5, 7, 1}}));
}

TEST_F(DaemonLinkTest, ADaemonThatDoesNotKnowClocksIsNotTroubled) {
  PickyDaemon& daemon = Daemon(0, grpc::StatusCode::OK);
  Begin();
  EXPECT_TRUE(link_->AwaitDrained(absl::Seconds(30)));
  EXPECT_TRUE(daemon.AwaitClocks(1, absl::Milliseconds(300)).empty());
}

TEST_F(DaemonLinkTest, KnowsHowFarItsClockIsAheadOfTheDaemons) {
  PickyDaemon& daemon = Daemon(0, grpc::StatusCode::OK);
  daemon.unix_ns = SystemClock().UnixNs() - 3600 * kNsPerSecond;
  Begin();
  EXPECT_TRUE(link_->AwaitDrained(absl::Seconds(30)));
  EXPECT_NEAR(static_cast<double>(link_->clock_ahead_ns()), 3600.0 * kNsPerSecond,
              60.0 * kNsPerSecond);
}

TEST_F(DaemonLinkTest, HearsThatTheDaemonsClockWasSet) {
  PickyDaemon& daemon = Daemon(0, grpc::StatusCode::OK);
  daemon.unix_ns = SystemClock().UnixNs() - 3600 * kNsPerSecond;
  daemon.orders.resize(3);
  daemon.orders[0].mutable_clock()->set_unix_ns(SystemClock().UnixNs());
  daemon.orders[1].mutable_clock()->set_sent_ns(1);  // of a daemon that does not say
  daemon.orders[2].mutable_lease()->set_profile_id("p-000001");
  daemon.orders[2].mutable_lease()->set_charge(1);
  Begin();
  EXPECT_EQ(handler_.AwaitCharge("p-000001", absl::Seconds(30)), 1) << "the probes are behind it";
  EXPECT_EQ(link_->clock_ahead_ns(), 0);
}

TEST_F(DaemonLinkTest, WhatComesAsADryRunIsOne) {
  PickyDaemon& daemon = Daemon(0, grpc::StatusCode::OK);
  daemon.orders.resize(3);
  *daemon.orders[0].mutable_measure() = AnyOrder();
  *daemon.orders[1].mutable_rehearse() = AnyOrder();
  *daemon.orders[2].mutable_measure() = AnyOrder();
  daemon.orders[2].mutable_measure()->set_dry_run(true);
  Begin();
  const std::vector<MeasureOrder> orders = handler_.AwaitOrders(3, absl::Seconds(30));
  ASSERT_EQ(orders.size(), 3u);
  EXPECT_FALSE(orders[0].dry_run);
  EXPECT_TRUE(orders[1].dry_run);
  EXPECT_TRUE(orders[2].dry_run);
}

}  // namespace
}  // namespace perfd::agent
