// Every path over HTTP, by every kind of link, compared with what docs/security.md says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/http/report_site.h"
#include "tests/unit/client/sample_report.h"
#include "tests/unit/daemon/http/http_peer.h"

namespace perfd::daemon {
namespace {

constexpr char kGone[] = "p-000099";

// A site with one report.
class Site {
 public:
  explicit Site(bool open) : links_(std::string(32, 'k'), "", open) {
    SiteSource source;
    source.metrics = [] { return "up 1\n"; };
    source.status = [this](const std::string& id) -> absl::StatusOr<ProfileStatus> {
      if (id != report_.status.id) return absl::NotFoundError("no such profile");
      return report_.status;
    };
    source.report = [this](const std::string&) { return report_; };
    source.newest = [this](int) { return std::vector<ProfileStatus>{report_.status}; };
    server_ = *HttpServer::Listen("127.0.0.1:0");
    site_ = std::make_unique<ReportSite>(*server_, links_, std::move(source));
    EXPECT_TRUE(site_->Serve().ok());
  }

  const std::string& id() const { return report_.status.id; }
  std::string Answer(const std::string& target) {
    const std::string answer = Get(server_->address(), target, "");
    if (StatusOf(answer) == 404) return "no";
    if (StatusOf(answer) != 200) return absl::StrCat(StatusOf(answer));
    if (!absl::StartsWith(target, "/?") && target != "/") return "yes";
    return absl::StrContains(BodyOf(answer), id()) ? "yes, with reports" : "yes, without reports";
  }

 private:
  Report report_ = SampleReport();
  const ReportLinks links_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<ReportSite> site_;
};

std::string KeyOf(char secret, const std::string& id) {
  const std::string url = ReportLinks(std::string(32, secret), "", false).UrlOf(id);
  return url.substr(url.find('?'));
}

TEST(ReportAccessTest, TheDocumentationHasWhatEachPathAnswersEachLink) {
  Site closed(false), open(true);
  struct Link {
    std::string name;
    Site* site;
    std::function<std::string(const std::string& id)> query;
  };
  const std::vector<Link> links = {
      {"its link", &closed, [](const std::string& id) { return KeyOf('k', id); }},
      {"another report's key", &closed, [](const std::string&) { return KeyOf('k', "p-000001"); }},
      {"a key of a removed `report.key`", &closed,
       [](const std::string& id) { return KeyOf('o', id); }},
      {"no key", &closed, [](const std::string&) { return std::string(); }},
      {"no key, `--open-reports`", &open, [](const std::string&) { return std::string(); }}};
  const std::string id = closed.id();
  const std::vector<std::pair<std::string, std::string>> paths = {
      {"/profiles/ID", absl::StrCat("/profiles/", id)},
      {"/profiles/ID of one that is gone", absl::StrCat("/profiles/", kGone)},
      {"/", "/"},
      {"/metrics", "/metrics"},
      {"/report.key", "/report.key"}};
  std::string table = "| path |";
  for (const Link& link : links) absl::StrAppend(&table, " ", link.name, " |");
  absl::StrAppend(&table, "\n|---|");
  for (size_t i = 0; i < links.size(); ++i) absl::StrAppend(&table, "---|");
  for (const auto& [name, path] : paths) {
    absl::StrAppend(&table, "\n| ", name, " |");
    for (const Link& link : links)
      absl::StrAppend(
          &table, " ",
          link.site->Answer(path + link.query(absl::StrContains(path, kGone) ? kGone : id)), " |");
  }
  std::stringstream text;
  text << std::ifstream(PERFD_DOCS "/security.md").rdbuf();
  EXPECT_THAT(text.str(), testing::HasSubstr(table + "\n")) << table;
}

}  // namespace
}  // namespace perfd::daemon
