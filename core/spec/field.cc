#include "core/spec/field.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/model/variant_name.h"
#include "core/spec/nearest.h"
#include "core/spec/text.h"
#include "core/spec/units.h"

namespace perfd {
namespace {

constexpr size_t kMaxErrors = 50;

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

constexpr std::array<std::pair<CallPaths, absl::string_view>, 4> kCallPaths = {
    {{CallPaths::kAuto, "auto"},
     {CallPaths::kOff, "off"},
     {CallPaths::kFramePointer, "fp"},
     {CallPaths::kDwarf, "dwarf"}}};

std::vector<std::string> Choices(const SpecKey& key) {
  return absl::StrSplit(key.choices, '|', absl::SkipEmpty());
}

bool IsChoice(const SpecKey& key, absl::string_view text) {
  const std::vector<std::string> choices = Choices(key);
  return std::find(choices.begin(), choices.end(), text) != choices.end();
}

// Carries one value from the node into the spec. Each Read returns an error text.
class FieldReader {
 public:
  FieldReader(const SpecKey& key, const YamlNode& node, SpecErrors* errors)
      : key_(key), node_(node), errors_(errors) {}

  void operator()(std::monostate) {
    if (Scalar() && node_.text != key_.choices)
      Fail(absl::StrCat("'", ForMessage(node_.text), "' is not supported; this version reads '",
                        key_.choices, "'"));
  }
  void operator()(std::string* field) {
    if (!Scalar()) return;
    // YAML 1.1 tools write `off` as false.
    const bool off =
        key_.type == KeyType::kChoice && node_.text == "false" && IsChoice(key_, "off");
    *field = off ? "off" : node_.text;
  }
  void operator()(std::optional<std::string>* field) {
    if (Scalar()) *field = node_.text;
  }
  void operator()(std::optional<uint32_t>* field) {
    int64_t value = 0;
    if (!Integer(node_, &value)) return;
    *field = static_cast<uint32_t>(std::clamp<int64_t>(value, 0, UINT32_MAX));
    if (value > UINT32_MAX) Fail(absl::StrCat("is out of range ", FormatRange(key_)));
  }
  void operator()(int32_t* field) {
    if (key_.type == KeyType::kFrequency) return Quantity(ParseFrequency, field);
    int64_t value = 0;
    if (!Integer(node_, &value)) return;
    *field = static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
  }
  void operator()(int64_t* field) { Quantity(ParseDuration, field); }
  void operator()(ProfileSpec* spec) {
    const bool span = key_.type == KeyType::kSpan;
    if (span && node_.kind == YamlNode::Kind::kScalar && node_.text == "auto") {
      spec->until_known = true;
      return;
    }
    if (span) spec->until_known = false;
    Quantity(ParseDuration, &spec->duration_ns);
  }
  void operator()(double* field) { Quantity(ParsePercent, field); }
  void operator()(std::vector<RankRange>* field) { Quantity(ParseRanks, field); }
  void operator()(bool* field) {
    if (!Scalar()) return;
    const std::string word = absl::AsciiStrToLower(node_.text);
    const bool yes = word == "true" || word == "yes" || word == "on";
    const bool no = word == "false" || word == "no" || word == "off";
    if (node_.quoted || (!yes && !no))
      return Fail(absl::StrCat("'", ForMessage(node_.text), "'", node_.quoted ? " in quotes" : "",
                               " is not true or false"));
    *field = yes;
  }
  void operator()(CallPaths* field) {
    if (!Scalar()) return;
    const absl::string_view word = node_.text == "false" ? "off" : absl::string_view(node_.text);
    for (const auto& [value, name] : kCallPaths) {
      if (name != word) continue;
      *field = value;
      return;
    }
    Fail(NotAChoice(word, Choices(key_)));
  }
  void operator()(std::vector<int32_t>* field) {
    if (!List()) return;
    field->clear();
    for (const YamlNode& item : node_.items) {
      int64_t value = 0;
      if (!Integer(item, &value)) continue;
      field->push_back(static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX)));
    }
  }
  void operator()(std::vector<std::string>* field) {
    if (!List()) return;
    field->clear();
    for (const YamlNode& item : node_.items) {
      if (item.kind != YamlNode::Kind::kScalar) {
        Fail(item, absl::StrCat("expected a name, found ", KindName(item)));
        continue;
      }
      field->push_back(item.text);
    }
  }

 private:
  void Fail(const YamlNode& at, absl::string_view text) {
    errors_->Add(at.line, at.column, absl::StrCat(key_.path, ": ", text));
  }
  void Fail(absl::string_view text) { Fail(node_, text); }

  bool Scalar() {
    if (node_.kind == YamlNode::Kind::kScalar) return true;
    Fail(absl::StrCat("expected a single value such as ", key_.example, ", found ",
                      KindName(node_)));
    return false;
  }
  bool List() {
    if (node_.kind == YamlNode::Kind::kSequence) return true;
    Fail(absl::StrCat("expected a list such as ", key_.example, ", found ", KindName(node_)));
    return false;
  }
  bool Integer(const YamlNode& node, int64_t* value) {
    if (node.kind != YamlNode::Kind::kScalar || node.quoted) {
      Fail(node, absl::StrCat("expected a whole number, found ", KindName(node)));
      return false;
    }
    const auto parsed = ParseInteger(node.text);
    if (!parsed.ok()) {
      Fail(node, parsed.status().message());
      return false;
    }
    *value = *parsed;
    return true;
  }
  template <typename T>
  void Quantity(absl::StatusOr<T> (*parse)(absl::string_view), T* field) {
    if (!Scalar()) return;
    auto parsed = parse(node_.text);
    if (!parsed.ok()) return Fail(parsed.status().message());
    *field = *std::move(parsed);
  }

  const SpecKey& key_;
  const YamlNode& node_;
  SpecErrors* errors_;
};

// Double quotes with the escapes of YAML 1.2 section 5.7 that printable text needs.
std::string Quoted(absl::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + "\"";
}

std::string FormatNumber(const SpecKey& key, double value) {
  switch (key.type) {
    case KeyType::kDuration:
    case KeyType::kSpan:
    case KeyType::kLongestSpan:
      return FormatDuration(static_cast<int64_t>(value));
    case KeyType::kPercent:
      return FormatPercent(value);
    case KeyType::kFrequency:
      return FormatFrequency(static_cast<int32_t>(value));
    default:
      return absl::StrCat(static_cast<int64_t>(value));
  }
}

std::string OutOfRange(const SpecKey& key, double value) {
  if (value >= key.low && value <= key.high) return "";  // NaN fails both
  return absl::StrCat("is out of range ", FormatRange(key));
}

std::string CheckText(const SpecKey& key, const std::string& text) {
  if (key.type == KeyType::kChoice)
    return IsChoice(key, text) ? "" : NotAChoice(text, Choices(key));
  const double bytes = static_cast<double>(text.size());
  if (bytes < key.low) return "is empty";
  if (bytes > key.high) return absl::StrCat("has ", text.size(), " bytes; at most ", key.high);
  if (!IsPrintable(text)) return "has control characters or is not UTF-8";
  return "";
}

template <typename T>
std::string CheckList(const SpecKey& key, const std::vector<T>& values) {
  if (static_cast<double>(values.size()) > key.high)
    return absl::StrCat("has ", values.size(), " entries; at most ", key.high);
  std::vector<T> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return "names the same entry twice";
  return "";
}

// REF, COUNT and TRACE are always measured, so nobody asks for them.
std::string CheckVariants(const SpecKey& key, const std::vector<std::string>& texts) {
  std::vector<std::string> canonical;
  for (const std::string& text : texts) {
    const absl::StatusOr<VariantName> name = ParseVariantName(text);
    if (!name.ok()) {
      const bool known = IsChoice(key, text) || text.find_first_of("(+") != std::string::npos;
      return known ? std::string(name.status().message()) : NotAChoice(text, Choices(key));
    }
    if (name->parts.front().change <= Change::kTrace) return NotAChoice(text, Choices(key));
    canonical.push_back(name->Text());
  }
  return CheckList(key, canonical);
}

std::string CheckRanks(const SpecKey& key, const std::vector<RankRange>& ranks) {
  if (ranks.size() > kMaxRankRanges)
    return absl::StrCat("has ", ranks.size(), " ranges; at most ", kMaxRankRanges);
  for (const RankRange& range : ranks) {
    if (range.first < 0 || range.last < range.first)
      return absl::StrCat("range ", range.first, "-", range.last, " is not valid");
    if (std::string error = OutOfRange(key, range.last); !error.empty()) return error;
  }
  return "";
}

SpecField FieldOf(const SpecKey& key, const ProfileSpec& spec) {
  return key.field(const_cast<ProfileSpec&>(spec));  // read only here; one table serves both ways
}

}  // namespace

void SpecErrors::Add(int line, int column, const std::string& text) {
  Record(absl::StrCat(Position(line, column), text));
}

void SpecErrors::Record(std::string text) {
  if (texts_.size() < kMaxErrors) {
    texts_.push_back(std::move(text));
  } else {
    ++more_;
  }
}

std::string SpecErrors::Join() const {
  std::string all = absl::StrJoin(texts_, "\n");
  if (more_ > 0) absl::StrAppend(&all, "\nand ", more_, " more");
  return all;
}

void ReadField(const SpecKey& key, const YamlNode& node, ProfileSpec* spec, SpecErrors* errors) {
  if (node.kind == YamlNode::Kind::kNull) {
    errors->Add(node.key_line, node.key_column,
                absl::StrCat(key.path, " has no value; give one or remove the key"));
    return;
  }
  std::visit(FieldReader(key, node, errors), key.field(*spec));
}

std::string FormatRange(const SpecKey& key) {
  switch (key.type) {
    case KeyType::kInteger:
    case KeyType::kDuration:
    case KeyType::kSpan:
    case KeyType::kLongestSpan:
    case KeyType::kPercent:
    case KeyType::kFrequency:
    case KeyType::kRanks:
      return FormatNumber(key, key.low) + ".." + FormatNumber(key, key.high);
    case KeyType::kText:
      return absl::StrCat(key.low, "..", key.high, " bytes");
    case KeyType::kPids:
      return absl::StrCat(key.low, "..", key.high, " process ids");
    default:
      return "";
  }
}

std::optional<std::string> FormatField(const SpecKey& key, const ProfileSpec& spec) {
  using Text = std::optional<std::string>;
  const auto format_text = [&key](const std::string& text) -> Text {
    if (key.type == KeyType::kChoice) return text;
    return text.empty() ? Text() : Quoted(text);
  };
  return std::visit(
      Overloaded{[&](std::monostate) -> Text {
                   return key.type == KeyType::kConstant ? Text(key.choices) : Text();
                 },
                 [&](std::string* field) -> Text { return format_text(*field); },
                 [&](std::optional<std::string>* field) -> Text {
                   return field->has_value() ? Text(Quoted(**field)) : Text();
                 },
                 [](std::optional<uint32_t>* field) -> Text {
                   return field->has_value() ? Text(absl::StrCat(**field)) : Text();
                 },
                 [&](int32_t* field) -> Text { return FormatNumber(key, *field); },
                 [](int64_t* field) -> Text { return FormatDuration(*field); },
                 [](double* field) -> Text { return FormatPercent(*field); },
                 [](bool* field) -> Text { return *field ? "true" : "false"; },
                 [](CallPaths* field) -> Text {
                   for (const auto& [value, name] : kCallPaths) {
                     if (value == *field) return std::string(name);
                   }
                   return Text();
                 },
                 [](std::vector<int32_t>* field) -> Text {
                   if (field->empty()) return Text();
                   return absl::StrCat("[", absl::StrJoin(*field, ", "), "]");
                 },
                 [](std::vector<std::string>* field) -> Text {
                   return absl::StrCat("[", absl::StrJoin(*field, ", "), "]");
                 },
                 [](std::vector<RankRange>* field) -> Text { return Quoted(FormatRanks(*field)); },
                 [&](ProfileSpec* all) -> Text {
                   if (key.type == KeyType::kSpan && all->until_known) return Text("auto");
                   if (key.type == KeyType::kLongestSpan && !all->until_known) return Text();
                   return FormatDuration(all->duration_ns);
                 }},
      FieldOf(key, spec));
}

std::string CheckField(const SpecKey& key, const ProfileSpec& spec) {
  return std::visit(
      Overloaded{[](std::monostate) { return std::string(); },
                 [&](std::string* field) { return CheckText(key, *field); },
                 [&](std::optional<std::string>* field) {
                   return field->has_value() ? CheckText(key, **field) : "";
                 },
                 [&](std::optional<uint32_t>* field) {
                   return field->has_value() ? OutOfRange(key, **field) : "";
                 },
                 [&](int32_t* field) { return OutOfRange(key, *field); },
                 [&](int64_t* field) { return OutOfRange(key, static_cast<double>(*field)); },
                 [&](double* field) { return OutOfRange(key, *field); },
                 [](bool*) { return std::string(); }, [](CallPaths*) { return std::string(); },
                 [&](std::vector<int32_t>* field) {
                   const bool positive = std::all_of(field->begin(), field->end(),
                                                     [](int32_t pid) { return pid > 0; });
                   return positive ? CheckList(key, *field) : "has a process id below 1";
                 },
                 [&](std::vector<std::string>* field) { return CheckVariants(key, *field); },
                 [&](std::vector<RankRange>* field) { return CheckRanks(key, *field); },
                 [&](ProfileSpec* all) {
                   const bool meant = all->until_known == (key.type == KeyType::kLongestSpan);
                   return meant ? OutOfRange(key, static_cast<double>(all->duration_ns)) : "";
                 }},
      FieldOf(key, spec));
}

}  // namespace perfd
