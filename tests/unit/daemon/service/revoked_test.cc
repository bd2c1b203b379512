// What becomes of those who are connected when a reload takes their certificates away.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/log.h"
#include "core/certificate/certificate.h"
#include "tests/unit/daemon/service/tls_fixture.h"

namespace perfd::daemon {
namespace {

using grpc::StatusCode;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr int kStreams = 50;  // of each kind
constexpr absl::Duration kWithin = absl::Seconds(10);

// Follows a profile, as `perfctl watch` does.
class Watcher {
 public:
  Watcher(const std::shared_ptr<grpc::Channel>& channel, const std::string& id)
      : channel_(channel), stub_(v1::Profiler::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::WatchRequest request;
    request.set_id(id);
    stream_ = stub_->Watch(&context_, request);
  }
  bool Next() {
    v1::WatchEvent event;
    return stream_->Read(&event);
  }
  grpc::Status End() {
    while (Next()) {
    }
    return stream_->Finish();
  }
  void Cancel() { context_.TryCancel(); }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Profiler::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchEvent>> stream_;
};

// Asks on one connection all the time.
class Asker {
 public:
  template <typename Ask>
  explicit Asker(Ask ask)
      : thread_([this, ask] {
          while (!stop_) {
            ++calls_;
            if (!ask().ok()) ++failed_;
          }
        }) {}
  ~Asker() { Stop(); }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int calls() const { return calls_; }
  int failed() const { return failed_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> calls_ = 0;
  std::atomic<int> failed_ = 0;
  std::thread thread_;
};

class RevokedTest : public TlsTest {
 protected:
  void SetUp() override {
    TlsTest::SetUp();
    InitLog("perfd", LogLevel::kInfo);
    if (IsSkipped()) return;
    MakeCertificates("certs", "user daemon agent other lost0");
    options_ = Options();
    options_.revoked = folder_ + "/revoked";
    Revoke("# nobody yet\n");
    const auto address = host_->ListenTls(options_);
    ASSERT_TRUE(address.ok()) << address.status();
    address_ = *address;
  }
  static std::string Node(int i) { return absl::StrCat("lost", i); }
  std::string Serial(const std::string& who) const {
    return LoadCertificates(certs_ + "/" + who + ".crt")->front().serial;
  }
  void Revoke(const std::string& text) const {
    std::ofstream(folder_ + "/revoked") << text;
    ::chmod((folder_ + "/revoked").c_str(), 0644);
  }
  // As SIGHUP does.
  absl::Status Reload() {
    const absl::Status list = tls_.RenewRevoked(options_);
    const absl::Status files = host_->RenewTls(options_);
    return list.ok() ? files : list;
  }
  std::unique_ptr<FakeAgent> Agent(const std::string& node, const std::string& who,
                                   const std::string& ca = "ca.crt") {
    auto agent = std::make_unique<FakeAgent>(Dial(address_, who, ca), node);
    EXPECT_TRUE(agent->Join().has_value()) << node;
    return agent;
  }
  std::string SubmitAs(const std::string& who) {
    std::string id;
    const auto stub = v1::Profiler::NewStub(Dial(address_, who));
    EXPECT_TRUE(Submit(*stub, &id, who).ok());
    return id;
  }
  // Whether perfd counts these agents as connected, soon.
  bool AwaitConnected(uint64_t agents) {
    for (const absl::Time end = absl::Now() + kWithin; absl::Now() < end;
         absl::SleepFor(absl::Milliseconds(10)))
      if (pipeline_->Figures().agents_connected == agents) return true;
    return false;
  }
  uint64_t Refused(const std::string& reason) {
    for (const auto& [name, count] : tls_.Figures().refused)
      if (name == reason) return count;
    return 0;
  }

  TlsOptions options_;
  std::string address_;
};

// 50 agents by their serials and 50 watches by a name; who is not on the list sees nothing of it.
TEST_F(RevokedTest, AReloadEndsAllStandingStreams) {
  std::string nodes = "agent";
  for (int i = 1; i < kStreams; ++i) absl::StrAppend(&nodes, " ", Node(i));
  MakeCertificates("certs", nodes);
  std::vector<std::unique_ptr<FakeAgent>> agents;
  std::vector<std::unique_ptr<Watcher>> watchers;
  const auto other = Agent("other", "agent-other");
  const std::string lost_profile = SubmitAs("user-root");
  const std::string kept_profile = SubmitAs("user-daemon");
  std::string list = "name root\n";
  for (int i = 0; i < kStreams; ++i) {
    agents.push_back(Agent(Node(i), "agent-" + Node(i)));
    watchers.push_back(std::make_unique<Watcher>(Dial(address_, "user-root"), lost_profile));
    ASSERT_TRUE(watchers.back()->Next());
    absl::StrAppend(&list, "serial ", Serial("agent-" + Node(i)), "  # ", Node(i), "\n");
  }
  Watcher kept(Dial(address_, "user-daemon"), kept_profile);
  ASSERT_TRUE(kept.Next());
  const auto standing = Dial(address_, "user-root");
  ASSERT_TRUE(List(standing).ok());
  const auto asking = Dial(address_, "user-daemon");
  Asker asker([&] { return List(asking); });
  ASSERT_TRUE(AwaitConnected(kStreams + 1));

  Revoke(list);
  ASSERT_TRUE(Reload().ok());
  const absl::Time reloaded = absl::Now();
  for (const auto& agent : agents) {
    while (agent->Read().has_value()) {
    }
  }
  for (const auto& agent : agents) {
    const grpc::Status end = agent->End();
    EXPECT_EQ(end.error_code(), StatusCode::PERMISSION_DENIED) << end.error_message();
    EXPECT_THAT(end.error_message(),
                ContainsRegex("perfd://agent/lost.* is revoked by its serial"));
  }
  for (const auto& watcher : watchers) {
    const grpc::Status end = watcher->End();
    EXPECT_EQ(end.error_code(), StatusCode::PERMISSION_DENIED) << end.error_message();
    EXPECT_THAT(end.error_message(), HasSubstr("is revoked by its name"));
  }
  EXPECT_LT(absl::Now() - reloaded, kWithin);
  EXPECT_EQ(Refused("revoked"), 2u * kStreams);
  EXPECT_TRUE(AwaitConnected(1));

  // New calls: on a connection that stands, and on new ones.
  for (const auto& channel : {standing, Dial(address_, "user-root")}) {
    const grpc::Status call = List(channel);
    EXPECT_EQ(call.error_code(), StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(call.error_message(), HasSubstr("perfd://user/root"));
    EXPECT_THAT(call.error_message(), HasSubstr("is revoked by its name"));
    grpc::ClientContext context;
    v1::GetVersionResponse version;
    EXPECT_EQ(v1::Profiler::NewStub(channel)->GetVersion(&context, {}, &version).error_code(),
              StatusCode::PERMISSION_DENIED);
  }
  FakeAgent again(Dial(address_, "agent-lost0"), "lost0");
  EXPECT_FALSE(again.Join().has_value());
  EXPECT_THAT(again.End().error_message(), HasSubstr("is revoked by its serial"));

  EXPECT_TRUE(kept.Next());
  kept.Cancel();
  v1::AgentMessage beat;
  beat.mutable_heartbeat();
  EXPECT_TRUE(other->Send(beat));
  asker.Stop();
  EXPECT_GT(asker.calls(), 0);
  EXPECT_EQ(asker.failed(), 0);
}

TEST_F(RevokedTest, AListThatIsWrongLeavesTheOldOne) {
  Revoke("name root\n");
  ASSERT_TRUE(Reload().ok());
  Revoke("name daemon\nnmae root\n");
  EXPECT_THAT(std::string(Reload().message()), HasSubstr("line 2: 'nmae' begins no entry"));
  EXPECT_EQ(List(Dial(address_, "user-root")).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(List(Dial(address_, "user-daemon")).ok());
  const std::vector<DoctorCheck> checks = tls_.Checks(absl::Now());
  EXPECT_FALSE(checks.back().ok);
  EXPECT_THAT(checks.back().found, HasSubstr("the list before it holds"));
  // At the start there is no old one.
  TlsOptions options = options_;
  TlsGate gate;
  EXPECT_THAT(std::string(gate.Open(options).message()), HasSubstr("line 2"));
  options.revoked = folder_ + "/missing";
  EXPECT_EQ(gate.Open(options).code(), absl::StatusCode::kNotFound);
}

// The list is in force also when the certificates are not taken.
TEST_F(RevokedTest, BrokenCertificatesDoNotHoldUpARevocation) {
  const auto agent = Agent("other", "agent-other");
  Revoke("name other\n");
  options_.cert = "/missing";
  EXPECT_FALSE(Reload().ok());
  EXPECT_THAT(agent->End().error_message(), HasSubstr("is revoked by its name"));
}

// First both CAs, then the new certificates one by one, then the old CA goes.
TEST_F(RevokedTest, ARolloverOfTheCaFailsNoCallOfOthers) {
  MakeCertificates("new", "server localhost 127.0.0.1 user root daemon agent other");
  const std::string both = folder_ + "/both.crt";
  const std::string new_ca = folder_ + "/new/ca.crt";
  std::ofstream(both) << Read("ca.crt") << Read("../new/ca.crt");

  const auto old_agent = Agent("lost0", "agent-lost0");
  const auto old_channel = Dial(address_, "user-root", "../both.crt");
  ASSERT_TRUE(List(old_channel).ok());
  Asker old_asker([&] { return List(old_channel); });
  Asker newcomer([&] { return List(Dial(address_, "user-daemon", "../both.crt")); });
  options_.ca = both;
  ASSERT_TRUE(Reload().ok());

  const auto new_agent = Agent("other", "../new/agent-other", "../both.crt");
  const auto new_channel = Dial(address_, "../new/user-daemon", "../both.crt");
  ASSERT_TRUE(List(new_channel).ok());
  Asker new_asker([&] { return List(new_channel); });
  Asker new_newcomer([&] { return List(Dial(address_, "../new/user-daemon", "../both.crt")); });
  options_.cert = folder_ + "/new/server.crt";
  options_.key = folder_ + "/new/server.key";
  ASSERT_TRUE(Reload().ok());
  ASSERT_TRUE(AwaitConnected(2));
  old_asker.Stop();
  newcomer.Stop();
  EXPECT_GT(old_asker.calls(), 0);
  EXPECT_GT(newcomer.calls(), 0);
  EXPECT_EQ(old_asker.failed(), 0);
  EXPECT_EQ(newcomer.failed(), 0);

  options_.ca = new_ca;
  ASSERT_TRUE(Reload().ok());
  const grpc::Status end = old_agent->End();
  EXPECT_EQ(end.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(end.error_message(), HasSubstr("is of no CA that perfd accepts now"));
  EXPECT_THAT(List(old_channel).error_message(), HasSubstr("is of no CA that perfd accepts now"));
  EXPECT_TRUE(AwaitConnected(1));
  v1::AgentMessage beat;
  beat.mutable_heartbeat();
  EXPECT_TRUE(new_agent->Send(beat));
  const int calls = new_asker.calls();
  for (const absl::Time until = absl::Now() + kWithin;
       new_asker.calls() <= calls && absl::Now() < until;)
    absl::SleepFor(absl::Milliseconds(1));
  new_asker.Stop();
  new_newcomer.Stop();
  EXPECT_GT(new_asker.calls(), calls) << "nobody asked after the old CA had gone";
  EXPECT_EQ(new_asker.failed(), 0);
  EXPECT_EQ(new_newcomer.failed(), 0);
}

TEST_F(RevokedTest, CertificatesAreMadeFor397DaysAtMost) {
  const Certificate made = LoadCertificates(certs_ + "/agent-other.crt")->front();
  EXPECT_LE(made.ends - made.begins, absl::Hours(397 * 24));
  const std::string make =
      absl::StrCat(" deploy/make-certs.sh ", certs_, " agent other >/dev/null 2>&1");
  for (const char* days : {"398", "0", "1y"})
    EXPECT_NE(std::system(absl::StrCat("PERFD_CERT_DAYS='", days, "'", make).c_str()), 0) << days;
  EXPECT_EQ(std::system(absl::StrCat("PERFD_CERT_DAYS=1", make).c_str()), 0);
  const Certificate day = LoadCertificates(certs_ + "/agent-other.crt")->front();
  EXPECT_EQ(day.ends - day.begins, absl::Hours(24));
}

// The certificates of a file that end soon are said; what an agent connected with is known.
TEST_F(RevokedTest, WhenCertificatesEndIsShown) {
  const auto agent = Agent("other", "agent-other");
  const auto ends = [&](const std::string& who) {
    return absl::ToUnixSeconds(LoadCertificates(certs_ + "/" + who + ".crt")->front().ends);
  };
  EXPECT_THAT(tls_.Figures().expiry_seconds,
              testing::ElementsAre(testing::Pair("ca", ends("ca")),
                                   testing::Pair("server", ends("server"))));
  const DaemonFigures figures = pipeline_->Figures();
  ASSERT_EQ(figures.agents.size(), 1u);
  EXPECT_EQ(figures.agents.front().certificate_expiry_seconds, ends("agent-other"));

  const absl::Time end = absl::FromUnixSeconds(ends("server"));
  for (const auto& [now, ok, usable] :
       std::vector<std::tuple<absl::Time, bool, bool>>{{absl::Now(), true, true},
                                                       {end - absl::Hours(1), false, true},
                                                       {end + absl::Hours(30), false, false}}) {
    const std::vector<DoctorCheck> checks = tls_.Checks(now);
    ASSERT_EQ(checks.size(), 3u);
    EXPECT_EQ(checks[1].name, "certificate server");
    EXPECT_EQ(checks[1].ok, ok) << now;
    EXPECT_EQ(checks[1].optional, usable) << now;
    EXPECT_EQ(checks[1].fix.empty(), ok) << now;
    testing::internal::CaptureStderr();
    tls_.WarnOfExpiry(now);
    const std::string first = testing::internal::GetCapturedStderr();
    EXPECT_EQ(absl::StrContains(first, "server.crt: it end"), !ok) << first;
    testing::internal::CaptureStderr();
    tls_.WarnOfExpiry(now + absl::Minutes(59));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // once a day
  }
}

}  // namespace
}  // namespace perfd::daemon
