// core/spec/explain.h - the table of keys as text for people and as a JSON Schema for editors.
#ifndef CORE_SPEC_EXPLAIN_H_
#define CORE_SPEC_EXPLAIN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd {

// Every key with type, default, range and meaning.
std::string ExplainAllKeys();

// One key, or one section with its members. kNotFound with the nearest key.
absl::StatusOr<std::string> ExplainKey(absl::string_view path);

// Source   JSON Schema draft 2020-12.
std::string ProfileJsonSchema();

}  // namespace perfd

#endif  // CORE_SPEC_EXPLAIN_H_
