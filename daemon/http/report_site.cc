#include "daemon/http/report_site.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/page/render_html.h"
#include "daemon/http/gzip.h"
#include "daemon/http/landing_page.h"

namespace perfd {
namespace {

constexpr size_t kMinIdDigits = 6;
constexpr size_t kMaxIdDigits = 18;
constexpr size_t kSmallBytes = 1024;  // not worth an encoding

// Exactly what a profile's id looks like: nothing else reaches a key or the store.
bool IsProfileId(absl::string_view text) {
  return absl::ConsumePrefix(&text, "p-") && text.size() >= kMinIdDigits &&
         text.size() <= kMaxIdDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c));
         });
}

HttpResponse Encoded(HttpResponse response, const std::string& text, bool gzip) {
  if (gzip && text.size() > kSmallBytes) {
    absl::StatusOr<std::string> packed = Gzip(text);
    if (packed.ok()) {
      response.body = std::make_shared<const std::string>(*std::move(packed));
      response.gzipped = true;
      return response;
    }
  }
  response.body = std::make_shared<const std::string>(text);
  return response;
}

HttpResponse Html() {
  HttpResponse response;
  response.content_type = "text/html; charset=utf-8";
  response.fields = {{"Content-Security-Policy",
                      "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                     {"Cross-Origin-Resource-Policy", "same-origin"}};
  return response;
}

}  // namespace

ReportSite::ReportSite(HttpServer& server, ReportLinks links, SiteSource source)
    : server_(server), links_(std::move(links)), source_(std::move(source)) {}

absl::Status ReportSite::Serve() {
  return server_.Serve(
      [this](const HttpRequest& request, const HttpRespond& respond) { Handle(request, respond); });
}

void ReportSite::Stop() {
  server_.Stop();
  metrics_.Close();
  pages_.Close();
}

void ReportSite::Handle(const HttpRequest& request, const HttpRespond& respond) {
  const bool gzip = request.accepts_gzip;
  if (request.path == "/metrics") {
    return Post(metrics_, respond, [this, gzip] {
      HttpResponse response;
      response.content_type = "text/plain; version=0.0.4; charset=utf-8";
      return Encoded(std::move(response), source_.metrics(), gzip);
    });
  }
  if (request.path == "/") return Post(pages_, respond, [this, gzip] { return Landing(gzip); });
  absl::string_view id = request.path;
  const bool known = absl::ConsumePrefix(&id, "/profiles/") && IsProfileId(id) &&
                     links_.Opens(id, QueryValue(request.query, "key"));
  if (!known) return respond(RefusalResponse(404));
  Post(pages_, respond, [this, gzip, id = std::string(id)] { return Page(id, gzip); });
}

void ReportSite::Post(Worker& worker, const HttpRespond& respond,
                      std::function<HttpResponse()> make) {
  if (!worker.Post([respond, make = std::move(make)] { respond(make()); }))
    respond(RefusalResponse(503));
}

HttpResponse ReportSite::Landing(bool gzip) {
  return Encoded(
      Html(), links_.open() ? OpenLandingPage(source_.newest(kListed)) : ClosedLandingPage(), gzip);
}

absl::StatusOr<PageCache::Page> ReportSite::PackedPage(const std::string& id) {
  ASSIGN_OR_RETURN(const ProfileStatus status, source_.status(id));
  if (PageCache::Page kept = cache_.Get(status); kept != nullptr) return kept;
  ASSIGN_OR_RETURN(const Report report, source_.report(id));
  ASSIGN_OR_RETURN(std::string packed, Gzip(RenderHtml(report)));
  auto page = std::make_shared<const std::string>(std::move(packed));  // shared with the cache
  if (IsFinal(status.state)) cache_.Put(status, page);
  return page;
}

HttpResponse ReportSite::Page(const std::string& id, bool gzip) {
  const absl::StatusOr<PageCache::Page> packed = PackedPage(id);
  if (!packed.ok()) {
    if (absl::IsNotFound(packed.status()) || absl::IsInvalidArgument(packed.status()))
      return RefusalResponse(404);
    LogWarning("the page of {} cannot be made: {}", id, Text(packed.status()));
    return RefusalResponse(500);
  }
  HttpResponse response = Html();
  response.body = *packed;
  response.gzipped = true;
  if (gzip) return response;
  absl::StatusOr<std::string> plain = Gunzip(**packed);
  if (!plain.ok()) return RefusalResponse(500);
  response.body = std::make_shared<const std::string>(*std::move(plain));
  response.gzipped = false;
  return response;
}

}  // namespace perfd
