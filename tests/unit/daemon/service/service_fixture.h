// A whole daemon in this process: real store, real sockets; the test plays agents and people.
#ifndef TESTS_UNIT_DAEMON_SERVICE_SERVICE_FIXTURE_H_
#define TESTS_UNIT_DAEMON_SERVICE_SERVICE_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/service/accounts.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/service/doors/grpc_host.h"
#include "daemon/service/doors/unix_door.h"
#include "perfd/v1/agent.grpc.pb.h"
#include "perfd/v1/profiler.grpc.pb.h"

namespace perfd::daemon {

inline constexpr uint32_t kNobody = 65534;

// Plays perf-agent.
class FakeAgent {
 public:
  FakeAgent(std::shared_ptr<grpc::Channel> channel, std::string node);
  ~FakeAgent();

  v1::Register Hello() const;
  bool Send(const v1::AgentMessage& message) { return stream_->Write(message); }
  bool SendRegister(const v1::Register& hello);
  bool SendUpdate(const std::string& profile, v1::NodePhase phase, int ranks,
                  uint64_t last_sequence = 0);
  bool SendWindow(const v1::Window& window);
  std::optional<v1::DaemonMessage> Read();
  // Registers and returns the welcome.
  std::optional<v1::Welcome> Join();
  // Reads until an acknowledgement or the end.
  std::vector<uint64_t> ReadAcknowledged();
  // The status the stream ended with.
  grpc::Status End();

  v1::Window MakeWindow(const std::string& profile, uint64_t sequence, uint64_t samples = 10) const;

 private:
  std::shared_ptr<grpc::Channel> channel_;
  const std::string node_;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DaemonMessage>> stream_;
  bool ended_ = false;
};

class ServiceFixture : public testing::Test {
 protected:
  ServiceFixture();
  ~ServiceFixture() override;

  void SetUp() override { StartDaemon(); }
  void StartDaemon();
  void StopDaemon();

  // A fresh connection, as the next one makes it.
  int ConnectSocket(std::optional<uint32_t> uid = std::nullopt);
  // A channel over a fresh connection; as another uid when given (needs root).
  std::shared_ptr<grpc::Channel> Connect(std::optional<uint32_t> uid = std::nullopt);
  std::unique_ptr<v1::Profiler::Stub> Person(std::optional<uint32_t> uid = std::nullopt);
  grpc::Status Submit(v1::Profiler::Stub& stub, std::string* id,
                      const std::string& command = "app");
  void SetLimit(Limit limit, int64_t value);
  uint64_t Hits(Limit limit) { return limits_.Hits()[static_cast<size_t>(limit)]; }
  v1::ProfileStatus Get(const std::string& id);
  // Waits, at most 10 s, until the profile is in this state.
  bool Await(const std::string& id, v1::ProfileState state);

  std::string folder_;
  SystemClock clock_;
  IngestLimits ingest_limits_;
  std::unique_ptr<Accounts> accounts_ = std::make_unique<Accounts>();
  IdentityOptions identity_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<UnixDoor> door_;
  TlsGate tls_;
  std::shared_ptr<Limits> shared_limits_ = std::make_shared<Limits>();
  Limits& limits_ = *shared_limits_;
  LimitValues limit_values_ = StandardLimits();
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<GrpcHost> host_;
};

// Windows that were dropped for this reason.
inline uint64_t Dropped(Pipeline& pipeline, const std::string& reason) {
  for (const auto& [name, count] : pipeline.Figures().windows_dropped) {
    if (name == reason) return count;
  }
  return 0;
}

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_SERVICE_SERVICE_FIXTURE_H_
