// agent/app/leftovers/heal.h - perf-agent heal: takes out of ranks what an agent left there, without agent or daemon.
#ifndef AGENT_APP_LEFTOVERS_HEAL_H_
#define AGENT_APP_LEFTOVERS_HEAL_H_

#include <cstdint>
#include <string>
#include <vector>

namespace perfd::agent {

// When neither the flags nor the environment say where the agent may write.
inline constexpr char kNoFolder[] =
    "none of XDG_STATE_HOME, HOME and XDG_RUNTIME_DIR names a folder of yours: give --spool-dir, "
    "in a folder that nobody else can write";

struct HealFlags {
  std::vector<int32_t> pids;
  bool all = false;          // every rank that a journal of this node names
  bool after_agent = false;  // once the agent that started this process has ended (heal_after.h)
};

struct HealOptions {
  std::string journal_directory;  // empty: there is none
  std::string tracer_binary;
  std::string reader_binary;
  std::string disable_file;
};

// Prints a line per rank; the exit code: 0 when nothing of ours is left in any of them.
int Heal(const HealOptions& options, const HealFlags& flags);

}  // namespace perfd::agent

#endif  // AGENT_APP_LEFTOVERS_HEAL_H_
