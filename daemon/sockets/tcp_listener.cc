#include "daemon/sockets/tcp_listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"

namespace perfd::daemon {
namespace {

constexpr int kBacklog = 1024;
constexpr uint32_t kMaxPort = 65535;
constexpr int kMostTries = 8;  // for a port that is free at all addresses

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::Status NotListening(const std::string& address, const TcpPurpose& purpose,
                          absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot serve ", purpose.what, " on ", address, ": ",
                                             why, "; choose another ", purpose.option));
}

absl::StatusOr<Addresses> LookUp(const std::string& address, const TcpPurpose& purpose) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > kMaxPort) {
    return absl::InvalidArgumentError(
        absl::StrCat(purpose.option, " '", address, "' is not HOST:PORT"));
  }
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(std::string(host).c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0) return NotListening(address, purpose, ::gai_strerror(error));
  return Addresses(found);
}

in_port_t& PortIn(sockaddr* address) {
  void* raw = address;
  return address->sa_family == AF_INET6 ? static_cast<sockaddr_in6*>(raw)->sin6_port
                                        : static_cast<sockaddr_in*>(raw)->sin_port;
}

// An address of a socket and how it is asked for: getsockname(2) or getpeername(2).
struct SocketAddress {
  using Ask = int (*)(int, sockaddr*, socklen_t*);

  bool Read(Ask ask, int socket) {
    socklen_t size = sizeof(storage);
    return ask(socket, generic(), &size) == 0;
  }
  sockaddr* generic() { return static_cast<sockaddr*>(static_cast<void*>(&storage)); }

  sockaddr_storage storage{};
};

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

// At all addresses that this host has, with the port of the first. An error number: half of a name would be somebody else's, or there
// is none.
int ListenAtAll(addrinfo& list, bool any_port, std::vector<UniqueFd>* sockets, in_port_t* port) {
  std::set<std::string> seen;  // a name may have one address twice
  int error = EADDRNOTAVAIL;
  for (addrinfo* at = &list; at != nullptr; at = at->ai_next) {
    if (any_port) PortIn(at->ai_addr) = *port;
    const auto* raw = static_cast<const char*>(static_cast<const void*>(at->ai_addr));
    if (!seen.emplace(raw, at->ai_addrlen).second) continue;
    UniqueFd socket = ListenAt(*at);
    SocketAddress own;
    if (socket.valid() && own.Read(::getsockname, socket.get())) {
      *port = PortIn(own.generic());
      sockets->push_back(std::move(socket));
      continue;
    }
    error = errno;
    if (error == EADDRINUSE) return error;
  }
  return sockets->empty() ? error : 0;
}

std::string InWords(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, address, text.data(), text.size()) == nullptr ? "" : text.data();
}

}  // namespace

absl::StatusOr<TcpListener> ListenTcp(const std::string& address, const TcpPurpose& purpose) {
  ASSIGN_OR_RETURN(const Addresses found, LookUp(address, purpose));
  const bool any_port = PortIn(found->ai_addr) == 0;
  const std::string host = address.substr(0, address.rfind(':'));
  TcpListener listener;
  int error = 0;
  for (int tries = any_port ? kMostTries : 1; tries > 0; --tries) {
    in_port_t port = 0;
    error = ListenAtAll(*found, any_port, &listener.sockets, &port);
    listener.address = absl::StrCat(host, ":", ntohs(port));
    if (error == 0) return listener;
    listener.sockets.clear();
    if (error != EADDRINUSE) break;
  }
  return NotListening(address, purpose, std::strerror(error));
}

std::string NetworkOfPeer(int connection) {
  SocketAddress peer;
  if (!peer.Read(::getpeername, connection)) return "";
  const void* raw = &peer.storage;
  if (peer.storage.ss_family == AF_INET)
    return InWords(AF_INET, &static_cast<const sockaddr_in*>(raw)->sin_addr);
  if (peer.storage.ss_family != AF_INET6) return "";
  in6_addr address = static_cast<const sockaddr_in6*>(raw)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return InWords(AF_INET, &address.s6_addr[12]);
  std::memset(&address.s6_addr[8], 0, 8);
  return absl::StrCat(InWords(AF_INET6, &address), "/64");
}

}  // namespace perfd::daemon
