// client/render/live_view.h - a profile under way: a block that is redrawn, or a log line per change.
#ifndef CLIENT_RENDER_LIVE_VIEW_H_
#define CLIENT_RENDER_LIVE_VIEW_H_

#include <string>
#include <vector>

#include "client/render/text_style.h"
#include "core/model/report.h"

namespace perfd::client {

// The block, one string per line, none wider than the terminal.
std::vector<std::string> RenderLive(const ProfileStatus& status,
                                    const std::vector<ReportRow>& loops, const TextStyle& style);

// Escape sequences that move up over `lines_before` lines and draw `lines` in their place.
std::string Redraw(size_t lines_before, const std::vector<std::string>& lines);

// One line for logs: state, progress, samples, heaviest loop.
std::string RenderLogLine(const ProfileStatus& status, const std::vector<ReportRow>& loops);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_LIVE_VIEW_H_
