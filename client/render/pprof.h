// client/render/pprof.h - the report as a file for `go tool pprof` and its relatives.
//
// Shape    with call paths: one sample per path. Without: module, function and loop as three frames, per rank.
#ifndef CLIENT_RENDER_PPROF_H_
#define CLIENT_RENDER_PPROF_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/render/pprof_encoder.h"
#include "core/model/report.h"

namespace perfd::client {

PprofEncoder EncodePprof(const Report& report);

// Gzip bytes.
absl::StatusOr<std::string> RenderPprof(const Report& report);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_PPROF_H_
