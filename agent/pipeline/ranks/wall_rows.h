// agent/pipeline/ranks/wall_rows.h - the elapsed time of the ranks of a window, and of each of its rows.
//
// Shape    FillWallTimes gives the rows of a resolved window their wall_ns and the window its rank_times; nothing where the
//          window does not tell how long its ranks lived or how often they were sampled.
// Units    ns.
// Threads  thread-compatible: a WallTimes belongs to one session and is used by the resolver's thread alone.
#ifndef AGENT_PIPELINE_RANKS_WALL_ROWS_H_
#define AGENT_PIPELINE_RANKS_WALL_ROWS_H_

#include <cstdint>
#include <vector>

#include "agent/pipeline/raw_window.h"
#include "core/model/window.h"

namespace perfd::agent {

// `row_of`: the index into window.rows of each of the raw rows.
void FillWallTimes(const RawWindow& raw, const std::vector<uint32_t>& row_of, Window& window);

}  // namespace perfd::agent

#endif  // AGENT_PIPELINE_RANKS_WALL_ROWS_H_
