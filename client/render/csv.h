// client/render/csv.h - every row of the report as CSV with a header line.
//
// Source   RFC 4180; but lines end in "\n", which every reader takes.
#ifndef CLIENT_RENDER_CSV_H_
#define CLIENT_RENDER_CSV_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/model/report.h"

namespace perfd::client {

// A text of others as one field: without control characters, in quotes when it holds a comma or a quote, with an apostrophe in
// front where a spreadsheet would take it for a formula.
std::string CsvField(absl::string_view unsafe);

std::string RenderCsv(const Report& report);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_CSV_H_
