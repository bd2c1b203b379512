// client/render/report_totals.h - the lower half of the report: totals, ranks, accounting, cost, notices.
#ifndef CLIENT_RENDER_REPORT_TOTALS_H_
#define CLIENT_RENDER_REPORT_TOTALS_H_

#include <string>
#include <vector>

#include "client/render/text_style.h"
#include "core/model/report.h"

namespace perfd::client {

// "return of memory".
const char* KernelCauseText(KernelCause cause);
// Loops, outside loops, libraries, kernel, unknown: the shown figures add up to 100.0 %.
std::string RenderTotals(const Report& report, const TextStyle& style);
std::string RenderRanks(const Report& report);
// Samples seen, kept, lost, dropped; what the profile cost; how samples were taken.
std::string RenderAccounting(const Report& report);
// One line each, errors first; empty when there are none.
std::string RenderNotices(const std::vector<Notice>& notices, const TextStyle& style);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_REPORT_TOTALS_H_
