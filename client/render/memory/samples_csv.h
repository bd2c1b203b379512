// client/render/memory/samples_csv.h - each sampled access as one row of CSV.
//
// Units    time_ns of the recording's clock; latencies in cycles; addresses as 0x... text; 0 and empty: not recorded.
#ifndef CLIENT_RENDER_MEMORY_SAMPLES_CSV_H_
#define CLIENT_RENDER_MEMORY_SAMPLES_CSV_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/perfdata/records/sample.h"

namespace perfd::client {

std::string SamplesCsvHeader();
std::string SamplesCsvRow(absl::string_view event, const Sample& sample);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_MEMORY_SAMPLES_CSV_H_
