#include "absl/strings/str_cat.h"
#include "core/spec/field.h"
#include "core/spec/spec.h"

namespace perfd {

std::string FormatProfileSpec(const ProfileSpec& spec) {
  std::string text;
  std::string header;  // of a section that has shown no member yet
  for (const SpecKey& key : SpecKeys()) {
    if (key.type == KeyType::kSection) {
      header = absl::StrCat(key.path, ":\n");
      continue;
    }
    const auto value = FormatField(key, spec);
    if (!value.has_value()) continue;
    const bool nested = !SectionName(key.path).empty();
    if (nested) absl::StrAppend(&text, header);
    header.clear();
    absl::StrAppend(&text, nested ? "  " : "", LeafName(key.path), ": ", *value, "\n");
  }
  return text;
}

}  // namespace perfd
