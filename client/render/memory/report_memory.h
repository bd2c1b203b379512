// client/render/memory/report_memory.h - the accesses to memory of a profile as text: the job, its places, one of them.
//
// Shape    pure. Empty text where the profile has no accesses.
#ifndef CLIENT_RENDER_MEMORY_REPORT_MEMORY_H_
#define CLIENT_RENDER_MEMORY_REPORT_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/render/text_style.h"
#include "core/model/report.h"

namespace perfd::client {

inline constexpr size_t kMemoryPlaces = 8;  // of a report; `perfctl memory` shows more

// Places only, heaviest first: a section of the report.
std::string RenderMemoryPlaces(const Report& report, size_t top, const TextStyle& style);
// With the figures of the job before them.
std::string RenderReportMemory(const Report& report, size_t top, const TextStyle& style);
// Its figures, its instructions, its ranks.
std::string RenderMemoryPlace(const MemoryReport& memory, const MemoryPlace& place, size_t top,
                              const TextStyle& style);
// What a reader has to know: what a threshold hides, what was lost.
std::vector<std::string> MemoryRemarks(const MemoryReport& memory);

// By its number in the report (3 or #3) or the beginning of its id. kNotFound: it has no accesses, or there is none.
absl::StatusOr<const MemoryPlace*> FindMemoryPlace(const Report& report, const std::string& which);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_MEMORY_REPORT_MEMORY_H_
