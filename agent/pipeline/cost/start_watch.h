// agent/pipeline/cost/start_watch.h - which ranks start threads so often that following them costs them too much.
//
// Shape    Begin; Record each start as it is read; at each look Probe -> ranks that cost more than the budget in all looks of the last
//          second, two at least, each once. A rank is its processes together, and known by its pid.
// Rules    a look counts where most of what was started is gone: a team that is started once, however large, is not meant.
//          A look within the budget ends the row.
// Why      a lower frequency spares such a rank nothing: the kernel works for each start as soon as the thread that starts has an event.
//          And little is sampled of threads that end before they can be given one.
// Units    ns of one monotonic clock; ratios of elapsed time.
// Threads  thread-compatible.
// Source   promise P4; docs/adr/0051-starts-of-threads.md.
#ifndef AGENT_PIPELINE_COST_START_WATCH_H_
#define AGENT_PIPELINE_COST_START_WATCH_H_

#include <cstdint>
#include <map>
#include <vector>

namespace perfd::agent {

struct StartLimit {
  double start_ns = 0;      // what one start costs
  double budget_ratio = 0;  // allowed cost / elapsed time
};

struct BusyStarter {
  int32_t pid = 0;  // of the rank
  double starts_per_second = 0;
  double cost_ratio = 0;
  double budget_ratio = 0;
};

class StartWatch {
 public:
  void Begin(int64_t now_ns) { last_ns_ = now_ns; }
  void Record(int32_t rank_pid) { ++starts_[rank_pid]; }
  // Of everything up to now_ns the starts were recorded. `threads`: that each rank has now.
  std::vector<BusyStarter> Probe(const StartLimit& limit,
                                 const std::map<int32_t, uint64_t>& threads, int64_t now_ns);

 private:
  struct Row {
    uint64_t starts = 0;
    int64_t ns = 0;
    int looks = 0;
  };
  int64_t last_ns_ = 0;
  std::map<int32_t, uint64_t> starts_;  // since the last look, by pid of the rank
  std::map<int32_t, Row> rows_;         // of looks above the budget up to the last one
};

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_COST_START_WATCH_H_
