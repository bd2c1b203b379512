#include "core/zstd/zstd.h"

#include <zstd.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace perfd {

bool DecompressBlock(std::span<const std::byte> from, std::span<std::byte> to) {
  return ZSTD_decompress(to.data(), to.size(), from.data(), from.size()) == to.size();
}

struct DecompressStream::Stream {
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> zstd{ZSTD_createDStream()};
};

DecompressStream::DecompressStream() : stream_(std::make_unique<Stream>()) {}
DecompressStream::~DecompressStream() = default;
DecompressStream::DecompressStream(DecompressStream&&) noexcept = default;
DecompressStream& DecompressStream::operator=(DecompressStream&&) noexcept = default;

absl::Status DecompressStream::Append(std::span<const std::byte> piece, size_t limit,
                                      std::vector<std::byte>* out) {
  if (stream_->zstd == nullptr) return absl::ResourceExhaustedError("no memory for zstd");
  ZSTD_inBuffer in{piece.data(), piece.size(), 0};
  const size_t before = out->size();
  bool full = false;  // of the last buffer: there may be more to come out
  while (in.pos < in.size || full) {
    const size_t room = std::min(limit - (out->size() - before), ZSTD_DStreamOutSize());
    if (room == 0)
      return absl::ResourceExhaustedError(absl::StrCat(
          "a piece of ", piece.size(), " bytes is more than ", limit, " decompressed"));
    const size_t start = out->size();
    out->resize(start + room);
    ZSTD_outBuffer to{out->data() + start, room, 0};
    const size_t result = ZSTD_decompressStream(stream_->zstd.get(), &to, &in);
    out->resize(start + to.pos);
    if (ZSTD_isError(result) != 0)
      return absl::DataLossError(absl::StrCat("zstd: ", ZSTD_getErrorName(result)));
    full = to.pos == room;
    if (to.pos == 0 && in.pos == in.size) break;
  }
  return absl::OkStatus();
}

}  // namespace perfd
