// core/json/report_json.h - the whole report as JSON. Keys are stable: they are only ever added to.
//
// Shape    version (kReportJsonVersion), share_basis ("wall", else "cpu": of the order of loops, hot and gains), status{} (status_json.h),
//          loops[], waiting[], functions[] (rows), totals{loops, outside_loops, libraries, kernel, unknown: {share, samples}; waiting_share;
//          kernel_causes[] {cause (KernelCauseName), share, wall_share or null, samples}: their sums are the kernel's;
//          wall: shares by the same names, waiting_or_idle (sum 1), elapsed_seconds, cpu_wait_seconds; or null}, ranks[], worst_rank, imbalance,
//          nodes[], stacks[] {rank, frames[], samples, seconds: stack_time.h}, accounting{seen, kept, lost, dropped{reason}, ...}, overhead{...},
//          overhead_ratio, missing_ratio, provenance, verdicts[], injection{} (verdict_json.h), memory{} or null (memory/memory_json.h)
//   row    id, function, file, first_line, last_line, module, module_id, category, waiting, openmp, loop{header,
//          parent_header, depth, innermost, irreducible, blocks, instructions, inlined_from} or null, kernel_cause, kernel_caller (null but for the kernel; lines: the caller's), samples, share,
//          share_low, share_high, inclusive_share, called_share, wall_share, wall_share_low, wall_share_high, wall_inclusive_share, wall_called_share (wall: null:
//          some agent does not divide elapsed time; called: functions that the loop calls, as far as call paths tell), hot, rank_{min,median,max}_seconds, worst_rank, imbalance,
//          thread_count, first_seen_ns, last_seen_ns (both 0: not known), ranks[], threads[]; loops[] also loops_of_lines,
//          main_of_lines (id): core/analysis/loop_parts.h
// Units    shares, of CPU time (wall_*: of elapsed time), and ratios 0..1; samples are counts; *_ns, *_seconds; addresses as "0x..." text.
#ifndef CORE_JSON_REPORT_JSON_H_
#define CORE_JSON_REPORT_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "core/model/report.h"

namespace perfd {

// 1 (which was not told): shares of CPU time alone. 2: wall shares beside them.
inline constexpr int kReportJsonVersion = 2;

nlohmann::ordered_json RowToJson(const ReportRow& row);
nlohmann::ordered_json ReportToJson(const Report& report);

}  // namespace perfd

#endif  // CORE_JSON_REPORT_JSON_H_
