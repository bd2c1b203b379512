#include "client/rpc/rpc_status.h"

#include "absl/strings/str_cat.h"
#include "core/base/version.h"
#include "core/dial/dial.h"
#include "core/wire/own_words.h"

namespace perfd::client {

absl::Status FromRpc(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  // Both enumerations are the canonical codes, 0..16.
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  std::string text(ToAbsl(status).message());
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      if (status.error_details() == wire::kOwnWords) break;
      text = absl::StrCat("perfd at ", address, " does not answer (", text,
                          "); is it running? See `systemctl status perfd`");
      break;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      text = absl::StrCat("perfd at ", address, " did not answer in time (", text, ")");
      break;
    case grpc::StatusCode::UNIMPLEMENTED:
      text = absl::StrCat("perfd at ", address, " does not know this request (", text,
                          "); it is probably of another version than this client ", kVersion);
      break;
    default:
      break;
  }
  return {code, text};
}

absl::Status CheckProtocol(const std::string& daemon_version, int daemon_protocol) {
  if (daemon_protocol == kProtocolVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "perfd ", daemon_version, " speaks protocol ", daemon_protocol, ", this client ", kVersion,
      " speaks protocol ", kProtocolVersion, "; install the same version of both"));
}

}  // namespace perfd::client
