#include "core/hosts/host_list.h"

#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace perfd {
namespace {

constexpr size_t kMaxDigits = 9;
constexpr size_t kMostExpanded = 4 * kMaxHosts;
constexpr size_t kMaxShown = 64;
constexpr size_t kMostNamed = 8;

absl::Status Wrong(absl::string_view item, absl::string_view what) {
  std::string shown(item.substr(0, kMaxShown));
  for (char& c : shown) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return absl::InvalidArgumentError(absl::StrCat("host list: '", shown, "' ", what));
}

absl::Status TooMany() {
  return absl::ResourceExhaustedError(absl::StrCat("host list: more than ", kMaxHosts, " hosts"));
}

bool IsNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}

// "7", "1-4", "08-10": appends the numbers as text.
absl::Status ExpandRange(absl::string_view range, std::vector<std::string>* numbers) {
  const size_t dash = range.find('-');
  const absl::string_view first_text = range.substr(0, dash);
  const absl::string_view last_text =
      dash == absl::string_view::npos ? first_text : range.substr(dash + 1);
  for (const absl::string_view text : {first_text, last_text}) {
    if (text.empty() || text.size() > kMaxDigits ||
        text.find_first_not_of("0123456789") != absl::string_view::npos)
      return Wrong(range, "is not a number or a range of numbers");
  }
  int64_t first = 0;
  int64_t last = 0;
  if (!absl::SimpleAtoi(first_text, &first) || !absl::SimpleAtoi(last_text, &last) || last < first)
    return Wrong(range, "does not go upwards");
  if (static_cast<size_t>(last - first) >= kMaxHosts - numbers->size()) return TooMany();
  const int width = static_cast<int>(first_text.size());
  for (int64_t number = first; number <= last; ++number)
    numbers->push_back(absl::StrFormat("%0*d", width, number));
  return absl::OkStatus();
}

absl::Status Append(absl::string_view text, std::vector<std::string>* names) {
  for (std::string& name : *names) {
    if (name.size() + text.size() > kMaxHostBytes) return Wrong(name, "is too long a name");
    name.append(text.data(), text.size());
  }
  return absl::OkStatus();
}

absl::Status Multiply(absl::string_view ranges, std::vector<std::string>* names) {
  std::vector<std::string> numbers;
  for (const absl::string_view range : absl::StrSplit(ranges, ','))
    RETURN_IF_ERROR(ExpandRange(range, &numbers));
  if (names->size() * numbers.size() > kMaxHosts) return TooMany();
  std::vector<std::string> product;
  for (const std::string& name : *names) {
    for (const std::string& number : numbers) {
      if (name.size() + number.size() > kMaxHostBytes) return Wrong(name, "is too long a name");
      product.push_back(name + number);
    }
  }
  *names = std::move(product);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ExpandItem(absl::string_view item) {
  std::vector<std::string> names = {""};
  for (absl::string_view rest = item; !rest.empty();) {
    if (rest.front() == '[') {
      const size_t end = rest.find(']');
      if (end == absl::string_view::npos) return Wrong(item, "has a bracket that is not closed");
      RETURN_IF_ERROR(Multiply(rest.substr(1, end - 1), &names));
      rest.remove_prefix(end + 1);
      continue;
    }
    size_t length = 0;
    while (length < rest.size() && IsNameChar(rest[length])) ++length;
    if (length == 0) return Wrong(item, "has a character that is not of a host name");
    RETURN_IF_ERROR(Append(rest.substr(0, length), &names));
    rest.remove_prefix(length);
  }
  if (names.front().empty()) return Wrong(item, "is no host name");
  return names;
}

// The end of the item that begins the list: the next comma outside brackets.
size_t ItemLength(absl::string_view list) {
  bool inside = false;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') inside = true;
    if (list[i] == ']') inside = false;
    if (list[i] == ',' && !inside) return i;
  }
  return list.size();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHostList(absl::string_view text) {
  std::vector<std::string> hosts;
  std::set<std::string> seen;
  size_t expanded = 0;  // also names that were there before: a short text can repeat long ranges
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  while (!rest.empty()) {
    const size_t length = ItemLength(rest);
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandItem(rest.substr(0, length)));
    expanded += names.size();
    if (expanded > kMostExpanded) return TooMany();
    for (const std::string& name : names) {
      if (!seen.insert(name).second) continue;
      if (hosts.size() == kMaxHosts) return TooMany();
      hosts.push_back(name);
    }
    rest.remove_prefix(length);
    if (rest.empty()) break;
    rest.remove_prefix(1);
    if (rest.empty()) return Wrong(text, "ends with a comma");
  }
  return hosts;
}

std::string SomeHosts(std::vector<std::string> names) {
  const size_t more = names.size() > kMostNamed ? names.size() - kMostNamed : 0;
  names.resize(names.size() - more);
  return absl::StrCat(absl::StrJoin(names, ", "),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

}  // namespace perfd
