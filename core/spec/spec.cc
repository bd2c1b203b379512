#include "core/spec/spec.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/spec/field.h"
#include "core/spec/nearest.h"
#include "core/spec/preset.h"
#include "core/spec/spec_check.h"
#include "core/spec/spec_key.h"
#include "core/spec/text.h"
#include "core/spec/yaml_tree.h"

namespace perfd {
namespace {

// "; did you mean ...?" for a key that is not in `section`: a neighbour first, then the same name
// elsewhere.
std::string Suggestion(absl::string_view section, absl::string_view name) {
  std::vector<std::string> neighbours;
  std::string elsewhere;
  for (const SpecKey& key : SpecKeys()) {
    if (SectionName(key.path) == section) neighbours.emplace_back(LeafName(key.path));
    if (LeafName(key.path) == name) elsewhere = std::string(key.path);
  }
  if (!elsewhere.empty()) return absl::StrCat("; did you mean '", elsewhere, "'?");
  if (const auto near = Nearest(name, neighbours); near.has_value())
    return absl::StrCat("; did you mean '", *near, "'?");
  return "";
}

class SpecParser {
 public:
  explicit SpecParser(SpecErrors* errors) : errors_(*errors) {}

  absl::StatusOr<ProfileSpec> Parse(const YamlNode& root) {
    if (root.kind == YamlNode::Kind::kNull)
      return absl::InvalidArgumentError("the file is empty; a profile needs at least `target:`");
    if (root.kind != YamlNode::Kind::kMap)
      return absl::InvalidArgumentError(
          absl::StrCat(Position(root.line, root.column), "expected keys such as `target:`"));
    ReadMap(root, "");
    CheckSpan();
    CheckRanges();
    for (const RuleError& error : CheckRules(spec_)) AddAt(error.path, error.text);
    if (!errors_.empty()) return absl::InvalidArgumentError(errors_.Join());
    return std::move(spec_);
  }

  ProfileSpec ParsePreset(const YamlNode& node) {
    spec_ = FixedLengthSpec();
    if (node.kind == YamlNode::Kind::kNull) return std::move(spec_);
    if (node.kind != YamlNode::Kind::kMap) {
      errors_.Add(node.line, node.column, "expected keys of a profile such as `duration: 60s`");
      return std::move(spec_);
    }
    ReadMap(node, "");
    CheckSpan();
    if (spec_.until_known && !seen_.contains("max_duration"))
      spec_.duration_ns = kLongestUntilKnownNs;
    CheckRanges();
    for (const RuleError& error : CheckRules(spec_)) {
      if (error.path != "target") AddAt(error.path, error.text);
    }
    if (seen_.contains("target")) AddAt("target", "a preset has no target: it is the job");
    spec_.target = {};
    return std::move(spec_);
  }

 private:
  void ReadMap(const YamlNode& map, absl::string_view section) {
    for (const YamlNode& node : map.items) {
      const std::string path = section.empty() ? node.key : absl::StrCat(section, ".", node.key);
      // "a.b" as one key would look like key b of section a.
      const bool dotted = node.key.find('.') != std::string::npos;
      const SpecKey* key = dotted ? nullptr : FindSpecKey(path);
      if (key == nullptr) {
        errors_.Add(node.key_line, node.key_column,
                    absl::StrCat("unknown key '", ForMessage(node.key), "'",
                                 section.empty() ? "" : absl::StrCat(" in ", section),
                                 Suggestion(section, node.key)));
      } else if (const auto [first, fresh] = seen_.emplace(path, &node); !fresh) {
        errors_.Add(node.key_line, node.key_column,
                    absl::StrCat("duplicate key '", node.key, "'; first given in line ",
                                 first->second->key_line));
      } else {
        ReadKey(*key, node);
      }
    }
  }

  void ReadKey(const SpecKey& key, const YamlNode& node) {
    if (key.type != KeyType::kSection || node.kind == YamlNode::Kind::kNull)
      return ReadField(key, node, &spec_, &errors_);
    if (node.kind == YamlNode::Kind::kMap) return ReadMap(node, key.path);
    errors_.Add(node.line, node.column, absl::StrCat(key.path, ": expected a map of keys"));
  }

  // Ranges of what was given; a value that could not be read keeps its default and passes.
  void CheckRanges() {
    for (const auto& [path, node] : seen_) {
      const std::string error = CheckField(*FindSpecKey(path), spec_);
      if (!error.empty()) errors_.Add(node->line, node->column, absl::StrCat(path, " ", error));
    }
  }

  void CheckSpan() {
    if (seen_.contains("max_duration") && !spec_.until_known)
      AddAt("max_duration", "max_duration can only stand with duration: auto");
  }

  void AddAt(const std::string& path, const std::string& text) {
    const auto it = seen_.find(path);
    if (it == seen_.end()) return errors_.Add(text);
    errors_.Add(it->second->key_line, it->second->key_column, text);
  }

  ProfileSpec spec_;
  std::map<std::string, const YamlNode*> seen_;
  SpecErrors& errors_;
};

}  // namespace

absl::StatusOr<ProfileSpec> ParseProfileSpec(absl::string_view text) {
  ASSIGN_OR_RETURN(const YamlNode root, ReadYaml(text));
  SpecErrors errors;
  return SpecParser(&errors).Parse(root);
}

ProfileSpec ReadPreset(const YamlNode& node, SpecErrors* errors) {
  return SpecParser(errors).ParsePreset(node);
}

}  // namespace perfd
