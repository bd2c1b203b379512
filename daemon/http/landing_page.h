// daemon/http/landing_page.h - what a browser sees at "/": where things are.
//
// Shape    pure; profiles are named only where reports are open to all.
// Threads  thread-safe (pure).
// Source   OWASP "Cross Site Scripting Prevention", rule 1 (HTML entity encoding): names come from strangers.
#ifndef DAEMON_HTTP_LANDING_PAGE_H_
#define DAEMON_HTTP_LANDING_PAGE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/model/profile.h"

namespace perfd::daemon {

// Newest first.
std::string OpenLandingPage(const std::vector<ProfileStatus>& profiles);
std::string ClosedLandingPage();

// Letters with a meaning in HTML, and control characters, lose it.
std::string EscapeHtml(absl::string_view text);

}  // namespace perfd::daemon

#endif  // DAEMON_HTTP_LANDING_PAGE_H_
