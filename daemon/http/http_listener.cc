#include "daemon/http/http_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

constexpr int kBacklog = 128;
constexpr uint32_t kMaxPort = 65535;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::Status NotListening(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot serve metrics and reports on ", address, ": ",
                                             why, "; choose another --metrics-listen"));
}

absl::StatusOr<Addresses> LookUp(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > kMaxPort) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics-listen '", address, "' is not HOST:PORT"));
  }
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(std::string(host).c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) return NotListening(address, ::gai_strerror(error));
  return Addresses(found);
}

// Invalid, with errno, when it cannot be.
UniqueFd ListenAt(const addrinfo& at) {
  UniqueFd socket(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return socket;
  const int on = 1;  // a restart must not wait for the connections of the last daemon
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket.get(), at.ai_addr, at.ai_addrlen) == 0 && ::listen(socket.get(), kBacklog) == 0)
    return socket;
  const int error = errno;
  socket.Reset();
  errno = error;
  return socket;
}

int PortOf(int socket) {
  sockaddr_storage at{};
  socklen_t size = sizeof(at);
  auto* generic = static_cast<sockaddr*>(static_cast<void*>(&at));
  if (::getsockname(socket, generic, &size) != 0) return 0;
  const void* raw = &at;
  return at.ss_family == AF_INET6 ? ntohs(static_cast<const sockaddr_in6*>(raw)->sin6_port)
                                  : ntohs(static_cast<const sockaddr_in*>(raw)->sin_port);
}

}  // namespace

absl::StatusOr<HttpListener> ListenHttp(const std::string& address) {
  ASSIGN_OR_RETURN(const Addresses found, LookUp(address));
  UniqueFd socket;
  int error = 0;
  // A name may have several addresses, and this host need not have all of their kinds.
  for (const addrinfo* at = found.get(); at != nullptr && !socket.valid(); at = at->ai_next) {
    socket = ListenAt(*at);
    if (!socket.valid()) error = errno;
  }
  if (!socket.valid()) return NotListening(address, std::strerror(error));
  const std::string host = address.substr(0, address.rfind(':'));
  const int port = PortOf(socket.get());
  return HttpListener{std::move(socket), absl::StrCat(host, ":", port)};
}

}  // namespace perfd::daemon
