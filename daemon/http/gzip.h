// daemon/http/gzip.h - the one encoding that answers over HTTP are sent in.
//
// Errors   kInternal: zlib has no memory; Gunzip: kDataLoss for bytes that Gzip did not make.
// Threads  thread-safe (pure).
// Source   RFC 1952, 2.3.1 (ISIZE: the last four bytes, little-endian); zlib.h deflateInit2 ("add 16 to windowBits to write a gzip header").
#ifndef DAEMON_HTTP_GZIP_H_
#define DAEMON_HTTP_GZIP_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd::daemon {

absl::StatusOr<std::string> Gzip(absl::string_view bytes);
absl::StatusOr<std::string> Gunzip(absl::string_view bytes);
// What Gunzip will give, modulo 4 GiB; of what Gzip made.
uint32_t UnpackedBytes(absl::string_view packed);

}  // namespace perfd::daemon

#endif  // DAEMON_HTTP_GZIP_H_
