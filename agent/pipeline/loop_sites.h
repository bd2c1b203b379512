// agent/pipeline/loop_sites.h - where the loops of an order lie in one process.
//
// Shape    for each loop: the mapping that holds it, the load bias, the facts of its function; or why it is not there.
//          Its file is the one of its build: an order has its path only as it is shown (core/base/utf8.h).
// Units    ELF addresses; bias = run-time address - ELF address.
// Threads  LocateLoops on the resolver's thread (CodeIndex); blocks up to the timeout for modules that nobody has read yet.
// Source   ELF gABI, Program Loading: a segment's bytes keep their distance to each other.
#ifndef AGENT_PIPELINE_LOOP_SITES_H_
#define AGENT_PIPELINE_LOOP_SITES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agent/pipeline/code_index.h"
#include "agent/pipeline/experimenter.h"
#include "core/model/stack.h"

namespace perfd::agent {

// A rank as the session knows it at this moment.
struct ProcessImage {
  RankInfo rank;
  Admission admission;
  std::string executable;
  std::vector<CodeMapping> mappings;
  uint32_t image = 0;  // counts its programs (exec)
};

RankLoops LocateLoops(const ProcessImage& image, const std::vector<MeasureLoop>& loops,
                      CodeIndex& index, absl::Duration timeout);

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_LOOP_SITES_H_
