#include "core/spec/policy.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/spec/field.h"
#include "core/spec/nearest.h"
#include "core/spec/preset.h"
#include "core/spec/text.h"
#include "core/spec/units.h"
#include "core/spec/yaml_tree.h"

namespace perfd {
namespace {

using Kind = YamlNode::Kind;

constexpr int32_t kMostEvery = 1'000'000'000;
constexpr int32_t kMostActive = 1000;
constexpr int32_t kMostPerDay = 1'000'000;
constexpr int64_t kMostWaitNs = 7ll * 24 * 3600 * 1'000'000'000;
constexpr int64_t kLeastWaitNs = 1'000'000'000;
constexpr size_t kMaxPresets = 64;
constexpr size_t kMaxRules = 256;
constexpr size_t kMaxNames = 1024;
constexpr size_t kMaxNameBytes = 255;

// The name is a column of tables and a value of options.
bool IsPresetName(absl::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
}

class PolicyReader {
 public:
  absl::StatusOr<Policy> Read(const YamlNode& root) {
    if (root.kind == Kind::kNull)
      return absl::InvalidArgumentError("the file is empty; a policy needs at least `every:`");
    ReadKeys(root, "",
             {{"apiVersion", [&](const YamlNode& n) { Constant(n, "perfd/v1"); }},
              {"kind", [&](const YamlNode& n) { Constant(n, "Policy"); }},
              {"every", [&](const YamlNode& n) { Integer(n, 0, kMostEvery, &policy_.every); }},
              {"seed", [&](const YamlNode& n) { Integer(n, 0, kMostEvery, &policy_.seed); }},
              {"quota", [&](const YamlNode& n) { ReadQuota(n); }},
              {"users", [&](const YamlNode& n) { ReadUsers(n); }},
              {"wait", [&](const YamlNode& n) { ReadWait(n); }},
              {"preset", [&](const YamlNode& n) { PresetName(n, &policy_.preset); }},
              {"presets", [&](const YamlNode& n) { ReadPresets(n); }},
              {"rules", [&](const YamlNode& n) { ReadRules(n); }}});
    CheckPresets();
    if (!errors_.empty()) return absl::InvalidArgumentError(errors_.Join());
    return std::move(policy_);
  }

 private:
  using Keys = std::vector<std::pair<absl::string_view, std::function<void(const YamlNode& node)>>>;
  struct UsedPreset {
    std::string name;
    int line = 0;
    int column = 0;
  };

  void Fail(const YamlNode& at, absl::string_view text) {
    errors_.Add(at.line, at.column,
                at.key.empty() ? std::string(text) : absl::StrCat(ForMessage(at.key), ": ", text));
  }

  void ReadKeys(const YamlNode& map, absl::string_view where, const Keys& keys) {
    if (map.kind != Kind::kMap) return Fail(map, "expected a map of keys");
    std::set<std::string> seen;
    for (const YamlNode& node : map.items) {
      const auto key = std::find_if(keys.begin(), keys.end(),
                                    [&](const auto& item) { return item.first == node.key; });
      if (key == keys.end()) {
        errors_.Add(node.key_line, node.key_column,
                    absl::StrCat("unknown key '", ForMessage(node.key), "'",
                                 where.empty() ? "" : " in ", where, Suggestion(node.key, keys)));
      } else if (!seen.insert(node.key).second) {
        errors_.Add(node.key_line, node.key_column, absl::StrCat("duplicate key '", node.key, "'"));
      } else if (node.kind == Kind::kNull) {
        errors_.Add(node.key_line, node.key_column,
                    absl::StrCat(node.key, " has no value; give one or remove the key"));
      } else {
        key->second(node);
      }
    }
  }

  static std::string Suggestion(const std::string& name, const Keys& keys) {
    std::vector<std::string> names;
    for (const auto& [key, read] : keys) names.emplace_back(key);
    const auto near = Nearest(name, names);
    return near.has_value() ? absl::StrCat("; did you mean '", *near, "'?") : "";
  }

  bool Scalar(const YamlNode& node) {
    if (node.kind == Kind::kScalar) return true;
    Fail(node, "expected a single value");
    return false;
  }

  void Constant(const YamlNode& node, absl::string_view value) {
    if (Scalar(node) && node.text != value)
      Fail(node, absl::StrCat("'", ForMessage(node.text),
                              "' is not supported; this version reads '", value, "'"));
  }

  void Integer(const YamlNode& node, int32_t low, int32_t high, int32_t* value) {
    if (!Scalar(node)) return;
    const auto parsed = ParseInteger(node.text);
    if (!parsed.ok()) return Fail(node, parsed.status().message());
    if (*parsed < low || *parsed > high)
      return Fail(node, absl::StrCat(*parsed, " is out of range ", low, "..", high));
    *value = static_cast<int32_t>(*parsed);
  }

  void Boolean(const YamlNode& node, bool* value) {
    if (!Scalar(node)) return;
    if (node.quoted || (node.text != "true" && node.text != "false"))
      return Fail(node, absl::StrCat("'", ForMessage(node.text), "' is not true or false"));
    *value = node.text == "true";
  }

  // A key that means something by being there: `never: true`.
  void Flag(const YamlNode& node, bool* value) {
    bool on = true;
    Boolean(node, &on);
    if (!on) Fail(node, "can only be true; leave it out instead");
    *value = true;
  }

  void PresetName(const YamlNode& node, std::string* value) {
    if (!Scalar(node)) return;
    if (!IsPresetName(node.text)) return Fail(node, "is not the name of a preset");
    *value = node.text;
    used_presets_.push_back({node.text, node.line, node.column});
  }

  void Names(const YamlNode& node, std::vector<std::string>* names) {
    if (node.kind != Kind::kSequence) return Fail(node, "expected a list such as [debug, short]");
    if (node.items.empty() || node.items.size() > kMaxNames)
      return Fail(node,
                  absl::StrCat("has ", node.items.size(), " names; 1..", kMaxNames, " can be"));
    for (const YamlNode& item : node.items) {
      if (item.kind != Kind::kScalar || item.text.empty() || item.text.size() > kMaxNameBytes ||
          !IsPrintable(item.text)) {
        Fail(item, "expected a name");
      } else {
        names->push_back(item.text);
      }
    }
  }

  void ReadQuota(const YamlNode& node) {
    ReadKeys(
        node, "quota",
        {{"active", [&](const YamlNode& n) { Integer(n, 0, kMostActive, &policy_.quota_active); }},
         {"per_day",
          [&](const YamlNode& n) { Integer(n, 0, kMostPerDay, &policy_.quota_per_day); }}});
  }

  void ReadUsers(const YamlNode& node) {
    ReadKeys(node, "users",
             {{"opt_in", [&](const YamlNode& n) { Boolean(n, &policy_.users_opt_in); }},
              {"opt_out", [&](const YamlNode& n) { Boolean(n, &policy_.users_opt_out); }}});
  }

  void ReadWait(const YamlNode& node) {
    if (!Scalar(node)) return;
    const auto parsed = ParseDuration(node.text);
    if (!parsed.ok()) return Fail(node, parsed.status().message());
    if (*parsed < kLeastWaitNs || *parsed > kMostWaitNs)
      return Fail(node, absl::StrCat("is out of range ", FormatDuration(kLeastWaitNs), "..",
                                     FormatDuration(kMostWaitNs)));
    policy_.wait_ns = *parsed;
  }

  void ReadPresets(const YamlNode& node) {
    if (node.kind != Kind::kMap) return Fail(node, "expected a map of presets");
    std::set<std::string> seen;
    for (const YamlNode& item : node.items) {
      if (!IsPresetName(item.key)) {
        errors_.Add(item.key_line, item.key_column,
                    "the name of a preset has letters, digits, '.', '_' and '-', at most 64");
      } else if (!seen.insert(item.key).second) {
        errors_.Add(item.key_line, item.key_column,
                    absl::StrCat("duplicate preset '", item.key, "'"));
      } else if (seen.size() > kMaxPresets) {
        return Fail(node, absl::StrCat("has more than ", kMaxPresets, " presets"));
      } else {
        policy_.presets[item.key] = ReadPreset(item, &errors_);
      }
    }
  }

  void ReadRules(const YamlNode& node) {
    if (node.kind != Kind::kSequence) return Fail(node, "expected a list of rules");
    if (node.items.size() > kMaxRules)
      return Fail(node, absl::StrCat("has more than ", kMaxRules, " rules"));
    for (const YamlNode& item : node.items) ReadRule(item);
  }

  void ReadRule(const YamlNode& node) {
    PolicyRule rule;
    bool never = false;
    bool always = false;
    std::optional<int32_t> every;
    ReadKeys(node, "a rule",
             {{"match", [&](const YamlNode& n) { ReadMatch(n, &rule.match); }},
              {"never", [&](const YamlNode& n) { Flag(n, &never); }},
              {"profile", [&](const YamlNode& n) { Flag(n, &always); }},
              {"every", [&](const YamlNode& n) { Integer(n, 0, kMostEvery, &every.emplace(0)); }},
              {"preset", [&](const YamlNode& n) { PresetName(n, &rule.preset); }}});
    const int actions = (never ? 1 : 0) + (always ? 1 : 0) + (every.has_value() ? 1 : 0);
    if (actions > 1) Fail(node, "a rule has only one of never, profile and every");
    if (actions == 0 && rule.preset.empty())
      Fail(node, "a rule needs one of never, profile, every and preset");
    if (never && !rule.preset.empty()) Fail(node, "a rule that says never needs no preset");
    if (never) rule.action = PolicyRule::Action::kNever;
    if (always) rule.action = PolicyRule::Action::kProfile;
    rule.every = every;
    policy_.rules.push_back(std::move(rule));
  }

  void ReadMatch(const YamlNode& node, PolicyMatch* match) {
    ReadKeys(node, "match",
             {{"partition", [&](const YamlNode& n) { Names(n, &match->partitions); }},
              {"user", [&](const YamlNode& n) { Names(n, &match->users); }},
              {"account", [&](const YamlNode& n) { Names(n, &match->accounts); }}});
  }

  void CheckPresets() {
    std::vector<std::string> names;
    for (const auto& [name, spec] : policy_.presets) names.push_back(name);
    for (const UsedPreset& used : used_presets_) {
      if (policy_.presets.contains(used.name)) continue;
      const auto near = Nearest(used.name, names);
      errors_.Add(
          used.line, used.column,
          absl::StrCat("there is no preset '", used.name, "'",
                       near.has_value() ? absl::StrCat("; did you mean '", *near, "'?") : ""));
    }
  }

  Policy policy_;
  std::vector<UsedPreset> used_presets_;
  SpecErrors errors_;
};

}  // namespace

absl::StatusOr<Policy> ParsePolicy(absl::string_view text) {
  ASSIGN_OR_RETURN(const YamlNode root, ReadYaml(text));
  return PolicyReader().Read(root);
}

}  // namespace perfd
