// core/analysis/loop_parts.h - loops that a compiler made of one loop of the source: unrolled or vectorised body, peeled part,
// remainder.
//
// Shape    LoopParts: for each row of a report the others of its lines. Parts are innermost loops of one function with the same
//          parent and overlapping lines; the heaviest is the main one. Two loops written in one line are told apart no further.
// Units    indices into the rows.
// Threads  thread-safe (pure).
#ifndef CORE_ANALYSIS_LOOP_PARTS_H_
#define CORE_ANALYSIS_LOOP_PARTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/model/report.h"

namespace perfd {

struct LoopPart {
  size_t main = 0;   // the heaviest loop of these lines; the row itself where it is alone
  size_t loops = 1;  // how many there are
};

// `rows` heaviest first, as in a report.
std::vector<LoopPart> LoopParts(const std::vector<ReportRow>& rows);

// "main of 3 loops of its lines", "peeled, remainder or other part of #1"; empty: it is alone.
std::string LoopPartText(const std::vector<LoopPart>& parts, size_t row);

}  // namespace perfd

#endif  // CORE_ANALYSIS_LOOP_PARTS_H_
