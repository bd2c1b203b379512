#include "core/dial/dial.h"

#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/credentials.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "core/certificate/certificate.h"
#include "core/certificate/expiry.h"
#include "core/dial/system_socket.h"
#include "core/files/own_file.h"

namespace perfd {
namespace {

constexpr int kMaxMessageBytes = 64 << 20;  // reports of large jobs
constexpr size_t kMaxPemBytes = 1 << 20;

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // gRPC has no bound on what a compressed answer may become.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  return arguments;
}

absl::Status ConnectError(int error, const std::string& path) {
  if (error == ENOENT || error == ECONNREFUSED)
    return absl::UnavailableError(
        absl::StrCat("perfd does not listen on ", path, " (", std::strerror(error),
                     "); start it with `perfd`, or name another address with --address or "
                     "PERFD_ADDRESS"));
  if (error == EACCES)
    return absl::PermissionDeniedError(absl::StrCat(
        "may not connect to ", path, ": check the permissions of the socket and its folder"));
  return absl::UnavailableError(absl::StrCat("connect to ", path, ": ", std::strerror(error)));
}

absl::Status CheckServer(int fd, const std::string& path, const DialOptions& options) {
  const std::optional<uint32_t>& daemon_uid = options.daemon_uid;
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("ask who serves ", path));
  if (peer.uid == 0 || peer.uid == ::geteuid() ||
      (daemon_uid.has_value() && peer.uid == *daemon_uid))
    return absl::OkStatus();
  if (options.trust_system_socket && path == kSystemSocket && PlacedByRoot(path, peer.uid))
    return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the server behind ", path, " runs as uid ", peer.uid,
                   ", which is neither root nor you; if that is your perfd, give "
                   "--daemon-uid ",
                   peer.uid));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> DialUnix(const std::string& path,
                                                        const DialOptions& options) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(absl::StrCat("the socket path '", path, "' must have 1 to ",
                                                   sizeof(address.sun_path) - 1, " bytes"));
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "socket");
  const absl::Time deadline = absl::Now() + options.timeout;
  // EAGAIN: the listen queue is full. A Unix socket connects at once or not at all.
  while (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno != EAGAIN && errno != EINTR) return ConnectError(errno, path);
    if (absl::Now() > deadline) return ConnectError(ETIMEDOUT, path);
    ::poll(nullptr, 0, 20);
  }
  RETURN_IF_ERROR(CheckServer(fd.get(), path, options));
  return grpc::CreateCustomInsecureChannelFromFd("perfd", fd.Release(), Arguments());
}

using ReadText = absl::StatusOr<std::string>(const std::string& path, size_t limit);

absl::StatusOr<std::string> ReadPem(const std::string& path, const char* flag,
                                    ReadText* read = &ReadBoundedFile) {
  if (path.empty())
    return absl::InvalidArgumentError(
        absl::StrCat("a TCP address needs mutual TLS: give ", flag,
                     " (deploy/make-certs.sh makes the certificates)"));
  auto text = read(path, kMaxPemBytes);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", text.status().message()));
}

// The daemon would end the handshake without a word.
absl::Status CheckOwn(const std::string& path, const std::string& pem) {
  const absl::StatusOr<std::vector<Certificate>> certificates = ReadCertificates(pem);
  absl::Status status = certificates.status();
  if (status.ok()) status = CheckValidNow(FirstToEnd(*certificates), absl::Now());
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("--tls-cert ", path, ": ", status.message(),
                   "; deploy/make-certs.sh makes another, with the site's CA"));
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> DialTls(const DialOptions& options) {
  grpc::SslCredentialsOptions tls;
  ASSIGN_OR_RETURN(tls.pem_root_certs, ReadPem(options.tls_ca, "--tls-ca"));
  ASSIGN_OR_RETURN(tls.pem_cert_chain, ReadPem(options.tls_cert, "--tls-cert"));
  RETURN_IF_ERROR(CheckOwn(options.tls_cert, tls.pem_cert_chain));
  ASSIGN_OR_RETURN(tls.pem_private_key, ReadPem(options.tls_key, "--tls-key", &ReadKeyFile));
  return grpc::CreateCustomChannel(options.address, grpc::SslCredentials(tls), Arguments());
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> Dial(const DialOptions& options) {
  absl::string_view address = options.address;
  if (absl::ConsumePrefix(&address, "unix:") || absl::StartsWith(address, "/"))
    return DialUnix(std::string(address), options);
  if (!absl::StrContains(address, ':'))
    return absl::InvalidArgumentError(
        absl::StrCat("'", options.address, "' is no address: use unix:PATH or HOST:PORT"));
  return DialTls(options);
}

absl::Status ToAbsl(const grpc::Status& status) {
  std::string text = status.error_message();
  if (absl::StrContains(text, "certificate verify failed"))
    absl::StrAppend(&text, ": perfd's certificate is of another CA, or not valid now by the clock ",
                    "of this host");
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), text);
}

}  // namespace perfd
