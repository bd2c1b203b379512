// One row of a report.
#include "core/base/status_macros.h"
#include "core/wire/check/check.h"
#include "core/wire/wire.h"

namespace perfd::wire {
namespace {

constexpr double kMaxSeconds = 1e15;

void FillTables(const ReportRow& row, v1::ReportRow& out) {
  for (const RankShare& rank : row.ranks) {
    v1::RankShare* to = out.add_ranks();
    to->set_node(CleanText(rank.node));
    to->set_rank(rank.rank);
    to->set_samples(rank.samples);
    to->set_seconds(rank.seconds);
    to->set_share_of_rank(rank.share_of_rank);
    to->set_wall_share_of_rank(rank.wall_share_of_rank);
  }
  for (const ThreadShare& thread : row.threads) {
    v1::ThreadShare* to = out.add_threads();
    to->set_node(CleanText(thread.thread.node));
    to->set_rank(thread.thread.rank);
    to->set_pid(thread.thread.pid);
    to->set_tid(thread.thread.tid);
    to->set_samples(thread.samples);
    to->set_share_of_thread(thread.share_of_thread);
  }
}

absl::Status ReadRank(const v1::RankShare& rank, ReportRow& out) {
  RETURN_IF_ERROR(CheckText(rank.node(), "row.ranks.node"));
  RETURN_IF_ERROR(CheckRange(rank.rank(), 0, INT32_MAX, "row.ranks.rank"));
  RETURN_IF_ERROR(CheckNumber(rank.seconds(), 0, kMaxSeconds, "row.ranks.seconds"));
  RETURN_IF_ERROR(CheckRatio(rank.share_of_rank(), "row.ranks.share_of_rank"));
  RETURN_IF_ERROR(CheckRatio(rank.wall_share_of_rank(), "row.ranks.wall_share_of_rank"));
  out.ranks.push_back({rank.node(), rank.rank(), rank.samples(), rank.seconds(),
                       rank.share_of_rank(), rank.wall_share_of_rank()});
  return absl::OkStatus();
}

absl::Status ReadThread(const v1::ThreadShare& thread, ReportRow& out) {
  RETURN_IF_ERROR(CheckText(thread.node(), "row.threads.node"));
  RETURN_IF_ERROR(CheckRange(thread.rank(), 0, INT32_MAX, "row.threads.rank"));
  RETURN_IF_ERROR(CheckRange(thread.pid(), 0, INT32_MAX, "row.threads.pid"));
  RETURN_IF_ERROR(CheckRange(thread.tid(), 0, INT32_MAX, "row.threads.tid"));
  RETURN_IF_ERROR(CheckRatio(thread.share_of_thread(), "row.threads.share_of_thread"));
  out.threads.push_back({{thread.node(), thread.rank(), thread.pid(), thread.tid()},
                         thread.samples(),
                         thread.share_of_thread()});
  return absl::OkStatus();
}

absl::Status ReadTables(const v1::ReportRow& row, ReportRow& out) {
  RETURN_IF_ERROR(CheckCount(row.ranks_size(), kMaxReportRanks, "row.ranks"));
  RETURN_IF_ERROR(CheckCount(row.threads_size(), kMaxReportRanks, "row.threads"));
  for (const v1::RankShare& rank : row.ranks()) RETURN_IF_ERROR(ReadRank(rank, out));
  for (const v1::ThreadShare& thread : row.threads()) RETURN_IF_ERROR(ReadThread(thread, out));
  return absl::OkStatus();
}

absl::Status ReadCalled(const v1::CalledShare& called, const std::string& field, CalledShare& out) {
  RETURN_IF_ERROR(CheckRatio(called.share(), field + ".share"));
  RETURN_IF_ERROR(CheckRatio(called.interval().low(), field + ".interval.low"));
  RETURN_IF_ERROR(CheckRatio(called.interval().high(), field + ".interval.high"));
  if (called.interval().low() > called.interval().high())
    return absl::InvalidArgumentError(field + ".interval: low is above high");
  out = {called.share(), {called.interval().low(), called.interval().high()}};
  return absl::OkStatus();
}

void FillCalled(const CalledShare& called, v1::CalledShare& out) {
  out.set_share(called.share);
  out.mutable_interval()->set_low(called.interval.low);
  out.mutable_interval()->set_high(called.interval.high);
}

absl::Status ReadShares(const v1::ReportRow& row, ReportRow& out) {
  RETURN_IF_ERROR(CheckRatio(row.share(), "row.share"));
  RETURN_IF_ERROR(CheckRatio(row.share_interval().low(), "row.share_interval.low"));
  RETURN_IF_ERROR(CheckRatio(row.share_interval().high(), "row.share_interval.high"));
  RETURN_IF_ERROR(CheckRatio(row.inclusive_share(), "row.inclusive_share"));
  if (row.share_interval().low() > row.share_interval().high())
    return absl::InvalidArgumentError("row.share_interval: low is above high");
  out.share = row.share();
  out.share_interval = {row.share_interval().low(), row.share_interval().high()};
  out.inclusive_share = row.inclusive_share();
  return row.has_called() ? ReadCalled(row.called(), "row.called", out.called) : absl::OkStatus();
}

absl::Status ReadWall(const v1::ReportRow& row, ReportRow& out) {
  if (!row.has_wall()) return absl::OkStatus();
  const v1::WallShare& wall = row.wall();
  RETURN_IF_ERROR(CheckRatio(wall.share(), "row.wall.share"));
  RETURN_IF_ERROR(CheckRatio(wall.interval().low(), "row.wall.interval.low"));
  RETURN_IF_ERROR(CheckRatio(wall.interval().high(), "row.wall.interval.high"));
  RETURN_IF_ERROR(CheckRatio(wall.inclusive_share(), "row.wall.inclusive_share"));
  if (wall.interval().low() > wall.interval().high())
    return absl::InvalidArgumentError("row.wall.interval: low is above high");
  out.wall = {
      wall.share(), {wall.interval().low(), wall.interval().high()}, wall.inclusive_share(), {}};
  return wall.has_called() ? ReadCalled(wall.called(), "row.wall.called", out.wall->called)
                           : absl::OkStatus();
}

absl::Status ReadSpread(const v1::ReportRow& row, ReportRow& out) {
  RETURN_IF_ERROR(CheckNumber(row.rank_min_seconds(), 0, kMaxSeconds, "row.rank_min_seconds"));
  RETURN_IF_ERROR(
      CheckNumber(row.rank_median_seconds(), 0, kMaxSeconds, "row.rank_median_seconds"));
  RETURN_IF_ERROR(CheckNumber(row.rank_max_seconds(), 0, kMaxSeconds, "row.rank_max_seconds"));
  RETURN_IF_ERROR(CheckNumber(row.imbalance(), 0, kMaxSeconds, "row.imbalance"));
  RETURN_IF_ERROR(CheckText(row.worst_rank(), "row.worst_rank"));
  RETURN_IF_ERROR(CheckRange(row.thread_count(), 0, INT32_MAX, "row.thread_count"));
  out.rank_seconds.min = row.rank_min_seconds();
  out.rank_seconds.median = row.rank_median_seconds();
  out.rank_seconds.max = row.rank_max_seconds();
  out.worst_rank = row.worst_rank();
  out.imbalance = row.imbalance();
  out.thread_count = row.thread_count();
  return absl::OkStatus();
}

absl::Status ReadSpan(const v1::ReportRow& row, ReportRow& out) {
  RETURN_IF_ERROR(CheckRange(row.first_seen_ns(), 0, INT64_MAX, "row.first_seen_ns"));
  RETURN_IF_ERROR(CheckRange(row.last_seen_ns(), 0, INT64_MAX, "row.last_seen_ns"));
  if (row.first_seen_ns() > row.last_seen_ns())
    return absl::InvalidArgumentError("row.first_seen_ns: after the last");
  out.seen.first_ns = row.first_seen_ns();
  out.seen.last_ns = row.last_seen_ns();
  return absl::OkStatus();
}

}  // namespace

v1::ReportRow ToProto(const ReportRow& row) {
  v1::ReportRow out;
  out.set_id(CleanText(row.id));
  *out.mutable_location() = ToProto(row.location);
  out.set_samples(row.samples);
  out.set_share(row.share);
  out.mutable_share_interval()->set_low(row.share_interval.low);
  out.mutable_share_interval()->set_high(row.share_interval.high);
  out.set_inclusive_share(row.inclusive_share);
  if (row.called != CalledShare{}) FillCalled(row.called, *out.mutable_called());
  if (row.wall.has_value()) {
    out.mutable_wall()->set_share(row.wall->share);
    out.mutable_wall()->mutable_interval()->set_low(row.wall->interval.low);
    out.mutable_wall()->mutable_interval()->set_high(row.wall->interval.high);
    out.mutable_wall()->set_inclusive_share(row.wall->inclusive);
    if (row.wall->called != CalledShare{})
      FillCalled(row.wall->called, *out.mutable_wall()->mutable_called());
  }
  out.set_hot(row.hot);
  out.set_rank_min_seconds(row.rank_seconds.min);
  out.set_rank_median_seconds(row.rank_seconds.median);
  out.set_rank_max_seconds(row.rank_seconds.max);
  out.set_worst_rank(CleanText(row.worst_rank));
  out.set_imbalance(row.imbalance);
  out.set_thread_count(row.thread_count);
  out.set_first_seen_ns(row.seen.first_ns);
  out.set_last_seen_ns(row.seen.last_ns);
  FillTables(row, out);
  return out;
}

absl::StatusOr<ReportRow> FromProto(const v1::ReportRow& row) {
  RETURN_IF_ERROR(CheckText(row.id(), "row.id"));
  ReportRow out;
  out.id = row.id();
  ASSIGN_OR_RETURN(out.location, FromProto(row.location()));
  out.samples = row.samples();
  RETURN_IF_ERROR(ReadShares(row, out));
  RETURN_IF_ERROR(ReadWall(row, out));
  out.hot = row.hot();
  RETURN_IF_ERROR(ReadSpread(row, out));
  RETURN_IF_ERROR(ReadSpan(row, out));
  RETURN_IF_ERROR(ReadTables(row, out));
  return out;
}

}  // namespace perfd::wire
