#include "agent/anonymous/perf_map.h"

#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace perfd::agent {
namespace {

bool Hex(absl::string_view text, uint64_t* value) {
  if (!absl::ConsumePrefix(&text, "0x")) absl::ConsumePrefix(&text, "0X");
  return absl::SimpleHexAtoi(text, value);
}

}  // namespace

PerfMap PerfMap::Parse(absl::string_view text) {
  PerfMap map;
  // A line without its end is still being written.
  for (size_t end = text.find('\n'); end != absl::string_view::npos; end = text.find('\n')) {
    const absl::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    const size_t first = line.find(' ');
    const size_t second = first == line.npos ? line.npos : line.find(' ', first + 1);
    if (second == line.npos) continue;
    absl::string_view name = line.substr(second + 1);
    absl::ConsumeSuffix(&name, "\r");
    uint64_t start = 0;
    uint64_t size = 0;
    if (!Hex(line.substr(0, first), &start) || name.empty() ||
        !Hex(line.substr(first + 1, second - first - 1), &size) || size == 0 ||
        size > UINT64_MAX - start)
      continue;
    map.Add(start, start + size, name.substr(0, kMaxNameBytes));
  }
  return map;
}

void PerfMap::Add(RuntimeAddress start, RuntimeAddress end, absl::string_view name) {
  if (by_start_.size() + 1 >= kMaxSymbols) return;  // one may be cut in two
  auto it = by_start_.upper_bound(start);
  if (it != by_start_.begin() && std::prev(it)->second.end > start) --it;
  while (it != by_start_.end() && it->first < end) {
    const RuntimeAddress old_start = it->first;
    Symbol old = std::move(it->second);
    it = by_start_.erase(it);
    if (old_start < start) by_start_.emplace(old_start, Symbol{start, old.name});
    if (old.end > end) it = by_start_.emplace(end, Symbol{old.end, std::move(old.name)}).first;
  }
  by_start_.insert_or_assign(start, Symbol{end, std::string(name)});
}

const PerfMap::Symbol* PerfMap::At(RuntimeAddress address) const {
  auto it = by_start_.upper_bound(address);
  if (it == by_start_.begin()) return nullptr;
  --it;
  return address < it->second.end ? &it->second : nullptr;
}

}  // namespace perfd::agent
