// Many simulated agents in one process: each connects to perfd, answers StartCommand, sends windows, waits for
// acknowledgements. Usage: fake_agents --address unix:PATH [--agents N] [--ranks R] [--loops L] [--windows W]
//                                      [--interval-ms T] [--name PREFIX] [--user-mode] [--audit ENTRIES]
// T 0: as fast as acknowledgements allow.
// Prints one JSON line at the end: windows and rows sent, seconds from the first window to the last acknowledgement.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/notification.h"
#include "core/base/version.h"
#include "core/dial/dial.h"
#include "core/wire/wire.h"
#include "perfd/v1/agent.grpc.pb.h"

namespace perfd {
namespace {

struct Plan {
  std::string address;
  int agents = 1000;
  int ranks = 64;
  int loops = 12;
  int windows = 12;
  int interval_ms = 5000;
  int audit = 0;
  int instructions = 0;  // of each loop that load; 0: accesses to memory are not sampled
  bool user_mode = false;
  std::string name = "node";
};

std::string NodeName(const Plan& plan, int agent) {
  return plan.name + std::to_string(agent);
}

std::string StreamName(const Plan& plan, int agent) {
  return "stream-" + NodeName(plan, agent) + "-" + std::to_string(::getpid());
}

struct Totals {
  std::atomic<int> connected{0};
  std::atomic<int> finished{0};
  std::atomic<int> failed{0};
  std::atomic<uint64_t> windows{0};
  std::atomic<uint64_t> acknowledged{0};
  std::atomic<int64_t> first_ns{0};
  std::atomic<int64_t> last_ns{0};
};

// A quarter as many accesses as samples of time, by as many instructions as asked for, found in all levels.
void AddAccesses(const Plan& plan, const RankInfo& rank, const CodeLocation& location,
                 uint32_t place, uint64_t accesses, WindowMemory* memory) {
  constexpr std::array kLevels = {MemoryLevel::kL1, MemoryLevel::kL1, MemoryLevel::kL2,
                                  MemoryLevel::kL3, MemoryLevel::kLocalDram};
  for (int i = 0; i < plan.instructions; ++i) {
    MemoryRow row;
    row.rank = rank.rank;
    row.pid = rank.pid;
    row.location = place;
    row.instruction = location.loop->header + static_cast<uint64_t>(8 * (i + 1));
    const auto instructions = static_cast<uint64_t>(plan.instructions);
    for (uint64_t n = 0; n < std::max<uint64_t>(accesses / instructions, 1); ++n) {
      const size_t level = (n + static_cast<uint64_t>(rank.rank)) % kLevels.size();
      SampledAccess access{.tid = rank.pid, .period = 50'021};
      access.access.address = 0x7f0000000000 + n * 64;
      access.access.latency_cycles = 5 + 60 * level;
      access.access.source = {.operation = MemoryOperation::kLoad, .level = kLevels[level]};
      row.profile.Add(access);
      row.times.Add(access);
    }
    memory->rows.push_back(row);
  }
}

Window MakeWindow(const Plan& plan, int agent, const std::string& profile, uint64_t sequence) {
  Window window;
  window.profile_id = profile;
  window.node = NodeName(plan, agent);
  window.stream_id = StreamName(plan, agent);
  window.sequence = sequence;
  window.start_unix_ns = SystemClock().UnixNs();
  window.duration_ns = 5 * kNsPerSecond;
  window.setup = {"cpu-clock", 199, true, "per-thread", Provenance::kSampled};
  for (int l = 0; l < plan.loops; ++l) {
    CodeLocation location;
    location.category = Category::kLoop;
    location.module_id = "0123456789abcdef0123456789abcdef01234567";
    location.module_path = "/opt/app/bin/simulation";
    location.function = "Solver::Step" + std::to_string(l) + "(Field const&, Field&)";
    location.function_low = 0x401000 + static_cast<uint64_t>(l) * 0x1000;
    LoopFacts loop;
    loop.header = location.function_low + 0x40;
    loop.depth = 2;
    location.loop = loop;
    location.source = {"/home/user/app/src/solver.cc", 100 + l * 20, 110 + l * 20};
    window.locations.push_back(location);
  }
  for (int r = 0; r < plan.ranks; ++r) {
    const int32_t rank = agent * plan.ranks + r;
    const int32_t pid = 1000 + r;
    RankInfo info;
    info.node = window.node;
    info.pid = pid;
    info.uid = ::getuid();
    info.start_ticks = 1;
    info.rank = rank;
    info.world_size = plan.agents * plan.ranks;
    info.command = "simulation";
    window.ranks.push_back(info);
    window.threads.push_back({rank, pid, pid});
    for (int l = 0; l < plan.loops; ++l) {
      const uint64_t samples = 20 + (static_cast<uint64_t>(r * 7 + l * 13) + sequence) % 60;
      window.rows.push_back(
          {static_cast<uint32_t>(r), static_cast<uint32_t>(l), samples, samples * 5'025'125});
      window.accounting.seen += samples;
      window.accounting.kept += samples;
      AddAccesses(plan, info, window.locations[static_cast<size_t>(l)], static_cast<uint32_t>(l),
                  samples / 4, &window.findings.memory);
    }
  }
  for (int i = 0; i < plan.audit; ++i) {
    AuditEntry entry;
    entry.unix_ns = window.start_unix_ns;
    entry.profile_id = profile;
    entry.node = window.node;
    entry.pid = 1000;
    entry.action = "map";
    entry.outcome = "ok";
    window.audit.push_back(entry);
  }
  if (plan.instructions > 0) window.findings.memory.events = {{.name = "simulated"}};
  return window;
}

// One agent as a callback reactor. Everything but OnDone runs one call after the other.
class FakeAgent final : public grpc::ClientBidiReactor<v1::AgentMessage, v1::DaemonMessage> {
 public:
  FakeAgent(const Plan& plan, int number, std::shared_ptr<grpc::Channel> channel, Totals& totals)
      : plan_(plan),
        number_(number),
        totals_(totals),
        stub_(v1::AgentService::NewStub(std::move(channel))) {
    stub_->async()->Connect(&context_, this);
    v1::Register& hello = *outgoing_.mutable_register_();
    hello.set_node(NodeName(plan, number));
    hello.set_version(kVersion);
    hello.set_protocol_version(kProtocolVersion);
    hello.set_stream_id(StreamName(plan, number));
    hello.set_user_mode(plan.user_mode);
    hello.set_instance_id(std::to_string(number));
    hello.set_uid(::getuid());
    hello.set_cpus(64);
    hello.set_sampling_event("cpu-clock");
    StartWrite(&outgoing_);
    StartRead(&incoming_);
    StartCall();
  }

  // Called by the driver every few ms: sends the next window when it is due.
  void Tick() {
    MutexLock lock(&mutex_);
    if (writing_ || profile_.empty() || over_) return;
    const int64_t now = SystemClock().MonotonicNs();
    if (sent_ < static_cast<uint64_t>(plan_.windows)) {
      if (sent_ - acknowledged_ >= 8 || now < next_ns_) return;
      ++sent_;
      next_ns_ = std::max(next_ns_ + int64_t{plan_.interval_ms} * kNsPerMs, now - kNsPerSecond);
      *outgoing_.mutable_window() = wire::ToProto(MakeWindow(plan_, number_, profile_, sent_));
      ++totals_.windows;
      int64_t none = 0;
      totals_.first_ns.compare_exchange_strong(none, now);
    } else if (acknowledged_ == sent_) {
      Announce(v1::NODE_PHASE_FINISHED);
      over_ = true;
      ++totals_.finished;
    } else {
      return;
    }
    writing_ = true;
    StartWrite(&outgoing_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    outgoing_.Clear();
    if (!ok) over_ = true;
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    {
      MutexLock lock(&mutex_);
      if (incoming_.has_welcome()) ++totals_.connected;
      if (incoming_.has_start() && profile_.empty()) {
        profile_ = incoming_.start().profile_id();
        // Spread over the interval, as clocks that were never synchronised are.
        next_ns_ = SystemClock().MonotonicNs() +
                   int64_t{plan_.interval_ms} * kNsPerMs * number_ / plan_.agents;
        first_sample_due_ = true;
      }
      if (incoming_.has_acknowledge()) {
        acknowledged_ += static_cast<uint64_t>(incoming_.acknowledge().sequences_size());
        totals_.acknowledged += static_cast<uint64_t>(incoming_.acknowledge().sequences_size());
        totals_.last_ns = SystemClock().MonotonicNs();
      }
      if (first_sample_due_ && !writing_) {
        first_sample_due_ = false;
        Announce(v1::NODE_PHASE_SAMPLING);
        writing_ = true;
        StartWrite(&outgoing_);
      }
    }
    StartRead(&incoming_);
  }

  void OnDone(const grpc::Status& status) override {
    if (!status.ok() && !cancelled_) {
      if (totals_.failed++ == 0)
        std::fprintf(stderr, "agent %d: %s\n", number_, status.error_message().c_str());
    }
    done_.Notify();
  }

  void Close() {
    cancelled_ = true;
    context_.TryCancel();
    done_.WaitForNotificationWithTimeout(absl::Seconds(10));
  }

 private:
  void Announce(v1::NodePhase phase) {
    v1::SessionUpdate& update = *outgoing_.mutable_session();
    update.set_profile_id(profile_);
    update.set_phase(phase);
    update.set_threads(plan_.ranks);
    update.set_first_sample(true);
    for (const RankInfo& rank : MakeWindow(plan_, number_, profile_, 1).ranks)
      *update.add_ranks() = wire::ToProto(rank);
    if (phase == v1::NODE_PHASE_FINISHED) update.set_last_sequence(sent_);
  }

  const Plan& plan_;
  const int number_;
  Totals& totals_;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  std::atomic<bool> cancelled_{false};
  Notification done_;
  v1::DaemonMessage incoming_;
  Mutex mutex_;
  v1::AgentMessage outgoing_;
  bool writing_ = true;  // the greeting
  bool over_ = false;
  bool first_sample_due_ = false;
  std::string profile_;
  uint64_t sent_ = 0;
  uint64_t acknowledged_ = 0;
  int64_t next_ns_ = 0;
};

int Run(const Plan& plan) {
  Totals totals;
  std::vector<std::unique_ptr<FakeAgent>> agents;
  DialOptions dial;
  dial.address = plan.address;
  for (int i = 0; i < plan.agents; ++i) {
    auto channel = Dial(dial);
    if (!channel.ok()) {
      std::fprintf(stderr, "agent %d: %s\n", i, std::string(channel.status().message()).c_str());
      return 1;
    }
    agents.push_back(std::make_unique<FakeAgent>(plan, i, *channel, totals));
  }
  const int64_t limit_ns = SystemClock().MonotonicNs() + 120 * kNsPerSecond +
                           int64_t{plan.windows} * plan.interval_ms * kNsPerMs * 2;
  bool said = false;
  while (totals.finished + totals.failed < plan.agents && SystemClock().MonotonicNs() < limit_ns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (!said && totals.connected == plan.agents) {
      std::printf("{\"connected\": %d}\n", plan.agents);
      std::fflush(stdout);
      said = true;
    }
    for (auto& agent : agents) agent->Tick();
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  for (auto& agent : agents) agent->Close();
  const double seconds = static_cast<double>(totals.last_ns - totals.first_ns) / 1e9;
  const uint64_t rows =
      totals.acknowledged * static_cast<uint64_t>(plan.ranks) * static_cast<uint64_t>(plan.loops);
  std::printf(
      "{\"agents\": %d, \"windows_sent\": %llu, \"windows_acknowledged\": %llu, \"rows\": %llu, "
      "\"seconds\": %.3f, \"rows_per_second\": %.0f, \"failed\": %d}\n",
      plan.agents, static_cast<unsigned long long>(totals.windows),
      static_cast<unsigned long long>(totals.acknowledged), static_cast<unsigned long long>(rows),
      seconds, static_cast<double>(rows) / seconds, totals.failed.load());
  return totals.finished == plan.agents ? 0 : 1;
}

}  // namespace
}  // namespace perfd

int main(int argc, char** argv) {
  perfd::Plan plan;
  CLI::App app{"simulated agents for perfd"};
  app.add_option("--address", plan.address, "unix:PATH")->required();
  app.add_option("--agents", plan.agents, "connections")->capture_default_str();
  app.add_option("--ranks", plan.ranks, "ranks of each agent")->capture_default_str();
  app.add_option("--loops", plan.loops, "loops of each rank")->capture_default_str();
  app.add_option("--windows", plan.windows, "windows of each agent")->capture_default_str();
  app.add_option("--interval-ms", plan.interval_ms, "time between windows; 0: at once")
      ->capture_default_str();
  app.add_option("--audit", plan.audit, "entries for the audit log in each window")
      ->capture_default_str();
  app.add_option("--instructions", plan.instructions,
                 "instructions of each loop whose accesses to memory are sampled")
      ->capture_default_str();
  app.add_option("--name", plan.name, "what node names begin with")->capture_default_str();
  app.add_flag("--user-mode", plan.user_mode, "as agents of an ordinary user");
  CLI11_PARSE(app, argc, argv);
  return perfd::Run(plan);
}
