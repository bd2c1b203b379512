// client/render/report_text.h - the report as a person reads it.
//
// Shape    loops (three lines each), totals that add up to 100 %, ranks, waiting, accounting, cost, notices.
// Threads  thread-safe (pure).
#ifndef CLIENT_RENDER_REPORT_TEXT_H_
#define CLIENT_RENDER_REPORT_TEXT_H_

#include <optional>
#include <string>

#include "client/render/text_style.h"
#include "core/model/report.h"

namespace perfd::client {

struct ReportTextOptions {
  TextStyle style;
  int top = 12;                 // loops shown; 0: all
  bool threads = false;         // each thread's part below each loop
  std::optional<int32_t> rank;  // only this rank's view
};

std::string RenderReport(const Report& report, const ReportTextOptions& options);

// Pieces shared with other views.
std::string ShortId(const ReportRow& row);          // first 8 digits of the id
std::string SourceText(const SourceRange& source);  // "lulesh.cc:812-840", "?" when unknown
std::string LocationText(const ReportRow& row);     // function, marked when it is an OpenMP body
std::string LoopFactsText(const ReportRow& row);    // "depth 2, innermost, OpenMP"
// What the order of loops is of: elapsed time where it is divided, else CPU time.
WallShare ShownShare(const ReportRow& row);
// Its own share, and of the functions that it calls: what decides the order of loops.
double WithCalled(const WallShare& share);
// "seen from 12 s to 40 s of 60 s"; empty for what was there nearly all the time, or when nobody knows.
std::string PhaseText(const Report& report, const ReportRow& row);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_REPORT_TEXT_H_
