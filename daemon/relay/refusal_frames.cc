#include "daemon/relay/refusal_frames.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/relay/frame_reader.h"

namespace perfd::daemon {
namespace {

constexpr uint32_t kEnhanceYourCalm = 0xb;
constexpr size_t kMostWords = 1024;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    text += static_cast<char>(value >> shift & 0xff);
  return text;
}

std::string Frame(FrameType type, uint8_t flags, uint32_t stream, absl::string_view payload) {
  return absl::StrCat(BigEndian(static_cast<uint32_t>(payload.size()), 3),
                      std::string{static_cast<char>(type), static_cast<char>(flags)},
                      BigEndian(stream, 4), payload);
}

// A string that is not Huffman coded, behind its length as an integer of seven bits and more.
std::string HpackString(absl::string_view text) {
  constexpr size_t kMost = 0x7f;
  std::string length;
  size_t left = text.size();
  if (left < kMost) {
    length += static_cast<char>(left);
  } else {
    length += static_cast<char>(kMost);
    for (left -= kMost; left >= 0x80; left >>= 7) length += static_cast<char>(left % 0x80 | 0x80);
    length += static_cast<char>(left);
  }
  return absl::StrCat(length, text);
}

std::string Field(absl::string_view name, absl::string_view value) {
  constexpr absl::string_view kLiteralWithoutIndexing("\0", 1);
  return absl::StrCat(kLiteralWithoutIndexing, HpackString(name), HpackString(value));
}

// A grpc-message is percent-encoded: nothing is left that would need it.
std::string Plain(absl::string_view words) {
  std::string plain(words.substr(0, kMostWords));
  for (char& c : plain) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c)) || c == '%') c = '?';
  }
  return plain;
}

}  // namespace

std::string RefusalFrames(const absl::Status& why, uint32_t stream, bool answered,
                          uint32_t newest) {
  const std::string words = Plain(why.message());
  std::string frames;
  if (stream != 0) {
    std::string fields;
    if (!answered)
      fields = absl::StrCat(Field(":status", "200"), Field("content-type", "application/grpc"));
    absl::StrAppend(&fields, Field("grpc-status", absl::StrCat(static_cast<int>(why.code()))),
                    Field("grpc-message", words));
    frames = Frame(FrameType::kHeaders, kEndHeaders | kEndStream, stream, fields);
  }
  absl::StrAppend(&frames,
                  Frame(FrameType::kGoAway, 0, 0,
                        absl::StrCat(BigEndian(newest, 4), BigEndian(kEnhanceYourCalm, 4), words)));
  return frames;
}

}  // namespace perfd::daemon
