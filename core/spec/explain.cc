#include "core/spec/explain.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/spec/field.h"
#include "core/spec/nearest.h"
#include "core/spec/text.h"

namespace perfd {
namespace {

using Json = nlohmann::ordered_json;

const char* TypeName(KeyType type) {
  switch (type) {
    case KeyType::kSection:
      return "section";
    case KeyType::kConstant:
      return "constant";
    case KeyType::kText:
      return "text";
    case KeyType::kChoice:
      return "choice";
    case KeyType::kInteger:
      return "whole number";
    case KeyType::kDuration:
      return "duration";
    case KeyType::kSpan:
      return "duration or auto";
    case KeyType::kLongestSpan:
      return "duration";
    case KeyType::kPercent:
      return "percentage";
    case KeyType::kFrequency:
      return "frequency";
    case KeyType::kBoolean:
      return "true or false";
    case KeyType::kRanks:
      return "ranks";
    case KeyType::kPids:
      return "list of process ids";
    case KeyType::kVariants:
      return "list of variants";
  }
  return "";
}

std::string Default(const SpecKey& key) {
  return FormatField(key, ProfileSpec()).value_or("(none)");
}

std::string KeyLine(const SpecKey& key) {
  const bool nested = !SectionName(key.path).empty();
  const std::string name = absl::StrCat(nested ? "  " : "", LeafName(key.path), ":");
  if (key.type == KeyType::kSection)
    return absl::StrFormat("%-21s %s%s\n", name, key.meaning,
                           IsMeasured(key.path) ? "" : " (Not measured by this version.)");
  std::string text = absl::StrFormat("%-21s %s\n", name, key.meaning);
  std::string facts = absl::StrCat(TypeName(key.type), ", default ", Default(key));
  if (const std::string range = FormatRange(key); !range.empty())
    absl::StrAppend(&facts, ", range ", range);
  if (!key.choices.empty())
    absl::StrAppend(&facts, ", one of ", absl::StrJoin(absl::StrSplit(key.choices, '|'), " "));
  absl::StrAppend(&text, std::string(22, ' '), facts, "\n");
  return text;
}

std::vector<std::string> StringChoices(const SpecKey& key) {
  return absl::StrSplit(key.choices, '|', absl::SkipEmpty());
}

Json ListSchema(const SpecKey& key, Json items) {
  return {{"type", "array"},
          {"items", std::move(items)},
          {"minItems", static_cast<int64_t>(key.low)},
          {"maxItems", static_cast<int64_t>(key.high)},
          {"uniqueItems", true}};
}

// One name of the catalogue or several, joined by +.
std::string VariantPattern(const SpecKey& key) {
  std::vector<std::string> names = StringChoices(key);
  for (std::string& name : names) {
    if (name == "GROUP(k)") name = "GROUP\\(([0-9]|[1-5][0-9]|6[0-3])\\)";
    if (name == "PREFETCH(p)") name = "PREFETCH\\(([1-9][0-9]?|100)\\)";
  }
  const std::string one = absl::StrCat("(", absl::StrJoin(names, "|"), ")");
  return absl::StrCat("^", one, "(\\+", one, ")*$");
}

Json ValueSchema(const SpecKey& key) {
  switch (key.type) {
    case KeyType::kSection:
      return {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
    case KeyType::kConstant:
      return {{"const", std::string(key.choices)}};
    case KeyType::kText:
      return {{"type", "string"},
              {"minLength", static_cast<int64_t>(key.low)},
              {"maxLength", static_cast<int64_t>(key.high)}};
    case KeyType::kChoice: {
      Json values = StringChoices(key);
      // An editor that reads YAML 1.1 sees `off` as false.
      if (key.choices.find("off") != absl::string_view::npos) values.push_back(false);
      return {{"enum", values}};
    }
    case KeyType::kInteger:
      return {{"type", "integer"},
              {"minimum", static_cast<int64_t>(key.low)},
              {"maximum", static_cast<int64_t>(key.high)}};
    case KeyType::kSpan:
      return {{"type", "string"}, {"pattern", "^(auto|([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h|d))+)$"}};
    case KeyType::kDuration:
    case KeyType::kLongestSpan:
      return {{"type", "string"}, {"pattern", "^([0-9]+(\\.[0-9]+)?(ns|us|ms|s|m|h|d))+$"}};
    case KeyType::kPercent:
      return {{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)?%$"}};
    case KeyType::kFrequency:
      return {{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)? ?k?[Hh][Zz]$"}};
    case KeyType::kBoolean:
      return {{"type", "boolean"}};
    case KeyType::kRanks:
      return {{"type", Json::array({"string", "integer"})},
              {"minimum", 0},
              {"pattern", "^(all|[0-9]+(-[0-9]+)?( *, *[0-9]+(-[0-9]+)?)*)$"}};
    case KeyType::kPids:
      return ListSchema(key, {{"type", "integer"}, {"minimum", 1}});
    case KeyType::kVariants:
      return ListSchema(key, {{"type", "string"}, {"pattern", VariantPattern(key)}});
  }
  return Json::object();
}

Json KeySchema(const SpecKey& key) {
  Json schema = ValueSchema(key);
  schema["description"] = std::string(key.meaning);
  if (key.type == KeyType::kSection) return schema;
  if (const auto text = FormatField(key, ProfileSpec()); text.has_value())
    schema["x-default"] = *text;
  return schema;
}

std::vector<std::string> AllPaths() {
  std::vector<std::string> paths;
  for (const SpecKey& key : SpecKeys()) paths.emplace_back(key.path);
  return paths;
}

}  // namespace

std::string ExplainAllKeys() {
  std::string text;
  for (const SpecKey& key : SpecKeys()) absl::StrAppend(&text, KeyLine(key));
  return text;
}

absl::StatusOr<std::string> ExplainKey(absl::string_view path) {
  std::vector<std::string> same_leaf;
  std::string text;
  for (const SpecKey& key : SpecKeys()) {
    if (LeafName(key.path) == path) same_leaf.emplace_back(key.path);
    if (key.path != path && SectionName(key.path) != path) continue;
    absl::StrAppend(&text, KeyLine(key));
    if (key.path == path && key.type != KeyType::kSection)
      absl::StrAppend(&text, std::string(22, ' '), "example: ", LeafName(key.path), ": ",
                      key.example, "\n");
  }
  if (!text.empty()) return text;
  if (same_leaf.size() == 1) return ExplainKey(same_leaf.front());  // a full path: ends here
  std::string error = absl::StrCat("there is no key '", ForMessage(path), "'");
  const auto near = same_leaf.empty() ? Nearest(path, AllPaths()) : same_leaf.front();
  if (near.has_value()) absl::StrAppend(&error, "; did you mean '", *near, "'?");
  return absl::NotFoundError(error);
}

std::string ProfileJsonSchema() {
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "perfd profile"},
               {"type", "object"},
               {"additionalProperties", false},
               {"required", Json::array({"target"})},
               {"properties", Json::object()}};
  for (const SpecKey& key : SpecKeys()) {
    const std::string section(SectionName(key.path));
    Json& parent = section.empty() ? root : root["properties"][section];
    parent["properties"][std::string(LeafName(key.path))] = KeySchema(key);
  }
  root["properties"]["target"]["oneOf"] = Json::array({{{"required", Json::array({"slurm_job"})}},
                                                       {{"required", Json::array({"command"})}},
                                                       {{"required", Json::array({"pids"})}}});
  return root.dump(2) + "\n";
}

}  // namespace perfd
