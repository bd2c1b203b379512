// core/spec/field.h - one key of the table: read its value, check its range, write it again.
//
// Shape    errors are short texts; an empty text means fine.
// Threads  thread-safe (pure).
#ifndef CORE_SPEC_FIELD_H_
#define CORE_SPEC_FIELD_H_

#include <optional>
#include <string>
#include <vector>

#include "core/spec/spec_key.h"
#include "core/spec/yaml_tree.h"

namespace perfd {

// Errors with their positions, in the order found; the list is capped and says so.
class SpecErrors {
 public:
  void Add(int line, int column, const std::string& text);
  void Add(const std::string& text) { Record(text); }
  bool empty() const { return texts_.empty(); }
  // All texts, one per line; after the cap "and N more".
  std::string Join() const;

 private:
  void Record(std::string text);

  std::vector<std::string> texts_;
  size_t more_ = 0;
};

// Reads the value of `key` into `spec`. Syntax, type and unit only; ranges are CheckField's.
void ReadField(const SpecKey& key, const YamlNode& node, ProfileSpec* spec, SpecErrors* errors);

// The value as YAML text ("199Hz", "\"a name\"", "[LS, FP]"); nothing when it is unset and has no
// default.
std::optional<std::string> FormatField(const SpecKey& key, const ProfileSpec& spec);

// What is wrong with the value, without the name of the key; empty: nothing.
std::string CheckField(const SpecKey& key, const ProfileSpec& spec);

// "1..10000", "1ms..1s"; empty when the key has no range.
std::string FormatRange(const SpecKey& key);

}  // namespace perfd

#endif  // CORE_SPEC_FIELD_H_
