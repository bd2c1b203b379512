// daemon/http/report_site.h - what is where over HTTP: "/", "/metrics", "/profiles/ID".
//
// Shape    Serve begins to answer. Without its key a report that exists looks like one that does not: 404.
// Limits   one thread for metrics, one for pages, one for the list: whoever asks while kQueue wait gets 503, and so does
//          whoever asks while answers of the same kind hold more memory than SiteLimits allows. Pages of profiles that are
//          over are rendered once (page_cache.h).
// Threads  thread-safe; the source is called on perfd-web-* threads, never on the server's.
// Source   policy of pages: W3C CSP Level 3, "multiple policies": a page's own policy and this one both hold.
#ifndef DAEMON_HTTP_REPORT_SITE_H_
#define DAEMON_HTTP_REPORT_SITE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/profile.h"
#include "core/model/report.h"
#include "daemon/http/byte_budget.h"
#include "daemon/http/http_server.h"
#include "daemon/http/page_cache.h"
#include "daemon/http/report_links.h"
#include "daemon/ingest/worker.h"

namespace perfd::daemon {

struct SiteSource {
  std::function<std::string()> metrics;
  std::function<absl::StatusOr<ProfileStatus>(const std::string& id)> status;
  std::function<absl::StatusOr<Report>(const std::string& id)> report;
  std::function<std::vector<ProfileStatus>(int most)> newest;
};

// Bytes of answers in memory, until their peers have taken them.
struct SiteLimits {
  size_t packed_pages = size_t{128} << 20;  // half of it for pages that are kept
  size_t unpacked_pages = size_t{64} << 20;
  size_t metrics = size_t{32} << 20;
  size_t lists = size_t{4} << 20;
};

class ReportSite {
 public:
  static constexpr size_t kQueue = 16;
  static constexpr int kListed = 50;

  // The server must outlive the site.
  ReportSite(HttpServer& server, ReportLinks links, SiteSource source, SiteLimits limits = {});
  ~ReportSite() { Stop(); }

  absl::Status Serve();
  // Waits for the answers that are being made; those that wait are not made.
  void Stop();
  // As the server does; for tests also without one.
  void Handle(const HttpRequest& request, const HttpRespond& respond);

 private:
  void Post(Worker& worker, const HttpRespond& respond, std::function<HttpResponse()> make);
  HttpResponse Page(const std::string& id, bool gzip);
  HttpResponse Unpacked(const std::string& packed);
  absl::StatusOr<PageCache::Page> PackedPage(const std::string& id);

  HttpServer& server_;
  const ReportLinks links_;
  const SiteSource source_;
  ByteBudget packed_bytes_;
  ByteBudget unpacked_bytes_;
  ByteBudget metrics_bytes_;
  ByteBudget list_bytes_;
  PageCache cache_;
  Worker metrics_{"perfd-web-m", 1, kQueue};
  Worker pages_{"perfd-web-p", 1, kQueue};
  Worker lists_{"perfd-web-l", 1, kQueue};
};

}  // namespace perfd::daemon

#endif  // DAEMON_HTTP_REPORT_SITE_H_
