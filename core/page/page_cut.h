// core/page/page_cut.h - what of a report goes into its page: a browser has to hold it.
//
// Shape    CutForPage(report): the report without what lies beyond PageLimits, and how much that is. Heaviest first is kept;
//          cutting twice is cutting once. Ranks and threads of rows that no chart of the page shows go without being counted:
//          the figures of the row itself hold them. Places of memory count what they lack themselves.
// Units    entries.
// Threads  thread-safe (pure).
#ifndef CORE_PAGE_PAGE_CUT_H_
#define CORE_PAGE_PAGE_CUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/model/report.h"

namespace perfd {

struct PageLimits {
  size_t rows = 200;         // of each table of places
  size_t charted_rows = 12;  // loops with their ranks and threads, as web/ranks.js draws them
  size_t ranks = 4096;       // of the job
  size_t lines = 4096;       // rank lines, and thread lines, of one loop
  size_t stacks = 2000;      // call paths
  size_t notices = 100;
  size_t instructions = 2000;  // of one listing
  size_t references = 100;     // instructions of a place with accesses to memory
};

struct LeftOut {
  uint64_t rows = 0;
  uint64_t ranks = 0;
  uint64_t lines = 0;
  uint64_t stacks = 0;
  uint64_t notices = 0;
  uint64_t instructions = 0;

  bool operator==(const LeftOut&) const = default;
};

struct PageReport {
  Report report;
  std::vector<double> stack_seconds;  // of each call path that stays, as a part of the whole report
  LeftOut left_out;
};

PageReport CutForPage(Report report, const PageLimits& limits = {});

}  // namespace perfd

#endif  // CORE_PAGE_PAGE_CUT_H_
