#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/spec/config_table.h"
#include "core/spec/field.h"
#include "core/spec/nearest.h"
#include "core/spec/spec_key.h"
#include "core/spec/text.h"
#include "core/spec/units.h"
#include "core/spec/yaml_tree.h"

namespace perfd {
namespace {

constexpr char kVersionText[] = "perfd/v1";

// Carries one value into its field.
class ValueReader {
 public:
  ValueReader(const ConfigKey& key, const YamlNode& node, SpecErrors* errors)
      : key_(key), node_(node), errors_(errors) {}

  void operator()(std::string* field) {
    std::string text;
    if (Text(node_, &text)) *field = std::move(text);
  }
  void operator()(int64_t* field) {
    if (node_.kind != YamlNode::Kind::kScalar || node_.quoted)
      return Fail(node_, absl::StrCat("expected a whole number, found ", KindName(node_)));
    const auto value = ParseInteger(node_.text);
    if (!value.ok()) return Fail(node_, value.status().message());
    if (*value < key_.low || *value > key_.high)
      return Fail(node_, absl::StrCat(*value, " is out of range ", key_.low, "..", key_.high));
    *field = *value;
  }
  void operator()(bool* field) {
    const std::string word =
        node_.kind == YamlNode::Kind::kScalar ? absl::AsciiStrToLower(node_.text) : "";
    const bool yes = word == "true" || word == "yes" || word == "on";
    const bool no = word == "false" || word == "no" || word == "off";
    if (node_.quoted || (!yes && !no)) return Fail(node_, "expected true or false");
    *field = yes;
  }
  void operator()(std::vector<std::string>* field) {
    if (node_.kind != YamlNode::Kind::kSequence)
      return Fail(node_, absl::StrCat("expected a list such as [a, b], found ", KindName(node_)));
    if (node_.items.size() > kMaxConfigTexts)
      return Fail(node_,
                  absl::StrCat("has ", node_.items.size(), " entries; at most ", kMaxConfigTexts));
    std::vector<std::string> texts(node_.items.size());
    bool good = true;
    for (size_t i = 0; i < texts.size(); ++i) good &= Text(node_.items[i], &texts[i]);
    if (good) *field = std::move(texts);
  }

 private:
  void Fail(const YamlNode& at, absl::string_view text) {
    errors_->Add(at.line, at.column, absl::StrCat(key_.path, ": ", text));
  }
  bool Text(const YamlNode& node, std::string* text) {
    if (node.kind != YamlNode::Kind::kScalar) {
      Fail(node, absl::StrCat("expected a single value, found ", KindName(node)));
      return false;
    }
    const std::string error = Fault(node.text);
    if (!error.empty()) Fail(node, error);
    *text = node.text;
    return error.empty();
  }
  std::string Fault(const std::string& text) const {
    if (text.size() > kMaxConfigText)
      return absl::StrCat("has ", text.size(), " bytes; at most ", kMaxConfigText);
    if (!IsPrintable(text)) return "has control characters or is not UTF-8";
    if (key_.form == ConfigForm::kPath && !text.empty() && text[0] != '/')
      return absl::StrCat("'", ForMessage(text), "' is not an absolute path");
    if (key_.form != ConfigForm::kChoice) return "";
    const std::vector<std::string> choices = absl::StrSplit(key_.choices, '|');
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return "";
    return NotAChoice(text, choices);
  }

  const ConfigKey& key_;
  const YamlNode& node_;
  SpecErrors* errors_;
};

class ConfigReader {
 public:
  explicit ConfigReader(const ConfigTable& table) : table_(table) {}

  absl::Status Read(const YamlNode& root) {
    if (root.kind == YamlNode::Kind::kNull) return absl::OkStatus();  // an empty file
    if (root.kind != YamlNode::Kind::kMap)
      return absl::InvalidArgumentError(
          absl::StrCat(Position(root.line, root.column), "expected keys such as `log:`"));
    ReadMap(root, "");
    return errors_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(errors_.Join());
  }

 private:
  const ConfigKey* Find(absl::string_view path) const {
    for (const ConfigKey& key : table_.keys) {
      if (key.path == path) return &key;
    }
    return nullptr;
  }
  bool IsSection(absl::string_view name) const {
    return std::any_of(table_.keys.begin(), table_.keys.end(),
                       [name](const ConfigKey& key) { return SectionName(key.path) == name; });
  }

  void ReadMap(const YamlNode& map, const std::string& section) {
    for (const YamlNode& node : map.items) {
      const std::string path = section.empty() ? node.key : absl::StrCat(section, ".", node.key);
      const auto [first, fresh] = seen_.emplace(path, node.key_line);
      if (!fresh) {
        errors_.Add(node.key_line, node.key_column,
                    absl::StrCat("duplicate key '", ForMessage(node.key), "'; first given in line ",
                                 first->second));
      } else {
        ReadKey(node, section, path);
      }
    }
  }

  void ReadKey(const YamlNode& node, const std::string& section, const std::string& path) {
    // "a.b" as one key would look like key b of section a.
    const bool plain = !node.key.empty() && node.key.find('.') == std::string::npos;
    const ConfigKey* key = plain ? Find(path) : nullptr;
    if (path == "apiVersion") return CheckConstant(node, kVersionText);
    if (path == "kind") return CheckConstant(node, table_.kind);
    if (section.empty() && plain && IsSection(path)) return ReadSection(node);
    if (key == nullptr)
      return errors_.Add(node.key_line, node.key_column,
                         absl::StrCat("unknown key '", ForMessage(node.key), "'",
                                      section.empty() ? "" : absl::StrCat(" in ", section),
                                      Suggestion(section, node.key)));
    if (node.kind == YamlNode::Kind::kNull)
      return errors_.Add(node.key_line, node.key_column,
                         absl::StrCat(path, " has no value; give one or remove the key"));
    std::visit(ValueReader(*key, node, &errors_), key->field);
  }

  void ReadSection(const YamlNode& node) {
    if (node.kind == YamlNode::Kind::kMap) return ReadMap(node, node.key);
    if (node.kind == YamlNode::Kind::kNull) return;  // all its keys are commented out
    errors_.Add(node.line, node.column, absl::StrCat(node.key, ": expected a map of keys"));
  }

  void CheckConstant(const YamlNode& node, absl::string_view wanted) {
    if (node.kind == YamlNode::Kind::kScalar && node.text == wanted) return;
    const std::string found = node.kind == YamlNode::Kind::kScalar
                                  ? absl::StrCat("'", ForMessage(node.text), "'")
                                  : KindName(node);
    errors_.Add(node.line, node.column,
                absl::StrCat(node.key, ": expected '", wanted, "', found ", found));
  }

  // A neighbour first, then the same name elsewhere.
  std::string Suggestion(absl::string_view section, absl::string_view name) const {
    std::vector<std::string> neighbours;
    std::string elsewhere;
    for (const ConfigKey& key : table_.keys) {
      const absl::string_view own = SectionName(key.path);
      if (own == section) neighbours.emplace_back(LeafName(key.path));
      if (section.empty() && !own.empty()) neighbours.emplace_back(own);
      if (LeafName(key.path) == name) elsewhere = std::string(key.path);
    }
    if (!elsewhere.empty()) return absl::StrCat("; did you mean '", elsewhere, "'?");
    const auto near = Nearest(name, neighbours);
    return near.has_value() ? absl::StrCat("; did you mean '", *near, "'?") : "";
  }

  const ConfigTable& table_;
  std::map<std::string, int> seen_;  // path -> line
  SpecErrors errors_;
};

}  // namespace

absl::Status ReadConfig(absl::string_view text, const ConfigTable& table) {
  ASSIGN_OR_RETURN(const YamlNode root, ReadYaml(text));
  return ConfigReader(table).Read(root);
}

}  // namespace perfd
