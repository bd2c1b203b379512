#include "daemon/http/http_server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

constexpr int64_t kNoDescriptorsNs = 100 * kNsPerMs;
constexpr int kMaxAcceptsPerTurn = 16;
constexpr int kIdleMs = 60'000;  // nobody is there: a bound all the same

}  // namespace

// Responses on their way to the server's thread.
class HttpServer::Inbox {
 public:
  explicit Inbox(UniqueFd wake) : wake_(std::move(wake)) {}

  void Push(uint64_t connection, HttpResponse response) {
    MutexLock lock(&mutex_);
    if (closed_) return;
    responses_.emplace_back(connection, std::move(response));
    ::eventfd_write(wake_.get(), 1);
  }
  std::vector<std::pair<uint64_t, HttpResponse>> Drain() {
    eventfd_t count = 0;
    ::eventfd_read(wake_.get(), &count);
    MutexLock lock(&mutex_);
    return std::exchange(responses_, {});
  }
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
    responses_.clear();
    ::eventfd_write(wake_.get(), 1);
  }
  bool closed() {
    MutexLock lock(&mutex_);
    return closed_;
  }
  int fd() const { return wake_.get(); }

 private:
  UniqueFd wake_;
  Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // At most one for each connection.
  std::vector<std::pair<uint64_t, HttpResponse>> responses_ ABSL_GUARDED_BY(mutex_);
};

HttpServer::HttpServer(TcpListener listener) : listener_(std::move(listener)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const std::string& address) {
  ASSIGN_OR_RETURN(TcpListener listener,
                   ListenTcp(address, {"metrics and reports", "--metrics-listen"}));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(listener)));
}

absl::Status HttpServer::Serve(HttpHandler handler) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid())
    return absl::ResourceExhaustedError(absl::StrCat("eventfd: ", std::strerror(errno)));
  inbox_ = std::make_shared<Inbox>(std::move(wake));  // shared with responses under way
  handler_ = std::move(handler);
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void HttpServer::Stop() {
  if (!thread_.joinable()) return;
  inbox_->Close();
  thread_.join();
  connections_.clear();
}

void HttpServer::Run() {
  pthread_setname_np(pthread_self(), "perfd-http");
  std::vector<pollfd> fds;
  std::vector<uint64_t> ids;
  while (!inbox_->closed()) {
    const bool accepting = clock_.MonotonicNs() >= accept_after_ns_;
    fds = {{inbox_->fd(), POLLIN, 0}};
    for (const UniqueFd& listener : listener_.sockets)
      fds.push_back({listener.get(), static_cast<short>(accepting ? POLLIN : 0), 0});
    const size_t first = fds.size();
    ids.clear();
    for (const auto& [id, connection] : connections_) {
      fds.push_back({connection.fd(), connection.events(), 0});
      ids.push_back(id);
    }
    if (::poll(fds.data(), fds.size(), PollTimeoutMs()) < 0 && errno != EINTR) {
      LogError("http: poll: {}; metrics and reports are not served any more", strerror(errno));
      return;
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      if (fds[first + i].revents != 0) Ready(ids[i], connections_.at(ids[i]));
    }
    if (fds[0].revents != 0) DrainResponses();
    for (size_t i = 1; i < first; ++i) {
      if (fds[i].revents != 0) AcceptAll(fds[i].fd);
    }
    Sweep();
  }
}

int HttpServer::PollTimeoutMs() const {
  const int64_t now_ns = clock_.MonotonicNs();
  int64_t until_ns = now_ns + int64_t{kIdleMs} * kNsPerMs;
  if (accept_after_ns_ > now_ns) until_ns = std::min(until_ns, accept_after_ns_);
  for (const auto& [id, connection] : connections_)
    until_ns = std::min(until_ns, connection.deadline_ns());
  return static_cast<int>(std::max<int64_t>(0, until_ns - now_ns + kNsPerMs - 1) / kNsPerMs);
}

HttpServer::Connections::iterator HttpServer::FirstToYield(int64_t now_ns) {
  auto first = connections_.end();
  auto most = HttpConnection::Yields::kNever;
  for (auto it = connections_.begin(); it != connections_.end(); ++it) {
    const HttpConnection::Yields yields = it->second.yields(now_ns);
    if (yields >= most) continue;
    most = yields;
    first = it;
  }
  return first;
}

// When all places are taken, a newcomer gets that of a peer whose head is under way, of one that has its answer, or of one that
// takes long to read it: whoever means it sends its head at once and takes what comes. Without such a peer newcomers wait in the
// backlog.
void HttpServer::AcceptAll(int listener) {
  for (int i = 0; i < kMaxAcceptsPerTurn; ++i) {
    const int64_t now_ns = clock_.MonotonicNs();
    const bool full = connections_.size() >= kMaxConnections;
    const auto yielding = full ? FirstToYield(now_ns) : connections_.end();
    if (full && yielding == connections_.end()) {
      accept_after_ns_ = now_ns + kNoDescriptorsNs;
      return;
    }
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
        accept_after_ns_ = now_ns + kNoDescriptorsNs;
      return;
    }
    if (full) {
      refused_.fetch_add(1);
      connections_.erase(yielding);
    }
    connections_.try_emplace(next_id_++, std::move(socket), now_ns);
  }
}

void HttpServer::Ready(uint64_t id, HttpConnection& connection) {
  const std::optional<HttpRequest> request = connection.Ready(clock_.MonotonicNs());
  if (!request.has_value()) return;
  handler_(*request,
           [inbox = inbox_, id](HttpResponse response) { inbox->Push(id, std::move(response)); });
}

void HttpServer::DrainResponses() {
  for (const auto& [id, response] : inbox_->Drain()) {
    const auto it = connections_.find(id);
    if (it != connections_.end()) it->second.Answer(response, clock_.MonotonicNs());
  }
}

void HttpServer::Sweep() {
  const int64_t now_ns = clock_.MonotonicNs();
  for (auto it = connections_.begin(); it != connections_.end();) {
    it->second.Expire(now_ns);
    if (!it->second.done()) {
      ++it;
      continue;
    }
    if (it->second.status() >= 400) refused_.fetch_add(1);
    it = connections_.erase(it);
  }
}

}  // namespace perfd::daemon
