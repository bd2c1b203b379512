// daemon/http/http_connection.h - one connection: a head comes in, an answer goes out, the end.
//
// Shape    the server polls `events()` and calls Ready; when a request is complete Ready returns it, and Answer sends the
//          response. done(): close it.
// Limits   kReadNs for the whole head, kResponseNs from there until the answer is made and taken, kLingerNs for what the peer
//          still sends: a peer that is slow in any of these is cut off, however little it sends or takes at a time.
//          Where there is no place for others it is cut off earlier: yields().
// Threads  thread-bound: the server's.
// Source   RFC 9112 9.6: closing with unread input would reset the answer, so the rest is read for a moment.
#ifndef DAEMON_HTTP_HTTP_CONNECTION_H_
#define DAEMON_HTTP_HTTP_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/base/unique_fd.h"
#include "daemon/http/http_request.h"
#include "daemon/http/http_response.h"

namespace perfd::daemon {

class HttpConnection {
 public:
  static constexpr int64_t kReadNs = 5 * kNsPerSecond;
  static constexpr int64_t kResponseNs = 60 * kNsPerSecond;
  static constexpr int64_t kRefusalNs = 5 * kNsPerSecond;   // of a head that cannot be read
  static constexpr int64_t kPatienceNs = 2 * kNsPerSecond;  // with a slow reader, while others wait
  static constexpr int64_t kLingerNs = kNsPerSecond;
  static constexpr size_t kMaxLingerBytes = 64 << 10;

  HttpConnection(UniqueFd socket, int64_t now_ns)
      : socket_(std::move(socket)), deadline_ns_(now_ns + kReadNs) {}

  int fd() const { return socket_.get(); }
  short events() const;  // as poll(2) wants them
  // A request that is now complete; it wants one Answer. What cannot be read is refused here.
  std::optional<HttpRequest> Ready(int64_t now_ns);
  void Answer(const HttpResponse& response, int64_t now_ns);
  // At the deadline: a slow head is refused, everything else ends.
  void Expire(int64_t now_ns);

  // How readily it gives its place to a newcomer: its head is not there yet; it has everything; it reads slowly. Whoever waits
  // for an answer of ours never does.
  enum class Yields { kAsReader, kAsLingerer, kAsSlowTaker, kNever };
  Yields yields(int64_t now_ns) const;

  bool reading() const { return phase_ == Phase::kReading; }
  bool done() const { return phase_ == Phase::kDone; }
  int64_t deadline_ns() const { return deadline_ns_; }
  int status() const { return status_; }  // of the answer; 0: none yet

 private:
  enum class Phase { kReading, kAnswering, kWriting, kLingering, kDone };

  void Enter(Phase phase, int64_t deadline_ns) {
    phase_ = phase;
    deadline_ns_ = deadline_ns;
  }
  std::optional<HttpRequest> ReadHead(int64_t now_ns);
  void WriteSome(int64_t now_ns);
  void Linger();

  UniqueFd socket_;
  Phase phase_ = Phase::kReading;
  int64_t deadline_ns_;
  int64_t answered_ns_ = 0;  // when the answer was there
  std::string in_;
  bool head_only_ = false;
  int status_ = 0;
  std::string out_;                          // the head of the answer
  std::shared_ptr<const std::string> body_;  // shared with a cache
  size_t sent_ = 0;                          // of head and body
  size_t lingered_ = 0;
};

}  // namespace perfd::daemon

#endif  // DAEMON_HTTP_HTTP_CONNECTION_H_
