// A daemon that answers what the test says and remembers what it was asked.
#ifndef TESTS_UNIT_CLIENT_FAKE_DAEMON_CLIENT_H_
#define TESTS_UNIT_CLIENT_FAKE_DAEMON_CLIENT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/rpc/daemon_client.h"
#include "core/base/version.h"
#include "tests/unit/client/sample_report.h"

namespace perfd::client {

// What the fake answers with; outlives the client that a command makes and drops.
struct FakeDaemon {
  absl::Status error;  // of every request when not OK
  Report report = SampleReport();
  std::vector<NodeStatus> nodes;
  std::vector<DoctorReport> doctor;
  std::vector<LimitUse> limits;
  std::vector<DoctorCheck> own_certificate;
  std::vector<AuditEntry> audit;
  std::string url = "http://127.0.0.1:9754/profiles/p-000042?key=00";
  ProgramHistory history;
  std::pair<std::string, int> history_asked;  // command, limit
  DaemonVersion version{"9.9.9", kProtocolVersion};
  std::vector<WatchEvent> events;
  absl::Status watch_result;
  std::optional<ProfileSpec> submitted;
  std::vector<std::string> ids;  // asked for, in order
  std::vector<std::string> cancelled;
  bool knows_auto = true;  // duration: auto
  absl::Duration watch_timeout;
  HookAnswer hook_answer;
  HookOverview hook_overview;
  std::vector<HookJob> begun;
  std::vector<HookJob> ended;
  absl::Duration hook_timeout;
  int hook_limit = 0;
};

// The value, or the daemon's error.
template <typename T>
absl::StatusOr<T> AnswerOf(const FakeDaemon& fake, const T& value) {
  if (!fake.error.ok()) return fake.error;
  return value;
}

class FakeHookClient final : public HookClient {
 public:
  explicit FakeHookClient(FakeDaemon& fake) : fake_(fake) {}

  absl::StatusOr<HookAnswer> Begin(const HookJob& job, absl::Duration timeout) override {
    fake_.begun.push_back(job);
    fake_.hook_timeout = timeout;
    return AnswerOf(fake_, fake_.hook_answer);
  }
  absl::StatusOr<HookAnswer> End(const HookJob& job, absl::Duration timeout) override {
    fake_.ended.push_back(job);
    fake_.hook_timeout = timeout;
    return AnswerOf(fake_, fake_.hook_answer);
  }
  absl::StatusOr<HookOverview> List(int limit) override {
    fake_.hook_limit = limit;
    return AnswerOf(fake_, fake_.hook_overview);
  }

 private:
  FakeDaemon& fake_;
};

class FakeDaemonClient final : public DaemonClient {
 public:
  explicit FakeDaemonClient(FakeDaemon& fake) : fake_(fake) {}

  absl::StatusOr<ProfileStatus> Submit(const ProfileSpec& spec) override {
    fake_.submitted = spec;
    ProfileStatus status = fake_.report.status;
    status.spec.until_known = spec.until_known && fake_.knows_auto;
    status.spec.duration_ns = spec.duration_ns;
    return Answer(status);
  }
  absl::StatusOr<ProfileStatus> GetProfile(absl::string_view id) override {
    fake_.ids.emplace_back(id);
    return Answer(fake_.report.status);
  }
  absl::StatusOr<std::vector<ProfileStatus>> ListProfiles(bool, int) override {
    return Answer(std::vector<ProfileStatus>{fake_.report.status});
  }
  absl::StatusOr<Report> GetReport(absl::string_view id) override {
    fake_.ids.emplace_back(id);
    return Answer(fake_.report);
  }
  absl::StatusOr<ProfileStatus> Cancel(absl::string_view id) override {
    fake_.ids.emplace_back(id);
    fake_.cancelled.emplace_back(id);
    return Answer(fake_.report.status);
  }
  absl::StatusOr<std::vector<NodeStatus>> ListNodes() override { return Answer(fake_.nodes); }
  absl::StatusOr<std::vector<AuditEntry>> ListAudit(absl::string_view id, int) override {
    fake_.ids.emplace_back(id);
    return Answer(fake_.audit);
  }
  absl::StatusOr<std::string> GetReportUrl(absl::string_view id) override {
    fake_.ids.emplace_back(id);
    return Answer(fake_.url);
  }
  absl::StatusOr<ProgramHistory> GetHistory(absl::string_view command, int limit) override {
    fake_.history_asked = {std::string(command), limit};
    return Answer(fake_.history);
  }
  absl::StatusOr<std::vector<LimitUse>> ListLimits() override { return Answer(fake_.limits); }
  HookClient& hooks() override { return hooks_; }
  std::vector<DoctorCheck> CheckOwnCertificate() override { return fake_.own_certificate; }
  absl::StatusOr<std::vector<DoctorReport>> Doctor(absl::string_view) override {
    return Answer(fake_.doctor);
  }
  absl::StatusOr<DaemonVersion> GetVersion() override { return Answer(fake_.version); }

  absl::Status Watch(const WatchOptions& options,
                     const std::function<void(const WatchEvent&)>& on_event) override {
    fake_.ids.push_back(options.id);
    fake_.watch_timeout = options.timeout;
    for (const WatchEvent& event : fake_.events) {
      if (options.stop()) return absl::CancelledError("interrupted");
      on_event(event);
    }
    return fake_.watch_result;
  }

 private:
  template <typename T>
  absl::StatusOr<T> Answer(const T& value) {
    return AnswerOf(fake_, value);
  }

  FakeDaemon& fake_;
  FakeHookClient hooks_{fake_};
};

}  // namespace perfd::client

#endif  // TESTS_UNIT_CLIENT_FAKE_DAEMON_CLIENT_H_
