// client/render/history/csv.h - the history of a program as CSV: a line for each loop in each profile.
//
// Threads  thread-safe (pure).
// Source   RFC 4180.
#ifndef CLIENT_RENDER_HISTORY_CSV_H_
#define CLIENT_RENDER_HISTORY_CSV_H_

#include <string>
#include <vector>

#include "core/analysis/jobs/history.h"
#include "core/model/history.h"

namespace perfd::client {

std::string RenderHistoryCsv(const ProgramHistory& history, const std::vector<LoopSeries>& series);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_HISTORY_CSV_H_
