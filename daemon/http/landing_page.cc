#include "daemon/http/landing_page.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/version.h"

namespace perfd::daemon {
namespace {

constexpr char kTop[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
    "<meta name=\"color-scheme\" content=\"light dark\"><title>perfd</title><style>\n"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\n"
    "table{border-collapse:collapse}td,th{text-align:left;padding:.2rem 1rem .2rem 0}\n"
    "</style></head><body><main><h1>perfd</h1>\n"
    "<p>Why the loops of running MPI and OpenMP jobs are slow.</p>\n";

std::string Bottom() {
  return absl::StrCat("<p><a href=\"/metrics\">Metrics</a> for Prometheus. perfd ", kVersion,
                      ".</p>\n</main></body></html>\n");
}

std::string When(int64_t unix_ns) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixNanos(unix_ns), absl::UTCTimeZone());
}

std::string Line(const ProfileStatus& profile) {
  const TargetSpec& target = profile.spec.target;
  std::string what = target.command.value_or("");
  if (target.slurm_job.has_value()) what = absl::StrCat("job ", *target.slurm_job);
  const std::string id = EscapeHtml(profile.id);
  return absl::StrCat("<tr><td><a href=\"/profiles/", id, "\">", id, "</a></td><td>",
                      EscapeHtml(profile.name), "</td><td>", EscapeHtml(what), "</td><td>",
                      EscapeHtml(profile.requester.name), "</td><td>",
                      ProfileStateName(profile.state), "</td><td>", When(profile.submitted_unix_ns),
                      "</td></tr>\n");
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&' || c == '<' || c == '>' || c == '"' || c == '\'') {
      absl::StrAppend(&out, "&#", static_cast<int>(c), ";");
    } else {
      out.push_back((c >= 0 && c < ' ') || c == '\x7f' ? '?' : c);
    }
  }
  return out;
}

std::string OpenLandingPage(const std::vector<ProfileStatus>& profiles) {
  std::string page = kTop;
  if (profiles.empty()) {
    page += "<p>No profiles yet.</p>\n";
  } else {
    page +=
        "<table><tr><th>Profile</th><th>Name</th><th>Of</th><th>By</th><th>State</th>"
        "<th>Submitted</th></tr>\n";
    for (const ProfileStatus& profile : profiles) page += Line(profile);
    page += "</table>\n";
  }
  return page + Bottom();
}

std::string ClosedLandingPage() {
  return absl::StrCat(kTop,
                      "<p>A report opens by its own link: its owner gets it from "
                      "<code>report ID --url</code> of the command line.</p>\n",
                      Bottom());
}

}  // namespace perfd::daemon
