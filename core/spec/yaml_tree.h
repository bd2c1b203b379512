// core/spec/yaml_tree.h - YAML text to a small tree with positions; the one place that knows
// yaml-cpp.
//
// Shape    one document of maps, sequences, scalars and nulls. Scalars keep their text: `off` stays
// "off". Units    lines and columns count from 1. Errors   kInvalidArgument "line L, column C:
// ...": syntax, anchors, aliases, tags, several documents, duplicate
//          keys are left to the caller. Bounded: 64 KiB of text, 16 levels, 16384 nodes.
#ifndef CORE_SPEC_YAML_TREE_H_
#define CORE_SPEC_YAML_TREE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace perfd {

inline constexpr size_t kMaxYamlBytes = size_t{64} * 1024;

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  int line = 0;
  int column = 0;
  std::string text;     // scalars
  bool quoted = false;  // scalars in quotes or block style
  std::string key;      // in a map: its key, and where that stands
  int key_line = 0;
  int key_column = 0;
  std::vector<YamlNode> items;  // sequences and maps, in order
};

// For people: "a list", "text in quotes".
const char* KindName(const YamlNode& node);

// "line L, column C: "
std::string Position(int line, int column);

absl::StatusOr<YamlNode> ReadYaml(absl::string_view text);

}  // namespace perfd

#endif  // CORE_SPEC_YAML_TREE_H_
