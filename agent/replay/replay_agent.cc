#include "agent/replay/replay_agent.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/link/link_codec.h"
#include "agent/pipeline/cost/own_cpu.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace perfd::agent {
namespace {

constexpr char kRecording[] = "this node is a recording: there is nothing to alter";
constexpr uint64_t kMostSpooled = 16;  // windows; a replay is faster than any disk
constexpr absl::Duration kDrainOnExit = absl::Seconds(3);

std::string EventsOf(const RecordingIndex& index) {
  std::string out;
  for (const ReplayedEvent& event : index.events)
    absl::StrAppend(&out, out.empty() ? "" : ", ", event.name, " (", event.samples, " samples)");
  return out;
}

}  // namespace

ReplayAgent::ReplayAgent(ReplayOptions options, RecordingIndex index, std::unique_ptr<Spool> spool)
    : options_(std::move(options)),
      index_(std::move(index)),
      files_(index_.facts.modules, options_.open, RecordedFiles::UsualCaches()),
      spool_(std::move(spool)) {}

absl::StatusOr<std::unique_ptr<ReplayAgent>> ReplayAgent::Create(ReplayOptions options) {
  struct stat info {};
  if (::stat(options.path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(
        "not a regular file: it is read once for each profile, so save it to one");
  ASSIGN_OR_RETURN(RecordingIndex index, IndexRecording(options.path));
  ASSIGN_OR_RETURN(auto spool, Spool::Create(options.spool_directory, options.spool_limit_bytes,
                                             SpoolUsers::kOne));
  std::unique_ptr<ReplayAgent> agent(
      new ReplayAgent(std::move(options), std::move(index), std::move(spool)));
  const RecordingIndex& read = agent->index_;
  const AgentIdentity identity{
      .node = agent->options_.node,
      .sampling_event = read.events[read.time_event].name,
      .kernel = absl::StrCat("recording of ",
                             read.facts.host.empty() ? "an unknown host" : read.facts.host),
      .boot_id = "",
      .cpus = static_cast<int32_t>(std::min<uint32_t>(read.facts.cpus_online, 1u << 20)),
      .uid = ::geteuid(),
      .user_mode = true,
      .replayed = true,
  };
  agent->link_ =
      std::make_unique<DaemonLink>(agent->options_.dial, identity, *agent->spool_, *agent);
  agent->resolver_ = std::make_unique<Resolver>(agent->files_.Opener(), agent->clock_);
  agent->queue_ = std::make_unique<ReplayQueue>(agent->Tools());
  agent->link_->Start();
  LogInfo("node {} replays {}: {} processes, {}", agent->options_.node, agent->options_.path,
          read.processes.size(), EventsOf(read));
  if (!read.damage.ok())
    LogWarning("{}: {}; what came before it is replayed", agent->options_.path, Text(read.damage));
  return agent;
}

ReplayAgent::~ReplayAgent() {
  if (link_ == nullptr) return;  // it did not come into being
  // No command may meet a part that is gone, and no window either.
  if (link_->connected()) link_->AwaitDrained(kDrainOnExit);
  link_->Stop();
  queue_.reset();
  spool_->RemoveEmpty();
}

ReplayTools ReplayAgent::Tools() {
  ReplayTools tools;
  tools.path = options_.path;
  tools.index = &index_;
  tools.files = &files_;
  tools.resolver = resolver_.get();
  tools.output = this;
  tools.clock = &clock_;
  tools.node = options_.node;
  tools.end_unix_ns = clock_.UnixNs();
  tools.has_room = [this] {
    return spool_->windows() < kMostSpooled && spool_->bytes() < options_.spool_limit_bytes / 4;
  };
  return tools;
}

void ReplayAgent::OnStart(SessionRequest request) {
  const absl::Status status = MayBegin(request);
  if (status.ok()) return queue_->Start(std::move(request));
  OnUpdate(FailedUpdate(request.profile_id, options_.node, status));
}

absl::Status ReplayAgent::MayBegin(const SessionRequest& request) const {
  if (request.requester.uid != ::geteuid())
    return absl::PermissionDeniedError(
        "this agent replays a recording of its own user's, for that user");
  if (queue_->Knows(request.profile_id)) return absl::OkStatus();
  const std::set<std::string> spooled = spool_->profiles();
  if (request.remaining_ns < request.spec.duration_ns || spooled.contains(request.profile_id))
    return absl::AbortedError(
        "the replay of this profile was interrupted: what had come by then counts; submit it again "
        "for all of it");
  return absl::OkStatus();
}

void ReplayAgent::OnStop(const std::string& profile_id) {
  queue_->Stop(profile_id);
}

std::vector<NodeCheck> ReplayAgent::OnDoctor() {
  NodeCheck check;
  check.name = "recording";
  check.ok = index_.damage.ok();
  check.optional = true;
  check.found =
      absl::StrCat(options_.path, ": ", index_.processes.size(), " processes, ", EventsOf(index_));
  if (!check.ok) check.fix = std::string(index_.damage.message());
  return {check};
}

AgentHealth ReplayAgent::Health() {
  AgentHealth health;
  health.cpu_ns = AgentCpuNs();
  health.sessions = queue_->running();
  health.inject_reason = kRecording;
  return health;
}

std::vector<SessionUpdate> ReplayAgent::LatestUpdate() {
  return queue_->LatestUpdate();
}

void ReplayAgent::OnUpdate(const SessionUpdate& update) {
  queue_->Remember(update);
  link_->SendUpdate(update);
}

absl::StatusOr<uint64_t> ReplayAgent::OnWindow(Window window) {
  auto sequence = spool_->Append(std::move(window));
  if (sequence.ok()) link_->WindowReady();
  return sequence;
}

}  // namespace perfd::agent
