#include "daemon/http/http_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "absl/strings/string_view.h"

namespace perfd::daemon {
namespace {

bool WouldBlock() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

short HttpConnection::events() const {
  switch (phase_) {
    case Phase::kReading:
    case Phase::kLingering:
      return POLLIN;
    case Phase::kWriting:
      return POLLOUT;
    case Phase::kAnswering:
    case Phase::kDone:
      return 0;
  }
  return 0;
}

std::optional<HttpRequest> HttpConnection::Ready(int64_t now_ns) {
  switch (phase_) {
    case Phase::kReading:
      return ReadHead(now_ns);
    case Phase::kAnswering:  // nothing was asked of poll: this is a peer that is gone
      Enter(Phase::kDone, now_ns);
      break;
    case Phase::kWriting:
      WriteSome(now_ns);
      break;
    case Phase::kLingering:
      Linger();
      break;
    case Phase::kDone:
      break;
  }
  return std::nullopt;
}

std::optional<HttpRequest> HttpConnection::ReadHead(int64_t now_ns) {
  std::array<char, kMaxHeadBytes> buffer;
  const ssize_t size = ::recv(fd(), buffer.data(), buffer.size(), 0);
  if (size < 0 && WouldBlock()) return std::nullopt;
  if (size <= 0) {
    Enter(Phase::kDone, now_ns);
    return std::nullopt;
  }
  in_.append(buffer.data(), static_cast<size_t>(size));
  const size_t end = in_.find("\r\n\r\n");
  if (end == std::string::npos && in_.size() <= kMaxHeadBytes) return std::nullopt;
  HttpRequest request;
  const absl::string_view head =
      absl::string_view(in_).substr(0, end == std::string::npos ? in_.size() : end + 4);
  const int status = ParseHttpRequest(head, &request);
  if (status != 200) {
    Answer(RefusalResponse(status), now_ns);
    return std::nullopt;
  }
  head_only_ = request.head;
  in_.clear();
  Enter(Phase::kAnswering, now_ns + kResponseNs);
  return request;
}

void HttpConnection::Answer(const HttpResponse& response, int64_t now_ns) {
  if (done() || status_ != 0) return;
  status_ = response.status;
  out_ = HeadOf(response);
  if (!head_only_) body_ = response.body;
  answered_ns_ = now_ns;
  Enter(Phase::kWriting, phase_ == Phase::kAnswering ? deadline_ns_ : now_ns + kRefusalNs);
  WriteSome(now_ns);
}

void HttpConnection::WriteSome(int64_t now_ns) {
  const size_t body_size = body_ == nullptr ? 0 : body_->size();
  while (sent_ < out_.size() + body_size) {
    const bool in_head = sent_ < out_.size();
    const absl::string_view rest = in_head ? absl::string_view(out_).substr(sent_)
                                           : absl::string_view(*body_).substr(sent_ - out_.size());
    const ssize_t size = ::send(fd(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (size < 0 && WouldBlock()) return;
    if (size < 0) return Enter(Phase::kDone, now_ns);
    sent_ += static_cast<size_t>(size);
  }
  body_.reset();
  ::shutdown(fd(), SHUT_WR);
  Enter(Phase::kLingering, now_ns + kLingerNs);
}

void HttpConnection::Linger() {
  std::array<char, kMaxHeadBytes> buffer;
  const ssize_t size = ::recv(fd(), buffer.data(), buffer.size(), 0);
  if (size < 0 && WouldBlock()) return;
  if (size > 0) lingered_ += static_cast<size_t>(size);
  if (size <= 0 || lingered_ > kMaxLingerBytes) phase_ = Phase::kDone;
}

HttpConnection::Yields HttpConnection::yields(int64_t now_ns) const {
  switch (phase_) {
    case Phase::kReading:
      return Yields::kAsReader;
    case Phase::kLingering:
    case Phase::kDone:
      return Yields::kAsLingerer;
    case Phase::kWriting:
      return now_ns - answered_ns_ >= kPatienceNs ? Yields::kAsSlowTaker : Yields::kNever;
    case Phase::kAnswering:
      break;
  }
  return Yields::kNever;
}

void HttpConnection::Expire(int64_t now_ns) {
  if (now_ns < deadline_ns_) return;
  if (reading()) return Answer(RefusalResponse(408), now_ns);
  Enter(Phase::kDone, now_ns);
}

}  // namespace perfd::daemon
