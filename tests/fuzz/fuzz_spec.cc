// Whatever the text, the parser answers; what it accepts is valid and survives formatting.
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "core/spec/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = perfd::ParseProfileSpec(text);
  if (!spec.ok()) return 0;
  if (!perfd::ValidateProfileSpec(*spec).ok()) std::abort();
  const auto again = perfd::ParseProfileSpec(perfd::FormatProfileSpec(*spec));
  if (!again.ok() || !(*again == *spec)) std::abort();
  return 0;
}
