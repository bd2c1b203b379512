#include "client/render/report_diff.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"

namespace perfd::client {
namespace {

using Key = std::function<std::string(const ReportRow&)>;
using Rows = std::vector<const ReportRow*>;

std::string LineKey(const ReportRow& row) {
  const SourceRange& source = row.location.source;
  if (source.first_line == 0) return "";
  return absl::StrCat(row.location.function, "|", BaseName(source.file), "|", source.first_line);
}

std::string FunctionKey(const ReportRow& row) {
  if (!row.location.loop.has_value()) return "";
  return absl::StrCat(row.location.function, "|", BaseName(row.location.module_path), "|",
                      row.location.loop->depth);
}

// Rows by key, without those that share a key: an ambiguous key matches nothing.
std::map<std::string, const ReportRow*> Unique(const Rows& rows, const Key& key) {
  std::map<std::string, const ReportRow*> unique;
  for (const ReportRow* row : rows) {
    const auto [it, fresh] = unique.emplace(key(*row), row);
    if (!fresh) it->second = nullptr;
  }
  unique.erase("");
  std::erase_if(unique, [](const auto& entry) { return entry.second == nullptr; });
  return unique;
}

bool Overlap(const Interval& a, const Interval& b) {
  return a.low <= b.high && b.low <= a.high;
}

LoopDiff Compare(LoopMatch match, const ReportRow* a, const ReportRow* b) {
  const double share_a = a == nullptr ? 0 : a->share;
  const double share_b = b == nullptr ? 0 : b->share;
  // A loop that was not seen: at zero, with no interval to speak of.
  const Interval none;
  const bool overlap =
      Overlap(a == nullptr ? none : a->share_interval, b == nullptr ? none : b->share_interval);
  return {match, a, b, share_b - share_a, !overlap};
}

// Moves the pairs that `key` finds from `a` and `b` to `result`.
void Match(LoopMatch kind, const Key& key, Rows* a, Rows* b, std::vector<LoopDiff>* result) {
  const auto in_a = Unique(*a, key);
  const auto in_b = Unique(*b, key);
  for (const auto& [name, row_a] : in_a) {
    const auto it = in_b.find(name);
    if (it == in_b.end()) continue;
    result->push_back(Compare(kind, row_a, it->second));
    std::erase(*a, row_a);
    std::erase(*b, it->second);
  }
}

Rows Pointers(const std::vector<ReportRow>& rows) {
  Rows pointers;
  for (const ReportRow& row : rows) pointers.push_back(&row);
  return pointers;
}

}  // namespace

std::vector<LoopDiff> DiffReports(const Report& a, const Report& b) {
  std::vector<LoopDiff> result;
  Rows rows_a = Pointers(a.loops);
  Rows rows_b = Pointers(b.loops);
  Match(
      LoopMatch::kSameId, [](const ReportRow& row) { return row.id; }, &rows_a, &rows_b, &result);
  Match(LoopMatch::kSameLines, LineKey, &rows_a, &rows_b, &result);
  Match(LoopMatch::kSameFunction, FunctionKey, &rows_a, &rows_b, &result);
  for (const ReportRow* row : rows_a) result.push_back(Compare(LoopMatch::kOnlyInA, row, nullptr));
  for (const ReportRow* row : rows_b) result.push_back(Compare(LoopMatch::kOnlyInB, nullptr, row));
  std::stable_sort(result.begin(), result.end(), [](const LoopDiff& x, const LoopDiff& y) {
    return std::abs(x.change) > std::abs(y.change);
  });
  return result;
}

}  // namespace perfd::client
