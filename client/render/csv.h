// client/render/csv.h - every row of the report as CSV with a header line.
//
// Source   RFC 4180; but lines end in "\n", which every reader takes.
#ifndef CLIENT_RENDER_CSV_H_
#define CLIENT_RENDER_CSV_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/model/report.h"

namespace perfd::client {

// `text` as one field: in quotes when it holds a comma, a quote or a line break.
std::string CsvField(absl::string_view text);

std::string RenderCsv(const Report& report);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_CSV_H_
