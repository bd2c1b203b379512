// The other end of an HTTP connection on this machine, byte by byte.
#ifndef TESTS_UNIT_DAEMON_HTTP_HTTP_PEER_H_
#define TESTS_UNIT_DAEMON_HTTP_HTTP_PEER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>

#include "absl/strings/string_view.h"
#include "core/base/unique_fd.h"

namespace perfd::daemon {

class HttpPeer {
 public:
  // `receive_bytes`: as many as the kernel may take for it, about; 0: as usual.
  explicit HttpPeer(const std::string& address, int receive_bytes = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes > 0)
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
    const size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
    ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&to));
    if (::connect(fd_.get(), generic, sizeof(to)) != 0) fd_.Reset();
  }

  bool Send(absl::string_view bytes) {
    return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  void EndSending() { ::shutdown(fd_.get(), SHUT_WR); }
  int fd() const { return fd_.get(); }
  bool connected() const { return fd_.valid(); }
  // Everything until the end; what came so far when nothing comes for `seconds`.
  std::string ReadAll(int seconds = 20) {
    std::string answer;
    pollfd ready{fd_.get(), POLLIN, 0};
    while (::poll(&ready, 1, seconds * 1000) == 1) {
      char buffer[65536];
      const ssize_t size = ::recv(fd_.get(), buffer, sizeof(buffer), 0);
      if (size <= 0) break;
      answer.append(buffer, static_cast<size_t>(size));
    }
    return answer;
  }

 private:
  UniqueFd fd_;
};

inline std::string Ask(const std::string& address, absl::string_view request) {
  HttpPeer peer(address);
  return peer.Send(request) ? peer.ReadAll() : "";
}

inline std::string Get(const std::string& address, const std::string& target,
                       const std::string& fields = "") {
  return Ask(address, "GET " + target + " HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n");
}

inline std::string BodyOf(const std::string& answer) {
  const size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

// "HTTP/1.1 404 ..." -> 404; 0: no answer.
inline int StatusOf(const std::string& answer) {
  return answer.size() > 12 && answer.rfind("HTTP/1.1 ", 0) == 0 ? std::stoi(answer.substr(9, 3))
                                                                 : 0;
}

}  // namespace perfd::daemon

#endif  // TESTS_UNIT_DAEMON_HTTP_HTTP_PEER_H_
