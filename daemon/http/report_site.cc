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

namespace perfd::daemon {
namespace {

constexpr size_t kMinIdDigits = 6;
constexpr size_t kMaxIdDigits = 18;
constexpr size_t kSmallBytes = 1024;  // not worth an encoding
constexpr size_t kCachedPages = 64;

// Exactly what a profile's id looks like: nothing else reaches a key or the store.
bool IsProfileId(absl::string_view text) {
  return absl::ConsumePrefix(&text, "p-") && text.size() >= kMinIdDigits &&
         text.size() <= kMaxIdDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c));
         });
}

// 503 when the budget has no room for it.
HttpResponse Encoded(HttpResponse response, std::string text, bool gzip, ByteBudget& budget) {
  if (gzip && text.size() > kSmallBytes) {
    absl::StatusOr<std::string> packed = Gzip(text);
    response.gzipped = packed.ok();
    if (packed.ok()) text = *std::move(packed);
  }
  response.body = budget.Hold(std::move(text));
  return response.body == nullptr ? RefusalResponse(503) : response;
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

ReportSite::ReportSite(HttpServer& server, ReportLinks links, SiteSource source, SiteLimits limits)
    : server_(server),
      links_(std::move(links)),
      source_(std::move(source)),
      packed_bytes_(limits.packed_pages),
      unpacked_bytes_(limits.unpacked_pages),
      metrics_bytes_(limits.metrics),
      list_bytes_(limits.lists),
      cache_(kCachedPages, limits.packed_pages / 2) {}

absl::Status ReportSite::Serve() {
  return server_.Serve(
      [this](const HttpRequest& request, const HttpRespond& respond) { Handle(request, respond); });
}

void ReportSite::Stop() {
  server_.Stop();
  for (Worker* worker : {&metrics_, &pages_, &lists_}) worker->Close(absl::ZeroDuration());
}

void ReportSite::Handle(const HttpRequest& request, const HttpRespond& respond) {
  const bool gzip = request.accepts_gzip;
  if (request.path == "/metrics") {
    return Post(metrics_, respond, [this, gzip] {
      HttpResponse response;
      response.content_type = "text/plain; version=0.0.4; charset=utf-8";
      return Encoded(std::move(response), source_.metrics(), gzip, metrics_bytes_);
    });
  }
  if (request.path == "/") {
    if (!links_.open()) return respond(Encoded(Html(), ClosedLandingPage(), gzip, list_bytes_));
    return Post(lists_, respond, [this, gzip] {
      return Encoded(Html(), OpenLandingPage(source_.newest(kListed)), gzip, list_bytes_);
    });
  }
  absl::string_view id = request.path;
  const bool known = absl::ConsumePrefix(&id, "/profiles/") && IsProfileId(id) &&
                     links_.Opens(id, QueryValue(request.query, "key"));
  if (!known) return respond(RefusalResponse(404));
  Post(pages_, respond, [this, gzip, id = std::string(id)] { return Page(id, gzip); });
}

void ReportSite::Post(Worker& worker, const HttpRespond& respond,
                      std::function<HttpResponse()> make) {
  const auto refuse = [respond] { respond(RefusalResponse(503)); };
  if (!worker.Post([respond, make = std::move(make)] { respond(make()); }, refuse)) refuse();
}

absl::StatusOr<PageCache::Page> ReportSite::PackedPage(const std::string& id) {
  ASSIGN_OR_RETURN(const ProfileStatus status, source_.status(id));
  if (PageCache::Page kept = cache_.Get(status); kept != nullptr) return kept;
  ASSIGN_OR_RETURN(const Report report, source_.report(id));
  ASSIGN_OR_RETURN(std::string packed, Gzip(RenderHtml(report)));
  PageCache::Page page = packed_bytes_.Hold(std::move(packed));
  if (page == nullptr) return absl::ResourceExhaustedError("too many pages are under way");
  if (IsFinal(status.state)) cache_.Insert(status, page);
  return page;
}

HttpResponse ReportSite::Page(const std::string& id, bool gzip) {
  const absl::StatusOr<PageCache::Page> packed = PackedPage(id);
  if (!packed.ok()) {
    if (absl::IsNotFound(packed.status()) || absl::IsInvalidArgument(packed.status()))
      return RefusalResponse(404);
    if (absl::IsResourceExhausted(packed.status())) return RefusalResponse(503);
    LogWarning("the page of {} cannot be made: {}", id, Text(packed.status()));
    return RefusalResponse(500);
  }
  if (!gzip) return Unpacked(**packed);
  HttpResponse response = Html();
  response.body = *packed;
  response.gzipped = true;
  return response;
}

HttpResponse ReportSite::Unpacked(const std::string& packed) {
  if (!unpacked_bytes_.Fits(UnpackedBytes(packed))) return RefusalResponse(503);
  absl::StatusOr<std::string> plain = Gunzip(packed);
  if (!plain.ok()) return RefusalResponse(500);
  return Encoded(Html(), *std::move(plain), false, unpacked_bytes_);
}

}  // namespace perfd::daemon
