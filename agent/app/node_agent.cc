#include "agent/app/node_agent.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "agent/app/guarded_proc.h"
#include "agent/app/reader_source.h"
#include "agent/doctor/injection_check.h"
#include "agent/experiment/node_experimenter.h"
#include "agent/experiment/preparation.h"
#include "agent/link/link_codec.h"
#include "agent/pipeline/cost/own_cpu.h"
#include "agent/reader/unwind_client.h"
#include "agent/sample/event_choice.h"
#include "agent/sample/ring/perf_event.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/dial/dial_settings.h"

namespace perfd::agent {
namespace {

constexpr char kTracerName[] = "perf-agent-tracer";
constexpr absl::Duration kDrainOnExit = absl::Seconds(3);
constexpr absl::Duration kSayGoodbye = absl::Seconds(5);

std::string KernelRelease() {
  utsname name{};
  return ::uname(&name) == 0 ? name.release : "";
}

std::string KernelBootId() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(in, id);
  return id;
}

// What `auto` chooses on this node; empty when nothing can be sampled.
std::string UsableEvent() {
  const auto event = ChooseEvent(SamplingOptions(), ProbePerfEvent);
  return event.ok() ? event->name : "";
}

// A reader process that unwinds, as the pipeline sees it.
class ProcessStackSource final : public StackSource {
 public:
  explicit ProcessStackSource(std::unique_ptr<UnwindClient> client) : client_(std::move(client)) {}
  absl::StatusOr<CallPath> Unwind(const StackCopy& copy, absl::Duration timeout) override {
    return client_->Unwind(copy, timeout);
  }
  uint64_t cpu_ns() const override { return client_->CpuNs(); }

 private:
  std::unique_ptr<UnwindClient> client_;
};

OpenStackSource StackOpener(const ReaderOptions& options) {
  return [options](const StackTarget& target) -> absl::StatusOr<std::unique_ptr<StackSource>> {
    const UnwindProcess process{.pid = target.pid, .uid = target.uid, .gid = target.gid};
    ASSIGN_OR_RETURN(auto client, UnwindClient::Start(process, target.mappings, options));
    return std::make_unique<ProcessStackSource>(std::move(client));
  };
}

int ThreadsOf(const Discovery& discovery, const ProcFs& procfs) {
  size_t threads = 0;
  for (const RankInfo& rank : discovery.ranks) {
    const auto tids = procfs.Threads(rank.pid);
    if (tids.ok()) threads += tids->size();
  }
  return static_cast<int>(std::min<size_t>(threads, INT_MAX));
}

AnonymousPorts PortsOf(const ProcFs& procfs, const Clock& clock) {
  return {.read_memory =
              [procfs](int32_t pid, RuntimeAddress at, size_t bytes) {
                return MemoryOf(procfs, pid, {.offset = at.value(), .bytes = bytes});
              },
          .read_perf_map = [procfs, &clock](
                               const ProcessId& process,
                               uint32_t uid) { return ReadPerfMap(procfs, clock, process, uid); }};
}

SamplingOptions OptionsOf(const ProfileSpec& spec, const Discovery& discovery,
                          const ProcFs& procfs) {
  SamplingOptions options;
  options.event = spec.hotspots.event;
  options.frequency_hz = spec.hotspots.frequency_hz;
  options.callpaths = spec.hotspots.callpaths;
  options.cgroup = discovery.cgroup;
  options.threads = ThreadsOf(discovery, procfs);
  return options;
}

std::unique_ptr<HealAfter> StartHealAfter(const AgentOptions& options) {
  auto started = HealAfter::Start(NodeAgent::HealingOf(options));
  if (started.ok()) return *std::move(started);
  LogWarning("if this agent is killed, its jumps stay in ranks: {}", Text(started.status()));
  return nullptr;
}

const Journal* JournalOf(const HeldJournals* held) {
  return held == nullptr ? nullptr : &held->journal;
}

}  // namespace

NodeAgent::NodeAgent(AgentOptions options, std::unique_ptr<Spool> spool)
    : options_(std::move(options)),
      inject_(options_.inject),
      procfs_(GuardedProc(options_.reader_binary, clock_)),
      finder_(procfs_, options_.node),
      spool_(std::move(spool)) {}

absl::StatusOr<std::unique_ptr<NodeAgent>> NodeAgent::Create(AgentOptions options) {
  if (options.reader_binary.empty()) options.reader_binary = BesideThisProgram(kReaderName);
  if (::access(options.reader_binary.c_str(), X_OK) != 0)
    return absl::NotFoundError(absl::StrCat(
        options.reader_binary, " is missing; install it beside perf-agent or give --reader"));
  HealOptions healing = HealingOf(options);
  options.tracer_binary = healing.tracer_binary;
  options.journal_directory = healing.journal_directory;
  if (options.spool_directory.empty()) return absl::InvalidArgumentError(kNoFolder);
  const SpoolUsers users = options.user_mode ? SpoolUsers::kOne : SpoolUsers::kMany;
  ASSIGN_OR_RETURN(auto spool,
                   Spool::Create(options.spool_directory, options.spool_limit_bytes, users));
  std::unique_ptr<NodeAgent> agent(new NodeAgent(std::move(options), std::move(spool)));
  const AgentOptions& o = agent->options_;
  RETURN_IF_ERROR(agent->OpenJournals());
  agent->resolver_ =
      std::make_unique<Resolver>(ReaderOpener({.reader_binary = o.reader_binary}), agent->clock_,
                                 PortsOf(agent->procfs_, agent->clock_));
  const AgentIdentity identity{
      .node = o.node,
      .sampling_event = UsableEvent(),
      .kernel = KernelRelease(),
      .boot_id = KernelBootId(),
      .cpus = static_cast<int32_t>(std::thread::hardware_concurrency()),
      .uid = ::geteuid(),
      .user_mode = o.user_mode,
  };
  agent->link_ = std::make_unique<DaemonLink>(o.dial, identity, *agent->spool_, *agent);
  agent->sessions_ = std::make_unique<SessionTable>(agent->Tools(), agent.get());
  LogInfo(
      "node {}, sampling with {}, spool {} ({} windows waiting)", o.node,
      identity.sampling_event.empty() ? "nothing (see perf-agent doctor)" : identity.sampling_event,
      o.spool_directory, agent->spool_->windows());
  agent->link_->Start();
  return agent;
}

// An error: another agent works with them. What an earlier agent left and could not be taken out just now is left to the healer.
absl::Status NodeAgent::OpenJournals() {
  const auto answers = Answers(procfs_);
  auto journals = AdoptJournals(options_.journal_directory, options_.tracer_binary, answers);
  if (absl::IsFailedPrecondition(journals.status())) return journals.status();
  if (journals.ok()) {
    // A service manager starts an agent that was killed again; nobody does that for a user's.
    if (options_.user_mode && options_.inject) (*journals)->heal_after = StartHealAfter(options_);
    journals_ = *std::move(journals);
  } else {
    LogWarning("no loop will be altered: {}; give --journal-dir", Text(journals.status()));
  }
  inject_ = options_.inject && journals_ != nullptr;
  late_ = std::make_unique<LateHealer>(
      LateHealerOptions{.heal = HealByJournal({.program = options_.tracer_binary, .arguments = {}},
                                              JournalOf(journals_.get()), answers)});
  if (journals_ == nullptr) return absl::OkStatus();
  std::vector<std::string> damaged;
  for (const Injection& injection : journals_->journal.ReadAll(&damaged)) {
    RankInfo rank;
    rank.pid = injection.pid;
    rank.start_ticks = injection.start_ticks;
    late_->HealLater(rank);
  }
  return absl::OkStatus();
}

HealOptions NodeAgent::HealingOf(const AgentOptions& options) {
  const auto program = [](const std::string& given, const char* name) {
    return given.empty() ? BesideThisProgram(name) : given;
  };
  HealOptions healing;
  healing.reader_binary = program(options.reader_binary, kReaderName);
  healing.tracer_binary = program(options.tracer_binary, kTracerName);
  healing.disable_file = options.disable_file;
  healing.journal_directory = options.journal_directory;
  if (healing.journal_directory.empty() && !options.spool_directory.empty())
    healing.journal_directory = options.spool_directory + "-journal";
  return healing;
}

NodeAgent::~NodeAgent() {
  if (sessions_ == nullptr) return;  // it did not come into being
  // From the outside in: no command, no callback and no window may meet a part that is gone.
  sessions_->EndAll();
  link_->Stop();
  resolver_.reset();
  sessions_.reset();
  link_.reset();
}

SessionTools NodeAgent::Tools() {
  SessionTools tools;
  tools.procfs = &procfs_;
  tools.finder = &finder_;
  tools.clock = &clock_;
  tools.resolver = resolver_.get();
  tools.output = this;
  tools.node = options_.node;
  tools.may_alter = [this] { return inject_.load(); };
  tools.make_experimenter = [this]() -> std::unique_ptr<Experimenter> {
    return std::make_unique<NodeExperimenter>(
        ExperimenterOptions{.tracer = {.program = options_.tracer_binary, .arguments = {}},
                            .journal = JournalOf(journals_.get()),
                            .disable_file = options_.disable_file,
                            .allowed = &inject_,
                            .clock = &clock_,
                            .allow_recovery = options_.allow_recovery,
                            .leases = &leases_,
                            .late = late_.get(),
                            .answers = Answers(procfs_),
                            .sleep = nullptr,
                            .open_injector = nullptr});
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): what it makes is the caller's
  };
  tools.open_stacks = StackOpener({.reader_binary = options_.reader_binary});
  tools.open_source = [this](const ProfileSpec& spec, const Discovery& discovery) {
    return sampling_.Open(OptionsOf(spec, discovery, procfs_), spec.memory, procfs_, &clock_);
  };
  return tools;
}

void NodeAgent::Tick() {
  sessions_->Tidy();
  sampling_.LearnUsualCosts(OptionsOf(ProfileSpec(), Discovery(), procfs_), procfs_);
}

void NodeAgent::Apply(const AgentOptions& options) {
  inject_ = options.inject && journals_ != nullptr;
  spool_->SetLimit(options.spool_limit_bytes);
  link_->dial().SetTls(options.dial);
}

AgentOptions NodeAgent::OptionsNow() const {
  AgentOptions now = options_;
  now.inject = inject_;
  now.dial = link_->dial().options();
  return now;
}

bool NodeAgent::Shutdown(bool for_good) {
  const absl::Time end = absl::Now() + kSayGoodbye;
  while (for_good && sessions_->running() > 0 && absl::Now() < end)
    absl::SleepFor(absl::Milliseconds(20));
  const bool goes_on = !for_good && sessions_->running() > 0;  // with the agent after this one
  const bool all_ended = sessions_->EndAll();
  link_->AwaitDrained(connected() ? kDrainOnExit : absl::ZeroDuration());
  if (spool_->windows() > 0)
    LogInfo("{} windows stay in the spool for the next start", spool_->windows());
  // A user's agents end with their job: nobody clears away behind them.
  if (options_.user_mode && !goes_on && all_ended && spool_->RemoveEmpty() && journals_ != nullptr)
    journals_->journal.RemoveEmpty();  // journals of ranks keep it
  return all_ended;
}

void NodeAgent::OnStart(SessionRequest request) {
  if (options_.user_mode && request.requester.uid != ::geteuid()) {
    OnUpdate(FailedUpdate(
        request.profile_id, options_.node,
        absl::PermissionDeniedError("this agent runs in user mode and serves only its own user")));
    return;
  }
  request.clock_ahead_ns = link_->clock_ahead_ns();
  if (!AlreadyMeasured(request)) sessions_->Start(std::move(request));
}

// A daemon that was away asks for all that it has not stored, also for what an agent before this
// one left in the spool. Takes that off the request; true, and the daemon is told, when nothing is
// left to do.
bool NodeAgent::AlreadyMeasured(SessionRequest& request) {
  for (const SessionUpdate& last : sessions_->LatestUpdate()) {
    if (last.profile_id == request.profile_id)
      return false;  // its session began here and answers for itself
  }
  const SpoolBacklog waiting = spool_->Waiting(request.profile_id, link_->stored_sequence());
  request.remaining_ns -= waiting.covered_ns;
  if (request.remaining_ns > 0) return false;
  SessionUpdate update;
  update.profile_id = request.profile_id;
  update.phase = NodeProgress::Phase::kFinished;
  update.last_sequence = waiting.last_sequence;
  OnUpdate(update);
  return true;
}

void NodeAgent::OnStop(const std::string& profile_id) {
  sessions_->Stop(profile_id);
}

NodeCheckOptions NodeAgent::CheckOptions(const AgentOptions& options) {
  NodeCheckOptions checks;
  HealOptions healing = HealingOf(options);
  checks.reader_binary = std::move(healing.reader_binary);
  checks.tracer_binary = std::move(healing.tracer_binary);
  checks.disable_file = options.disable_file;
  checks.inject = options.inject;
  checks.steady_clock = TscIsInvariant();
  checks.user_mode = options.user_mode;
  return checks;
}

std::vector<NodeCheck> NodeAgent::Check(const AgentOptions& options) {
  std::vector<NodeCheck> checks = RunNodeChecks(ProcFs(), CheckOptions(options));
  if (NeedsTls(options.dial)) {
    ExpiryCheck own = CheckOwnCertificate(options.dial, absl::Now());
    checks.push_back({.name = "certificate",
                      .ok = own.ok,
                      .optional = own.usable,
                      .found = std::move(own.found),
                      .fix = own.ok ? "" : kRenewOwnCertificate});
  }
  return checks;
}

std::vector<NodeCheck> NodeAgent::OnDoctor() {
  return Check(OptionsNow());
}

AgentHealth NodeAgent::Health() {
  AgentHealth health;
  health.cpu_ns = AgentCpuNs();
  if (auto status = procfs_.Status(::getpid()); status.ok())
    health.resident_bytes = status->memory.resident_bytes;
  health.sessions = sessions_->running();
  health.ring_bytes = sampling_.rings().used_bytes();
  health.ring_limit_bytes = sampling_.rings().cap_bytes();
  health.inject_reason = FindObstacle(procfs_, CheckOptions(OptionsNow())).reason;
  health.can_inject = health.inject_reason.empty();
  return health;
}

std::vector<SessionUpdate> NodeAgent::LatestUpdate() {
  return sessions_->LatestUpdate();
}

void NodeAgent::OnUpdate(const SessionUpdate& update) {
  sessions_->Remember(update);
  link_->SendUpdate(update);
}

absl::StatusOr<uint64_t> NodeAgent::OnWindow(Window window) {
  ToDaemonTime(link_->clock_ahead_ns(), window);
  auto sequence = spool_->Append(std::move(window));
  if (sequence.ok()) link_->WindowReady();
  return sequence;
}

}  // namespace perfd::agent
