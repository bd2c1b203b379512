#include "core/spec/config_table.h"

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/spec/spec_key.h"

namespace perfd {
namespace {

// Double quotes with the escapes of YAML 1.2 section 5.7 that printable text needs.
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + "\"";
}

void AppendQuoted(std::string* out, const std::string& text) {
  out->append(Quoted(text));
}

struct ValueFormatter {
  std::string operator()(const std::string* field) const { return Quoted(*field); }
  std::string operator()(const int64_t* field) const { return absl::StrCat(*field); }
  std::string operator()(const bool* field) const { return *field ? "true" : "false"; }
  std::string operator()(const std::vector<std::string>* field) const {
    return absl::StrCat("[", absl::StrJoin(*field, ", ", AppendQuoted), "]");
  }
};

std::string FormatValue(const ConfigKey& key) {
  return std::visit(ValueFormatter(), key.field);
}

// Both fields have the type of the key.
void Copy(const ConfigKey& from, const ConfigKey& to) {
  std::visit(
      [&to](auto* source) {
        *std::get<std::remove_reference_t<decltype(source)>>(to.field) = *source;
      },
      from.field);
}

}  // namespace

std::string FormatConfig(const ConfigTable& table) {
  std::string text = absl::StrCat("apiVersion: perfd/v1\nkind: ", table.kind, "\n");
  absl::string_view section;
  for (const ConfigKey& key : table.keys) {
    const absl::string_view own = SectionName(key.path);
    if (own != section && !own.empty()) absl::StrAppend(&text, own, ":\n");
    section = own;
    absl::StrAppend(&text, own.empty() ? "" : "  ", LeafName(key.path), ": ", FormatValue(key),
                    "\n");
  }
  return text;
}

ConfigChanges AdoptLive(const ConfigTable& wanted, const ConfigTable& running) {
  ConfigChanges changes;
  for (size_t i = 0; i < wanted.keys.size() && i < running.keys.size(); ++i) {
    const ConfigKey& from = wanted.keys[i];
    const ConfigKey& to = running.keys[i];
    const std::string before = FormatValue(to);
    const std::string after = FormatValue(from);
    if (before == after) continue;
    (from.live ? changes.taken : changes.refused)
        .push_back(absl::StrCat(from.path, ": ", before, " -> ", after));
    if (from.live) Copy(from, to);
  }
  return changes;
}

}  // namespace perfd
