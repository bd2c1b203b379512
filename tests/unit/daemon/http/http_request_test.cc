#include "daemon/http/http_request.h"

#include <gtest/gtest.h>

#include <string>

namespace perfd::daemon {
namespace {

int StatusOf(const std::string& head) {
  HttpRequest request;
  return ParseHttpRequest(head, &request);
}

HttpRequest Parsed(const std::string& head) {
  HttpRequest request;
  EXPECT_EQ(ParseHttpRequest(head, &request), 200) << head;
  return request;
}

TEST(HttpRequestTest, PathAndQuery) {
  const HttpRequest request =
      Parsed("GET /profiles/p-000042?key=00ff&x=1 HTTP/1.1\r\nHost: perf.site\r\n\r\n");
  EXPECT_EQ(request.path, "/profiles/p-000042");
  EXPECT_EQ(request.query, "key=00ff&x=1");
  EXPECT_FALSE(request.head);
  EXPECT_FALSE(request.accepts_gzip);
  EXPECT_TRUE(Parsed("HEAD / HTTP/1.0\r\n\r\n").head);
  EXPECT_EQ(Parsed("GET http://h:1/metrics?a HTTP/1.1\r\nHost: h\r\n\r\n").path, "/metrics");
  EXPECT_EQ(Parsed("GET http://h HTTP/1.1\r\nHost: h\r\n\r\n").path, "/");
  // Nothing is decoded and nothing normalised: such paths are the names of nothing.
  EXPECT_EQ(Parsed("GET /a/../b%00%2f HTTP/1.0\r\n\r\n").path, "/a/../b%00%2f");
}

TEST(HttpRequestTest, OnlyGetAndHeadWithoutABody) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get"})
    EXPECT_EQ(StatusOf(std::string(method) + " / HTTP/1.0\r\n\r\n"), 405) << method;
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\nContent-Length: 0\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\nContent-Length: 1\r\n\r\n"), 413);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\ncontent-length: 00\r\n\r\n"), 413);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 413);
}

TEST(HttpRequestTest, MalformedHeads) {
  for (const char* head :
       {"", "\r\n\r\n", "GET /\r\n\r\n", "GET  / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0 \r\n\r\n",
        "GET / HTTP/1.0\r\n", "GET x HTTP/1.0\r\n\r\n", "GET * HTTP/1.0\r\n\r\n",
        "GET \x01/ HTTP/1.0\r\n\r\n", "GET /\xc3\xa9 HTTP/1.0\r\n\r\n", "G@T / HTTP/1.0\r\n\r\n",
        "GET / HTTPS/1.0\r\n\r\n", "GET / HTTP/1.0\r\nno colon\r\n\r\n",
        "GET / HTTP/1.0\r\n: no name\r\n\r\n", "GET / HTTP/1.0\r\nName : x\r\n\r\n",
        "GET / HTTP/1.0\r\nA: b\r\n folded\r\n\r\n", "GET / HTTP/1.0\r\nA: b\nB: c\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"})
    EXPECT_EQ(StatusOf(head), 400) << head;
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(StatusOf(std::string("GET / HTTP/1.0\r\nA: b\0c\r\n\r\n", 26)), 400);
}

TEST(HttpRequestTest, Limits) {
  const auto target = [](size_t bytes) {
    return StatusOf("GET /" + std::string(bytes - 1, 'a') + " HTTP/1.0\r\n\r\n");
  };
  EXPECT_EQ(target(kMaxTargetBytes), 200);
  EXPECT_EQ(target(kMaxTargetBytes + 1), 414);
  const auto fields = [](size_t count) {
    std::string head = "GET / HTTP/1.0\r\n";
    for (size_t i = 0; i < count; ++i) head += "A: b\r\n";
    return StatusOf(head + "\r\n");
  };
  EXPECT_EQ(fields(kMaxHeaders), 200);
  EXPECT_EQ(fields(kMaxHeaders + 1), 431);
  const std::string start = "GET / HTTP/1.0\r\nA: ";
  const auto head = [&](size_t bytes) {
    return StatusOf(start + std::string(bytes - start.size() - 4, 'a') + "\r\n\r\n");
  };
  EXPECT_EQ(head(kMaxHeadBytes), 200);
  EXPECT_EQ(head(kMaxHeadBytes + 1), 431);
}

TEST(HttpRequestTest, Gzip) {
  const auto accepts = [](const std::string& list) {
    return Parsed("GET / HTTP/1.0\r\nAccept-Encoding: " + list + "\r\n\r\n").accepts_gzip;
  };
  for (const char* list : {"gzip", "deflate, GZIP", "br;q=1.0, gzip;q=0.8", "gzip ; q=0.001"})
    EXPECT_TRUE(accepts(list)) << list;
  for (const char* list : {"", "identity", "gzip;q=0", "gzip;q=0.0", "xgzip", "*", "gzip;q=x"})
    EXPECT_FALSE(accepts(list)) << list;
}

TEST(HttpRequestTest, AValueThatIsThereTwiceIsNone) {
  EXPECT_EQ(QueryValue("key=00ff", "key"), "00ff");
  EXPECT_EQ(QueryValue("a=1&key=00ff&b", "key"), "00ff");
  EXPECT_EQ(QueryValue("", "key"), "");
  EXPECT_EQ(QueryValue("key", "key"), "");
  EXPECT_EQ(QueryValue("monkey=1", "key"), "");
  EXPECT_EQ(QueryValue("key=1&key=2", "key"), "");
}

}  // namespace
}  // namespace perfd::daemon
