#include "daemon/relay/frame_reader.h"

#include <algorithm>

namespace perfd::daemon {

FrameReader::Piece FrameReader::Next(absl::string_view bytes) {
  if (payload_left_ > 0) {
    const size_t size = std::min(payload_left_, bytes.size());
    payload_left_ -= size;
    return {.size = size};
  }
  const size_t size = std::min(kFrameHeadBytes - head_size_, bytes.size());
  std::copy_n(bytes.begin(), size, head_bytes_.begin() + static_cast<std::ptrdiff_t>(head_size_));
  head_size_ += size;
  if (head_size_ < kFrameHeadBytes) return {.size = size};
  head_size_ = 0;
  const auto& b = head_bytes_;
  head_.length = static_cast<uint32_t>(b[0] << 16 | b[1] << 8 | b[2]);
  head_.type = static_cast<FrameType>(b[3]);
  head_.flags = b[4];
  head_.stream = (static_cast<uint32_t>(b[5]) << 24 | static_cast<uint32_t>(b[6]) << 16 |
                  static_cast<uint32_t>(b[7]) << 8 | b[8]) &
                 0x7fffffff;
  payload_left_ = head_.length;
  return {.size = size, .ends_head = true};
}

}  // namespace perfd::daemon
