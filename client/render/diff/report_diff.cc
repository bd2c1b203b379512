#include "client/render/diff/report_diff.h"

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

// A loop that was not seen: at zero, with no interval to speak of.
WallShare ShareOf(const ReportRow* row, ShareBasis basis) {
  if (row == nullptr) return {};
  if (basis == ShareBasis::kWall) return row->wall.value_or(WallShare{});
  return {row->share, row->share_interval, row->inclusive_share};
}

LoopDiff Compare(LoopMatch match, const ReportRow* a, const ReportRow* b, ShareBasis basis) {
  const WallShare of_a = ShareOf(a, basis);
  const WallShare of_b = ShareOf(b, basis);
  return {match,
          a,
          b,
          of_a.share,
          of_b.share,
          of_a.interval,
          of_b.interval,
          of_b.share - of_a.share,
          !Overlap(of_a.interval, of_b.interval)};
}

// Moves the pairs that `key` finds from `a` and `b` to `result`.
void Match(LoopMatch kind, const Key& key, ShareBasis basis, Rows* a, Rows* b,
           std::vector<LoopDiff>* result) {
  const auto in_a = Unique(*a, key);
  const auto in_b = Unique(*b, key);
  for (const auto& [name, row_a] : in_a) {
    const auto it = in_b.find(name);
    if (it == in_b.end() ||
        !MayBeOneFunction(row_a->location.function, it->second->location.function))
      continue;
    result->push_back(Compare(kind, row_a, it->second, basis));
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

bool Overlap(const Interval& a, const Interval& b) {
  return a.low <= b.high && b.low <= a.high;
}

ShareBasis CommonBasis(const Report& a, const Report& b) {
  const bool both = a.time.wall.has_value() && b.time.wall.has_value();
  return both ? ShareBasis::kWall : ShareBasis::kCpu;
}

std::vector<LoopDiff> DiffReports(const Report& a, const Report& b) {
  const ShareBasis basis = CommonBasis(a, b);
  std::vector<LoopDiff> result;
  Rows rows_a = Pointers(a.loops);
  Rows rows_b = Pointers(b.loops);
  Match(
      LoopMatch::kSameId, [](const ReportRow& row) { return row.id; }, basis, &rows_a, &rows_b,
      &result);
  Match(LoopMatch::kSameLines, LineKey, basis, &rows_a, &rows_b, &result);
  Match(LoopMatch::kSameFunction, FunctionKey, basis, &rows_a, &rows_b, &result);
  for (const ReportRow* row : rows_a)
    result.push_back(Compare(LoopMatch::kOnlyInA, row, nullptr, basis));
  for (const ReportRow* row : rows_b)
    result.push_back(Compare(LoopMatch::kOnlyInB, nullptr, row, basis));
  std::stable_sort(result.begin(), result.end(), [](const LoopDiff& x, const LoopDiff& y) {
    return std::abs(x.change) > std::abs(y.change);
  });
  return result;
}

}  // namespace perfd::client
