// client/render/diff/report_diff.h - two reports compared loop by loop.
//
// Shape    a loop of A and a loop of B are the same when their ids are, else when function, file and first line are, else
//          when each is the only unmatched loop of that function and depth (another build moved its lines).
//          Wall shares are compared where both reports have them, else shares of CPU time.
//          A change is significant only when the two 95 % intervals do not overlap.
// Units    ratios 0..1; change = share in B - share in A.
#ifndef CLIENT_RENDER_DIFF_REPORT_DIFF_H_
#define CLIENT_RENDER_DIFF_REPORT_DIFF_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/render/text_style.h"
#include "core/model/report.h"

namespace perfd::client {

enum class LoopMatch { kSameId, kSameLines, kSameFunction, kOnlyInA, kOnlyInB };

struct LoopDiff {
  LoopMatch match = LoopMatch::kSameId;
  const ReportRow* a = nullptr;  // into the reports; null when only the other has it
  const ReportRow* b = nullptr;
  double share_a = 0;  // what is compared; 0 where there is no row
  double share_b = 0;
  Interval interval_a;
  Interval interval_b;
  double change = 0;
  bool significant = false;

  const ReportRow& row() const { return b != nullptr ? *b : *a; }
};

bool Overlap(const Interval& a, const Interval& b);

// What of two reports can be compared.
ShareBasis CommonBasis(const Report& a, const Report& b);

// Largest change first. The reports must outlive the result.
std::vector<LoopDiff> DiffReports(const Report& a, const Report& b);

std::string RenderDiff(const Report& a, const Report& b, const TextStyle& style);
// {"a": id, "b": id, "share_basis": "wall" or "cpu", "memory": MemoryDiffToJson, "loops": [{match, a_id, b_id, function, source, a_share, ...,
// change, significant, memory}]}
nlohmann::ordered_json DiffToJson(const Report& a, const Report& b);

}  // namespace perfd::client

#endif  // CLIENT_RENDER_DIFF_REPORT_DIFF_H_
