// Who sees what over HTTP.
#include "daemon/http/report_site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/notification.h"
#include "core/page/render_html.h"
#include "daemon/http/gzip.h"
#include "tests/unit/client/sample_report.h"
#include "tests/unit/daemon/http/http_peer.h"

namespace perfd::daemon {
namespace {

using testing::HasSubstr;
using testing::Not;

class ReportSiteTest : public testing::Test {
 protected:
  void Begin(bool open) {
    server_ = *HttpServer::Listen("127.0.0.1:0");
    SiteSource source;
    source.metrics = [] { return std::string(2000, '#') + "\nup 1\n"; };
    source.status = [this](const std::string& id) -> absl::StatusOr<ProfileStatus> {
      ++asked_;
      if (id != report_.status.id) return absl::NotFoundError("no such profile");
      return report_.status;
    };
    source.report = [this](const std::string&) -> absl::StatusOr<Report> {
      ++rendered_;
      if (hold_ != nullptr) {
        if (!began_.HasBeenNotified()) began_.Notify();
        hold_->WaitForNotificationWithTimeout(absl::Seconds(20));
      }
      return report_;
    };
    source.newest = [this](int) { return std::vector<ProfileStatus>{report_.status}; };
    const ReportLinks links(std::string(32, 'k'), "", open);
    url_ = links.UrlOf(report_.status.id);
    site_ = std::make_unique<ReportSite>(*server_, links, std::move(source), limits_);
    ASSERT_TRUE(site_->Serve().ok());
  }
  void TearDown() override { site_.reset(); }

  std::string Fetch(const std::string& target, const std::string& fields = "") {
    return Get(server_->address(), target, fields);
  }

  // An answer whose body is not taken until it is dropped.
  HttpResponse Hold(const std::string& target, bool gzip) {
    HttpRequest request;
    request.accepts_gzip = gzip;
    request.path = target.substr(0, target.find('?'));
    if (request.path != target) request.query = target.substr(request.path.size() + 1);
    // Shared with an answer that would come too late.
    auto answered = std::make_shared<Notification>();
    auto got = std::make_shared<HttpResponse>();
    site_->Handle(request, [answered, got](HttpResponse response) {
      *got = std::move(response);
      answered->Notify();
    });
    if (!answered->WaitForNotificationWithTimeout(absl::Seconds(20)))
      return PlainResponse(500, "no answer");
    return std::move(*got);
  }

  SiteLimits limits_;
  Report report_ = SampleReport();
  std::atomic<int> asked_{0};
  std::atomic<int> rendered_{0};
  std::unique_ptr<Notification> hold_;  // until then the first page is under way
  Notification began_;
  std::string url_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<ReportSite> site_;
};

TEST_F(ReportSiteTest, TheLinkShowsThePage) {
  Begin(false);
  EXPECT_THAT(url_, HasSubstr("?key="));
  const std::string answer = Fetch(url_);
  EXPECT_EQ(StatusOf(answer), 200);
  EXPECT_EQ(BodyOf(answer), RenderHtml(report_));
  for (const char* field : {"Content-Type: text/html; charset=utf-8", "default-src 'none'",
                            "frame-ancestors 'none'", "Cache-Control: no-store", "no-referrer"})
    EXPECT_THAT(answer.substr(0, answer.find("\r\n\r\n")), HasSubstr(field));
  const std::string packed = Fetch(url_, "Accept-Encoding: gzip\r\n");
  EXPECT_THAT(packed.substr(0, packed.find("\r\n\r\n")), HasSubstr("Content-Encoding: gzip"));
  EXPECT_EQ(*Gunzip(BodyOf(packed)), RenderHtml(report_));
}

// A report that exists must not be told from one that does not: not by the answer, and nobody looks before the key is right.
TEST_F(ReportSiteTest, WithoutTheKeyThereIsNothing) {
  Begin(false);
  const std::string none = Fetch("/profiles/p-999999");
  EXPECT_EQ(StatusOf(none), 404);
  const std::string other = url_.substr(url_.find('?'));
  for (const std::string& target :
       {std::string("/profiles/p-000042"), std::string("/profiles/p-000042?key="),
        "/profiles/p-999999" + other, url_.substr(0, url_.size() - 1), url_ + "0", url_ + "&key=0",
        std::string("/profiles/"), std::string("/profiles"), std::string("/profiles/last"),
        "/profiles/p-000042/" + other, "/profiles/../profiles/p-000042" + other,
        "//profiles/p-000042" + other, std::string("/profiles/p-%30%30%30%30%34%32") + other,
        std::string("/report.key"), std::string("/../store/report.key"), std::string("/metrics/"),
        std::string("/favicon.ico")})
    EXPECT_EQ(Fetch(target), none) << target;
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(StatusOf(Fetch(url_)), 200);
}

TEST_F(ReportSiteTest, AProfileThatIsGoneIsNotFoundEvenWithItsKey) {
  Begin(false);
  report_.status.id = "p-000043";
  EXPECT_EQ(StatusOf(Fetch(url_)), 404);
}

TEST_F(ReportSiteTest, OpenReportsAreForEveryone) {
  Begin(true);
  EXPECT_EQ(url_, "/profiles/p-000042");
  EXPECT_EQ(BodyOf(Fetch(url_)), RenderHtml(report_));
  EXPECT_THAT(Fetch("/"), HasSubstr("href=\"/profiles/p-000042\""));
  EXPECT_EQ(StatusOf(Fetch("/profiles/p-000041")), 404);
}

TEST_F(ReportSiteTest, TheLandingPageOfClosedReportsNamesNone) {
  Begin(false);
  const std::string answer = Fetch("/");
  EXPECT_EQ(StatusOf(answer), 200);
  EXPECT_THAT(answer, HasSubstr("href=\"/metrics\""));
  EXPECT_THAT(answer, Not(HasSubstr("p-0000")));
}

TEST_F(ReportSiteTest, MetricsArePlainOrPacked) {
  Begin(false);
  const std::string answer = Fetch("/metrics");
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8"));
  EXPECT_THAT(answer, testing::EndsWith("\nup 1\n"));
  const std::string packed = Fetch("/metrics", "Accept-Encoding: gzip\r\n");
  EXPECT_LT(packed.size(), 600u);
  EXPECT_THAT(*Gunzip(BodyOf(packed)), testing::EndsWith("\nup 1\n"));
}

TEST_F(ReportSiteTest, AFinishedPageIsRenderedOnce) {
  Begin(false);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(StatusOf(Fetch(url_)), 200);
  EXPECT_EQ(rendered_, 1);
  report_.status.samples += 1;  // late windows
  EXPECT_EQ(StatusOf(Fetch(url_)), 200);
  EXPECT_EQ(rendered_, 2);
  report_.status.state = ProfileState::kSampling;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(StatusOf(Fetch(url_)), 200);
  EXPECT_EQ(rendered_, 4);
}

// However many ask for pages, metrics are served, and who cannot be is told so.
TEST_F(ReportSiteTest, ManyReadersDoNotHoldUpMetrics) {
  hold_ = std::make_unique<Notification>();
  Begin(false);
  std::vector<std::unique_ptr<HttpPeer>> readers;
  for (size_t i = 0; i < ReportSite::kQueue + 10; ++i) {
    readers.push_back(std::make_unique<HttpPeer>(server_->address()));
    readers.back()->Send(absl::StrCat("GET ", url_, " HTTP/1.0\r\n\r\n"));
    // The others wait in the queue behind it.
    if (i == 0) {
      ASSERT_TRUE(began_.WaitForNotificationWithTimeout(absl::Seconds(20)));
    }
  }
  EXPECT_EQ(StatusOf(Fetch("/metrics")), 200);
  const std::string busy = Fetch(url_);
  EXPECT_EQ(StatusOf(busy), 503);
  EXPECT_THAT(busy, HasSubstr("\r\nRetry-After: 2\r\n"));
  hold_->Notify();
  int served = 0, refused = 0;
  for (const auto& reader : readers) {
    const int status = StatusOf(reader->ReadAll());
    served += status == 200 ? 1 : 0;
    refused += status == 503 ? 1 : 0;
  }
  EXPECT_GE(served, static_cast<int>(ReportSite::kQueue));
  EXPECT_EQ(served + refused, static_cast<int>(readers.size()));
  EXPECT_EQ(rendered_, 1);  // the others found it rendered
}

// However many page readers there are.
TEST_F(ReportSiteTest, TheFirstPageWaitsForNoOther) {
  for (const bool open : {false, true}) {
    hold_ = std::make_unique<Notification>();
    Begin(open);
    std::vector<std::unique_ptr<HttpPeer>> readers;
    for (size_t i = 0; i < ReportSite::kQueue + 10; ++i) {
      readers.push_back(std::make_unique<HttpPeer>(server_->address()));
      readers.back()->Send(absl::StrCat("GET ", url_, " HTTP/1.0\r\n\r\n"));
    }
    EXPECT_EQ(StatusOf(Fetch("/")), 200);
    hold_->Notify();
    site_.reset();
  }
}

// Peers that take their pages slowly hold so many bytes, and not more.
TEST_F(ReportSiteTest, UnpackedPagesAreBounded) {
  limits_.unpacked_pages = RenderHtml(report_).size() * 5 / 2;
  Begin(false);
  const HttpResponse first = Hold(url_, false);
  auto second = std::make_unique<HttpResponse>(Hold(url_, false));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(*second->body, RenderHtml(report_));
  const HttpResponse third = Hold(url_, false);
  EXPECT_EQ(third.status, 503);
  EXPECT_THAT(HeadOf(third), HasSubstr("\r\nRetry-After: 2\r\n"));
  EXPECT_EQ(Hold(url_, true).status, 200) << "the packed page is there once for all";
  EXPECT_EQ(StatusOf(Fetch("/metrics")), 200);
  second.reset();
  EXPECT_EQ(StatusOf(Fetch(url_)), 200);
}

TEST_F(ReportSiteTest, PackedPagesOfRunningProfilesAndMetricsAreBounded) {
  limits_.packed_pages = limits_.metrics = 1;  // one at a time
  report_.status.state = ProfileState::kSampling;
  Begin(false);
  {
    const HttpResponse page = Hold(url_, true);
    EXPECT_EQ(page.status, 200);
    EXPECT_EQ(Hold(url_, true).status, 503);
    const HttpResponse metrics = Hold("/metrics", false);
    EXPECT_EQ(metrics.status, 200);
    EXPECT_EQ(Hold("/metrics", false).status, 503);
  }
  EXPECT_EQ(Hold(url_, true).status, 200);
  EXPECT_EQ(Hold("/metrics", true).status, 200);
}

// A page under way is waited for; those that wait are not made.
TEST_F(ReportSiteTest, TheEndMakesNoMorePages) {
  hold_ = std::make_unique<Notification>();
  Begin(false);
  report_.status.state = ProfileState::kSampling;  // each is made anew
  std::vector<std::unique_ptr<HttpPeer>> readers;
  for (size_t i = 0; i < 5; ++i) {
    readers.push_back(std::make_unique<HttpPeer>(server_->address()));
    readers.back()->Send(absl::StrCat("GET ", url_, " HTTP/1.0\r\n\r\n"));
  }
  ASSERT_TRUE(began_.WaitForNotificationWithTimeout(absl::Seconds(20)));
  EXPECT_EQ(StatusOf(Fetch("/")), 200);  // all have been read
  std::thread end([&] { site_->Stop(); });
  for (const auto& reader : readers) EXPECT_EQ(reader->ReadAll(), "");
  absl::SleepFor(absl::Milliseconds(500));  // first the peers are told, then the queue is closed
  hold_->Notify();
  end.join();
  EXPECT_LT(rendered_, 3) << "pages were made for peers that are gone";
}

}  // namespace
}  // namespace perfd::daemon
