#include "core/spec/text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/utf8.h"

namespace perfd {
namespace {

constexpr size_t kMessageBytes = 64;

}  // namespace

bool IsValidUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool IsPrintable(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (length == 0 || IsControlCharacter(text.substr(0, length))) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string ForMessage(absl::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (out.size() + std::max<size_t>(length, 1) > kMessageBytes) return out + "...";
    if (length > 0 && !IsControlCharacter(text.substr(0, length))) {
      out.append(text.data(), length);
    } else {
      out.push_back('?');
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace perfd
