// daemon/http/http_server.h - a small HTTP server for GET and HEAD: metrics, and pages of reports.
//
// Shape    Listen takes the port; Serve answers by `handler`, which gives its response to `respond` at once or later, from
//          any thread. A response that comes too late is dropped.
// Limits   kMaxConnections; where there are more, the oldest of those that yield most readily makes room (http_connection.h),
//          so that a newcomer waits kPatienceNs at the longest. Times and sizes: http_connection.h, http_request.h.
// Errors   Listen: daemon/sockets/tcp_listener.h.
// Threads  own thread perfd-http, which never waits for a peer; `handler` runs on it and must not wait either.
// Source   why not a library: docs/adr/0016-reports-over-http.md.
#ifndef DAEMON_HTTP_HTTP_SERVER_H_
#define DAEMON_HTTP_HTTP_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/base/unique_fd.h"
#include "daemon/http/http_connection.h"
#include "daemon/sockets/tcp_listener.h"

namespace perfd::daemon {

using HttpRespond = std::function<void(HttpResponse response)>;
using HttpHandler = std::function<void(const HttpRequest& request, const HttpRespond& respond)>;

class HttpServer {
 public:
  static constexpr size_t kMaxConnections = 128;

  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const std::string& address);
  ~HttpServer() { Stop(); }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  absl::Status Serve(HttpHandler handler);
  // Afterwards the handler is not called any more; connections are closed.
  void Stop();
  const std::string& address() const { return listener_.address; }
  // Answers with a status of 400 and above, and connections that made room for others.
  uint64_t refused() const { return refused_.load(); }

 private:
  class Inbox;
  using Connections = std::map<uint64_t, HttpConnection>;

  explicit HttpServer(TcpListener listener);
  void Run();
  int PollTimeoutMs() const;
  void AcceptAll(int listener);
  Connections::iterator FirstToYield(int64_t now_ns);
  void Ready(uint64_t id, HttpConnection& connection);
  void DrainResponses();
  void Sweep();

  TcpListener listener_;
  SystemClock clock_;
  HttpHandler handler_;
  std::shared_ptr<Inbox> inbox_;  // shared with responses under way, which may outlive the server
  Connections connections_;       // of the thread; by age
  uint64_t next_id_ = 1;
  int64_t accept_after_ns_ = 0;  // no descriptors left: not before
  std::atomic<uint64_t> refused_{0};
  std::thread thread_;
};

}  // namespace perfd::daemon

#endif  // DAEMON_HTTP_HTTP_SERVER_H_
