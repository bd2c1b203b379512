// agent/app/node_agent.h - puts the parts of the agent together: link, spool, sessions, resolver.
//
// Shape    Create, then Tick() every few hundred milliseconds until the program ends.
// Threads  Tick and the destructor on the main thread.
#ifndef AGENT_APP_NODE_AGENT_H_
#define AGENT_APP_NODE_AGENT_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/app/leftovers/heal.h"
#include "agent/app/leftovers/leftovers.h"
#include "agent/app/node_sampling.h"
#include "agent/discover/rank_finder.h"
#include "agent/doctor/node_checks.h"
#include "agent/experiment/late_healer.h"
#include "agent/experiment/lease_table.h"
#include "agent/link/daemon_link.h"
#include "agent/link/spool.h"
#include "agent/pipeline/resolver.h"
#include "agent/pipeline/session_table.h"
#include "agent/procfs/procfs.h"
#include "core/base/clock.h"

namespace perfd::agent {

struct AgentOptions {
  DialOptions dial;
  std::string node;             // name of this node
  std::string spool_directory;  // empty: there is no folder of ours
  uint64_t spool_limit_bytes = uint64_t{256} << 20;
  std::string reader_binary;      // empty: beside this executable
  std::string tracer_binary;      // empty: beside this executable
  std::string journal_directory;  // of what was put into ranks; empty: beside the spool
  std::string disable_file =
      "/etc/perfd/no-injection";  // while it exists, no loop of this node is altered
  bool inject = true;
  bool allow_recovery = false;  // requests may ask for recovery mode (outside P1)
  bool user_mode = false;       // serve only our own user
};

class NodeAgent final : public LinkHandler, public SessionOutput {
 public:
  static absl::StatusOr<std::unique_ptr<NodeAgent>> Create(AgentOptions options);
  // What this node has and lacks, without an agent.
  static std::vector<NodeCheck> Check(const AgentOptions& options);
  // What it needs to take out of ranks what an agent with these options left there.
  static HealOptions HealingOf(const AgentOptions& options);
  ~NodeAgent() override;

  void Tick();
  // What may change while the agent runs: whether loops are altered (also of profiles under way),
  // how large the spool may become, and the TLS files of the next connection. The rest of `options`
  // is passed over.
  void Apply(const AgentOptions& options);
  // Suspends sessions and waits a moment for their windows to reach the daemon; what does not stays
  // in the spool. `for_good`: no agent comes after this one, and the ranks are gone: sessions first
  // get the time to say that. False: a session does not answer, and runs on in what is this agent's:
  // the process has to end without destroying it.
  bool Shutdown(bool for_good);
  bool connected() const { return link_->connected(); }
  int sessions() const { return sessions_->running(); }

  // For the link and the sessions.
  void OnStart(SessionRequest request) override;
  void OnStop(const std::string& profile_id) override;
  void OnMeasure(MeasureOrder order) override { sessions_->Measure(std::move(order)); }
  void OnClock(const ClockReading& reading) override { leases_.SetClock(reading); }
  void OnLease(const std::string& profile_id, double charge) override {
    leases_.SetCharge(profile_id, charge);
  }
  std::vector<NodeCheck> OnDoctor() override;
  AgentHealth Health() override;
  std::vector<SessionUpdate> LatestUpdate() override;
  void OnUpdate(const SessionUpdate& update) override;
  absl::StatusOr<uint64_t> OnWindow(Window window) override;

 private:
  NodeAgent(AgentOptions options, std::unique_ptr<Spool> spool);
  static NodeCheckOptions CheckOptions(const AgentOptions& options);
  bool AlreadyMeasured(SessionRequest& request);
  SessionTools Tools();
  absl::Status OpenJournals();
  AgentOptions OptionsNow() const;

  const AgentOptions options_;  // as they were at the start
  std::atomic<bool> inject_;    // as it is now
  SystemClock clock_;
  ProcFs procfs_;
  RankFinder finder_;
  LeaseTable leases_;
  NodeSampling sampling_;
  std::unique_ptr<Spool> spool_;
  std::unique_ptr<const HeldJournals> journals_;  // null: no folder of ours; nothing is altered
  std::unique_ptr<LateHealer> late_;
  std::unique_ptr<Resolver> resolver_;
  std::unique_ptr<DaemonLink> link_;
  std::unique_ptr<SessionTable> sessions_;  // last: its threads use all the others
};

}  // namespace perfd::agent

#endif  // AGENT_APP_NODE_AGENT_H_
