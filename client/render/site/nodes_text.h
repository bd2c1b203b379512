// client/render/site/nodes_text.h - nodes and doctor's findings as text.
#ifndef CLIENT_RENDER_SITE_NODES_TEXT_H_
#define CLIENT_RENDER_SITE_NODES_TEXT_H_

#include <string>
#include <vector>

#include "client/render/text_style.h"
#include "core/model/node.h"

namespace perfd::client {

// `now_unix_ns` tells how long ago a node was seen.
std::string RenderNodes(const std::vector<NodeStatus>& nodes, int64_t now_unix_ns);

// Every check with what was found; below a failed one the exact line that fixes it.
std::string RenderDoctor(const std::vector<DoctorReport>& reports, const TextStyle& style);

// The line that repairs a check of that name on a node: of our own, as what an agent sends may be anybody's.
std::string FixOf(absl::string_view check);

// True when no check failed but optional ones.
bool AllWell(const std::vector<DoctorReport>& reports);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_SITE_NODES_TEXT_H_
