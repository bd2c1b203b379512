// daemon/http/report_site.h - what is where over HTTP: "/", "/metrics", "/profiles/ID".
//
// Shape    Serve begins to answer. Without its key a report that exists looks like one that does not: 404.
// Limits   one thread for metrics, one for pages: whoever asks while kQueue wait gets 503. Pages of profiles that are over
//          are rendered once (page_cache.h).
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
#include "daemon/http/http_server.h"
#include "daemon/http/page_cache.h"
#include "daemon/http/report_links.h"
#include "daemon/ingest/worker.h"

namespace perfd {

struct SiteSource {
  std::function<std::string()> metrics;
  std::function<absl::StatusOr<ProfileStatus>(const std::string& id)> status;
  std::function<absl::StatusOr<Report>(const std::string& id)> report;
  std::function<std::vector<ProfileStatus>(int most)> newest;
};

class ReportSite {
 public:
  static constexpr size_t kQueue = 16;
  static constexpr int kListed = 50;

  // The server must outlive the site.
  ReportSite(HttpServer& server, ReportLinks links, SiteSource source);
  ~ReportSite() { Stop(); }

  absl::Status Serve();
  void Stop();
  // As the server does; for tests also without one.
  void Handle(const HttpRequest& request, const HttpRespond& respond);

 private:
  void Post(Worker& worker, const HttpRespond& respond, std::function<HttpResponse()> make);
  HttpResponse Page(const std::string& id, bool gzip);
  absl::StatusOr<PageCache::Page> PackedPage(const std::string& id);
  HttpResponse Landing(bool gzip);

  HttpServer& server_;
  const ReportLinks links_;
  const SiteSource source_;
  PageCache cache_{64, size_t{64} << 20};
  Worker metrics_{"perfd-web-m", 1, kQueue};
  Worker pages_{"perfd-web-p", 1, kQueue};
};

}  // namespace perfd

#endif  // DAEMON_HTTP_REPORT_SITE_H_
