// The body of an HTTP answer from this machine; empty on any trouble.
#ifndef TESTS_UNIT_DAEMON_METRICS_HTTP_GET_H_
#define TESTS_UNIT_DAEMON_METRICS_HTTP_GET_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "core/base/unique_fd.h"

namespace perfd {

inline std::string HttpGet(const std::string& address, const std::string& path) {
  const size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), static_cast<const sockaddr*>(static_cast<const void*>(&to)),
                sizeof(to)) != 0)
    return "";
  const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
  if (::send(fd.get(), request.data(), request.size(), 0) != static_cast<ssize_t>(request.size()))
    return "";
  std::string answer;
  char buffer[4096];
  for (ssize_t size; (size = ::recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(size));
  }
  const size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

}  // namespace perfd

#endif  // TESTS_UNIT_DAEMON_METRICS_HTTP_GET_H_
