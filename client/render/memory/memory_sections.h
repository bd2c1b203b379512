// client/render/memory/memory_sections.h - figures of accesses to memory as text: levels, shares, DTLB, latencies.
//
// Shape    pure.
#ifndef CLIENT_RENDER_MEMORY_MEMORY_SECTIONS_H_
#define CLIENT_RENDER_MEMORY_MEMORY_SECTIONS_H_

#include <string>

#include "client/render/text_style.h"
#include "core/model/memory/memory_report.h"

namespace perfd::client {

// One table after the other, each with an empty line before it.
std::string RenderFigures(const MemoryFigures& figures, const TextStyle& style);

// "30 to 37", "-".
std::string LatencyText(const LatencyRange& range);
// "41.2% [38.0, 44.5]", or why there is none.
std::string ShareText(const BeyondShare& share);
double RatioOf(uint64_t part, uint64_t all);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_MEMORY_MEMORY_SECTIONS_H_
