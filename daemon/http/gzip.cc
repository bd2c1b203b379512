#include "daemon/http/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace perfd::daemon {
namespace {

constexpr int kGzipWindow = 15 + 16;
constexpr int kMemoryLevel = 8;             // zlib's own default
constexpr size_t kPiece = size_t{1} << 30;  // counts of zlib are 32 bits wide

// Feeds `bytes` to `turn` (deflate or inflate) in pieces and collects what comes out.
template <typename Turn>
int Pump(z_stream& stream, absl::string_view bytes, const Turn& turn, std::string& out) {
  std::array<unsigned char, 65536> buffer;
  int result = Z_OK;
  do {
    const size_t piece = std::min(bytes.size(), kPiece);
    // zlib does not write to its input, but its C type lacks the const.
    stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<unsigned>(piece);
    bytes.remove_prefix(piece);
    const int flush = bytes.empty() ? Z_FINISH : Z_NO_FLUSH;
    do {
      stream.next_out = buffer.data();
      stream.avail_out = static_cast<unsigned>(buffer.size());
      result = turn(&stream, flush);
      out.append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0 && (result == Z_OK || result == Z_BUF_ERROR));
  } while (!bytes.empty() && result == Z_OK);
  return result;
}

}  // namespace

absl::StatusOr<std::string> Gzip(absl::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    return absl::InternalError("zlib: no memory");
  std::string out;
  const int result = Pump(stream, bytes, deflate, out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return absl::InternalError("zlib: deflate failed");
  return out;
}

absl::StatusOr<std::string> Gunzip(absl::string_view bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return absl::InternalError("zlib: no memory");
  std::string out;
  const auto turn = [](z_stream* s, int) { return inflate(s, Z_NO_FLUSH); };
  const int result = Pump(stream, bytes, turn, out);
  inflateEnd(&stream);
  if (result != Z_STREAM_END) return absl::DataLossError("not the gzip of anything");
  return out;
}

uint32_t UnpackedBytes(absl::string_view packed) {
  uint32_t bytes = 0;
  if (packed.size() < sizeof(bytes)) return 0;
  for (size_t i = packed.size(); i > packed.size() - sizeof(bytes); --i)
    bytes = bytes << 8 | static_cast<unsigned char>(packed[i - 1]);
  return bytes;
}

}  // namespace perfd::daemon
