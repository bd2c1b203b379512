// Many calls of one user: what they cost when there is nobody else, what is refused when there are too many.
// Usage: crowd --address unix:PATH --pid PID --node NODE [--seconds S] [--threads N] [--pause-ms MS] [--calls submit,watch,...]
// Each thread makes one kind of call after the other, those that it is told.
// `ends`: asks after the profiles it submitted; "end" is how much longer than its duration each took.
// Prints one JSON line: of each call how many were answered, refused by a limit and failed otherwise, and how long answers took, in ms.
#include <grpcpp/client_context.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/version.h"
#include "core/dial/dial.h"
#include "core/model/profile_spec.h"
#include "core/wire/wire.h"
#include "perfd/v1/hook.grpc.pb.h"
#include "perfd/v1/profiler.grpc.pb.h"

namespace perfd {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr int64_t kDurationNs = kNsPerSecond;  // of each profile

struct Plan {
  std::string address;
  std::string node = "node1";
  int pid = 0;
  int seconds = 10;
  int threads = 1;
  int connections = 0;
  int pause_ms = 100;
  int watch_ms = 0;
  std::string profile;
  std::string calls = "submit,status,watch,report,history";
};

struct Outcome {
  uint64_t answered = 0;
  uint64_t refused = 0;
  uint64_t failed = 0;
  std::string failure;
  std::vector<double> ms;
};

class Outcomes {
 public:
  void Add(const std::string& call, const grpc::Status& status, double ms) {
    MutexLock lock(&mutex_);
    Outcome& outcome = outcomes_[call];
    if (status.ok()) {
      ++outcome.answered;
      outcome.ms.push_back(ms);
    } else if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
      ++outcome.refused;
      outcome.failure = status.error_message();
    } else {
      ++outcome.failed;
      outcome.failure = status.error_message();
    }
  }

  nlohmann::ordered_json Json() {
    MutexLock lock(&mutex_);
    nlohmann::ordered_json json;
    for (auto& [call, outcome] : outcomes_) {
      std::sort(outcome.ms.begin(), outcome.ms.end());
      const auto quantile = [&ms = outcome.ms](double q) {
        if (ms.empty()) return 0.0;
        return ms[static_cast<size_t>(q * static_cast<double>(ms.size() - 1))];
      };
      json[call] = {{"answered", outcome.answered}, {"refused", outcome.refused},
                    {"failed", outcome.failed},     {"failure", outcome.failure},
                    {"p50_ms", quantile(0.5)},      {"p99_ms", quantile(0.99)},
                    {"max_ms", quantile(1)}};
    }
    return json;
  }

 private:
  Mutex mutex_;
  std::map<std::string, Outcome> outcomes_ ABSL_GUARDED_BY(mutex_);
};

// One connection and the calls over it.
class Caller {
 public:
  Caller(const Plan& plan, std::shared_ptr<grpc::Channel> channel, Outcomes& outcomes)
      : plan_(plan),
        stub_(v1::Profiler::NewStub(channel)),
        hook_(v1::Hook::NewStub(channel)),
        outcomes_(outcomes),
        profile_(plan.profile) {}

  // The connection was closed.
  bool lost() const { return lost_; }

  void Make(const std::string& call) {
    if (call == "submit") return Submit();
    if (call == "watch") return Watch();
    if (call == "ends") return Ends();
    if (call == "hook") return Hook();
    if (call == "status")
      return Ask<v1::GetProfileRequest, v1::ProfileStatus>(call, &Stub::GetProfile, profile_);
    if (call == "report")
      return Ask<v1::GetReportRequest, v1::Report>(call, &Stub::GetReport, profile_);
    if (call == "history")
      return Ask<v1::HistoryRequest, v1::HistoryResponse>(call, &Stub::GetHistory);
    if (call == "list")
      return Ask<v1::ListProfilesRequest, v1::ListProfilesResponse>(call, &Stub::ListProfiles);
    if (call == "nodes")
      return Ask<v1::ListNodesRequest, v1::ListNodesResponse>(call, &Stub::ListNodes);
    if (call == "doctor") return Ask<v1::DoctorRequest, v1::DoctorResponse>(call, &Stub::Doctor);
  }

 private:
  using Stub = v1::Profiler::Stub;

  void Timed(const std::string& call,
             const std::function<grpc::Status(grpc::ClientContext& context)>& make) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    const int64_t begin = SystemClock().MonotonicNs();
    grpc::Status status = make(context);
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) status = {};  // an answer, too
    lost_ |= status.error_code() == grpc::StatusCode::UNAVAILABLE;
    outcomes_.Add(call, status, static_cast<double>(SystemClock().MonotonicNs() - begin) / 1e6);
  }

  template <typename Request, typename Response>
  void Ask(const std::string& call,
           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
           const std::string& id = "") {
    Request request;
    if constexpr (requires { request.set_id(id); }) {
      if (id.empty()) return;  // nothing was submitted yet
      request.set_id(id);
    }
    Response response;
    Timed(call, [&](grpc::ClientContext& context) {
      return (stub_.get()->*method)(&context, request, &response);
    });
  }

  void Submit() {
    ProfileSpec spec;
    spec.name = "crowd";
    spec.target.pids = {plan_.pid};
    spec.target.node = plan_.node;
    spec.duration_ns = kDurationNs;
    spec.until_known = false;
    v1::SubmitRequest request;
    *request.mutable_spec() = wire::ToProto(spec);
    request.set_protocol_version(kProtocolVersion);
    v1::SubmitResponse response;
    Timed("submit", [&](grpc::ClientContext& context) {
      return stub_->Submit(&context, request, &response);
    });
    if (response.status().id().empty()) return;
    profile_ = response.status().id();
    active_.push_back(profile_);
  }

  // Of each profile submitted that is over: how long after its duration it was.
  void Ends() {
    std::erase_if(active_, [this](const std::string& id) {
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
      v1::GetProfileRequest request;
      request.set_id(id);
      v1::ProfileStatus status;
      if (!stub_->GetProfile(&context, request, &status).ok()) return false;
      if (status.finished_unix_ns() == 0) return false;
      const int64_t took_ns = status.finished_unix_ns() - status.submitted_unix_ns();
      outcomes_.Add("end", {}, static_cast<double>(took_ns - kDurationNs) / 1e6);
      return true;
    });
  }

  // To its first event, and, as told, some time more.
  void Watch() {
    if (profile_.empty()) return;
    v1::WatchRequest request;
    request.set_id(profile_);
    request.set_top_loops(10);
    Timed("watch", [&](grpc::ClientContext& context) {
      const auto stream = stub_->Watch(&context, request);
      v1::WatchEvent event;
      const bool told = stream->Read(&event);
      const int64_t end = SystemClock().MonotonicNs() + int64_t{plan_.watch_ms} * kNsPerMs;
      while (told && SystemClock().MonotonicNs() < end && stream->Read(&event)) {
      }
      context.TryCancel();
      const grpc::Status status = stream->Finish();
      return told ? grpc::Status::OK : status;
    });
  }

  // A job of whom the policy leaves alone, or profiles: perfd decides either way.
  void Hook() {
    v1::HookRequest request;
    request.mutable_job()->set_job(std::to_string(++job_));
    request.mutable_job()->set_uid(30003);
    request.mutable_job()->set_nodes(plan_.node);
    request.mutable_job()->set_preference(v1::HOOK_PREFERENCE_NONE);
    v1::HookResponse response;
    Timed("hook begin", [&](grpc::ClientContext& context) -> grpc::Status {
      const grpc::Status status = hook_->Begin(&context, request, &response);
      if (response.decision() != v1::HOOK_DECISION_UNAVAILABLE) return status;
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, response.reason()};
    });
    Timed("hook end",
          [&](grpc::ClientContext& context) { return hook_->End(&context, request, &response); });
  }

  const Plan& plan_;
  std::unique_ptr<Stub> stub_;
  std::unique_ptr<v1::Hook::Stub> hook_;
  Outcomes& outcomes_;
  std::string profile_;
  std::vector<std::string> active_;  // whose end was not seen
  bool lost_ = false;
  int64_t job_ = SystemClock().MonotonicNs();
};

// One connection for some callers; made anew when one of them has lost it.
class Connection {
 public:
  explicit Connection(std::string address) : address_(std::move(address)) {}

  absl::StatusOr<std::shared_ptr<grpc::Channel>> Get(bool lost) {
    MutexLock lock(&mutex_);
    const int64_t now = SystemClock().MonotonicNs();
    if (channel_ != nullptr && (!lost || now - made_ns_ < kNsPerSecond / 10)) return channel_;
    DialOptions dial;
    dial.address = address_;
    auto channel = Dial(dial);
    if (!channel.ok()) return channel.status();
    channel_ = *std::move(channel);
    made_ns_ = now;
    return channel_;
  }

 private:
  const std::string address_;
  Mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);
  int64_t made_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

int Run(const Plan& plan) {
  Outcomes outcomes;
  const std::vector<std::string> calls = absl::StrSplit(plan.calls, ',');
  const int64_t end = SystemClock().MonotonicNs() + plan.seconds * kNsPerSecond;
  std::deque<Connection> connections;
  for (int i = 0; i < (plan.connections == 0 ? plan.threads : plan.connections); ++i)
    connections.emplace_back(plan.address);
  const auto call_on = [&](size_t next) {
    std::unique_ptr<Caller> caller;
    for (; SystemClock().MonotonicNs() < end; ++next) {
      if (caller == nullptr || caller->lost()) {
        const auto channel = connections[next % connections.size()].Get(caller != nullptr);
        if (!channel.ok()) {
          outcomes.Add("connect", {grpc::StatusCode::UNAVAILABLE, channel.status().ToString()}, 0);
          absl::SleepFor(absl::Milliseconds(100));
          continue;
        }
        caller = std::make_unique<Caller>(plan, *channel, outcomes);
      }
      caller->Make(calls[next % calls.size()]);
      absl::SleepFor(absl::Milliseconds(plan.pause_ms));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < plan.threads; ++i) threads.emplace_back(call_on, static_cast<size_t>(i));
  for (std::thread& thread : threads) thread.join();
  std::printf("%s\n", outcomes.Json().dump().c_str());
  return 0;
}

}  // namespace
}  // namespace perfd

int main(int argc, char** argv) {
  perfd::Plan plan;
  CLI::App app{"calls of one user to perfd"};
  app.add_option("--address", plan.address, "unix:PATH")->required();
  app.add_option("--pid", plan.pid, "whom submit profiles");
  app.add_option("--node", plan.node, "where")->capture_default_str();
  app.add_option("--seconds", plan.seconds, "how long")->capture_default_str();
  app.add_option("--threads", plan.threads, "callers at once")->capture_default_str();
  app.add_option("--connections", plan.connections, "that they share; 0: one each")
      ->capture_default_str();
  app.add_option("--pause-ms", plan.pause_ms, "between calls")->capture_default_str();
  app.add_option("--watch-ms", plan.watch_ms, "how long a watch stands after its first event")
      ->capture_default_str();
  app.add_option("--profile", plan.profile, "which, before one is submitted");
  app.add_option("--calls", plan.calls, "which, in turn")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return perfd::Run(plan);
}
