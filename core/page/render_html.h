// core/page/render_html.h - a report as one HTML page that needs nothing else: no network, no server, no other file.
//
// Shape    RenderHtml(report): the template of this build with the report as JSON inside it; the same report gives the same
//          bytes. All drawing is done by the page's own script (core/page/web).
// Errors   none: bytes that are not UTF-8 become U+FFFD, numbers that are none become null.
// Threads  thread-safe (pure).
// Source   data in script elements: HTML, "4.12.1.3 Restrictions for contents of script elements": no '<' is left in the
//          data, so nothing in it can end the element or open a comment.
#ifndef CORE_PAGE_RENDER_HTML_H_
#define CORE_PAGE_RENDER_HTML_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/model/report.h"

namespace perfd {

std::string RenderHtml(const Report& report);

// JSON of letters that HTML gives no meaning to: printable ASCII without '<', '>' and '&'.
std::string JsonForScript(const nlohmann::ordered_json& json);

}  // namespace perfd

#endif  // CORE_PAGE_RENDER_HTML_H_
