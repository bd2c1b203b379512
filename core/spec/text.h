// core/spec/text.h - is this text fit to be stored, sent and printed?
//
// Source   RFC 3629 (UTF-8): no overlong forms, no surrogates, nothing above U+10FFFF.
#ifndef CORE_SPEC_TEXT_H_
#define CORE_SPEC_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace perfd {

bool IsValidUtf8(absl::string_view text);

// Valid UTF-8 without control characters (C0, DEL): safe on one line of a terminal.
bool IsPrintable(absl::string_view text);

// `text` for an error message: control bytes and invalid UTF-8 become '?', cut to 64 bytes.
std::string ForMessage(absl::string_view text);

}  // namespace perfd

#endif  // CORE_SPEC_TEXT_H_
