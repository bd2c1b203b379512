// agent/replay/replay_agent.h - a recording as a node of the cluster: connects to perfd, and answers profiles with what was recorded.
//
// Shape    Create reads the recording once; then it serves until it is destroyed. It is an agent in user mode: it serves its own user
//          alone, is asked only by its name, and touches no process.
// Errors   Create: as IndexRecording, and of the spool. A profile whose replay another life of this agent began is refused: what that
//          delivered would count twice.
// Threads  thread-safe but for Create and the destructor.
#ifndef AGENT_REPLAY_REPLAY_AGENT_H_
#define AGENT_REPLAY_REPLAY_AGENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/link/daemon_link.h"
#include "agent/link/spool.h"
#include "agent/pipeline/resolver.h"
#include "agent/replay/recorded_files.h"
#include "agent/replay/recording_index.h"
#include "agent/replay/replay_queue.h"
#include "agent/replay/replay_session.h"
#include "core/base/clock.h"

namespace perfd::agent {

struct ReplayOptions {
  DialOptions dial;
  std::string path;  // of the recording
  std::string node;
  std::string spool_directory;
  uint64_t spool_limit_bytes = uint64_t{256} << 20;
  OpenCodeSource open;  // a file of this machine
};

class ReplayAgent final : public LinkHandler, public SessionOutput {
 public:
  static absl::StatusOr<std::unique_ptr<ReplayAgent>> Create(ReplayOptions options);
  ~ReplayAgent() override;

  const RecordingIndex& index() const { return index_; }

  void OnStart(SessionRequest request) override;
  void OnStop(const std::string& profile_id) override;
  void OnMeasure(MeasureOrder /*order*/) override {}
  std::vector<NodeCheck> OnDoctor() override;
  AgentHealth Health() override;
  std::vector<SessionUpdate> LatestUpdate() override;
  void OnUpdate(const SessionUpdate& update) override;
  absl::StatusOr<uint64_t> OnWindow(Window window) override;

 private:
  ReplayAgent(ReplayOptions options, RecordingIndex index, std::unique_ptr<Spool> spool);
  ReplayTools Tools();
  absl::Status MayBegin(const SessionRequest& request) const;

  const ReplayOptions options_;
  const RecordingIndex index_;
  const SystemClock clock_;
  RecordedFiles files_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<DaemonLink> link_;
  std::unique_ptr<Resolver> resolver_;  // after the link: it delivers until it ends
  std::unique_ptr<ReplayQueue> queue_;  // last: its thread uses all the others
};

}  // namespace perfd::agent

#endif  // AGENT_REPLAY_REPLAY_AGENT_H_
